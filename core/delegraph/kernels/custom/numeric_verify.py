"""NumericVerify: the difference between a quantized tensor and its float reference tensor."""

from __future__ import annotations

import logging

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.dequantize import dequantization
from delegraph.operators.checks import (
    adopt_type,
    require_shape,
    require_type,
    require_zero_points,
    tensors_of,
)
from delegraph.operators.flexbuffer_options import flexbuffer_options
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_LOG = logging.getLogger(__name__)
_TYPES = {TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.FLOAT16}
_LEAST_TOLERANCE = 0.1  # below, nothing is checked


@kernel("NumericVerify")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare NumericVerify: dequantized input 0 minus input 1.

    With the option ``log_if_failed`` and a ``tolerance`` of 0.1 or more, a difference of more than
    ``tolerance`` scales is an error. Otherwise statistics of the differences are logged. If input 0
    is constant, the official kernel repeats the first differences at each invoke.

    Source:
        tflite/kernels/numeric_verify.cc.
    """
    x, reference, y = tensors_of(context, node, 2)
    require_type(x, _TYPES)
    require_type(reference, {TensorType.FLOAT32})
    require_shape(reference, x.shape)
    adopt_type(y, TensorType.FLOAT32)
    context.resize_tensor(y, x.shape)
    options = flexbuffer_options(node.custom_options)
    tolerance = np.float32(options.get("tolerance", 0))
    is_strict = bool(options.get("log_if_failed", False)) and tolerance >= _LEAST_TOLERANCE
    limit = tolerance * np.float32(x.scale)
    if x.type is TensorType.INT16:
        require_zero_points(x)
    dequantize = dequantization(x, y)

    def run() -> None:
        dequantize()
        np.subtract(y.data, reference.data, out=y.data)
        if is_strict:
            _check(x, reference, y, limit)
        else:
            _log(y, x)

    return run


def _check(x: Tensor, reference: Tensor, y: Tensor, limit: np.float32) -> None:
    is_far = np.abs(y.data) > limit
    if is_far.any():
        i = int(is_far.argmax())
        raise OperatorError(
            f"element {i} of {x.name!r}, {x.data.flat[i]}, is {y.data.flat[i]} off "
            f"{reference.data.flat[i]}, expected at most {limit}"
        )


def _log(y: Tensor, x: Tensor) -> None:
    if y.data.size and _LOG.isEnabledFor(logging.INFO):
        differences = y.data.astype(np.float64)
        _LOG.info(
            "%r: differences have mean %g, standard deviation %g, largest %g (scale %g)",
            x.name,
            differences.mean(),
            differences.std(),
            np.abs(differences).max(),
            x.scale,
        )
