"""ARG_MAX and ARG_MIN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.checks import require_counts, require_type
from delegraph.kernels.op_table import kernel
from delegraph.kernels.output_shape import integers, normalized_axis, size_output
from delegraph.kernels.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.schema.enums import TensorType

_INPUTS = {
    TensorType.FLOAT32,
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT32,
    TensorType.BOOL,
}
_INDICES = {TensorType.INT32, TensorType.INT64}


@kernel("ARG_MAX", versions=(1, 3))
def prepare_arg_max(context: OpContext, node: Node) -> Eval:
    """Return the eval of ARG_MAX along an axis: int32 or int64; the first of equal elements wins.

    Source:
        tflite/kernels/arg_min_max.cc.
    """
    return _prepare(context, node, np.argmax)


@kernel("ARG_MIN", versions=(1, 3))
def prepare_arg_min(context: OpContext, node: Node) -> Eval:
    """Return the eval of ARG_MIN along an axis, as ARG_MAX."""
    return _prepare(context, node, np.argmin)


def _prepare(context: OpContext, node: Node, function: Callable[..., Any]) -> Eval:
    require_counts(node, 2)
    x, axis = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    require_type(x, _INPUTS)
    require_type(axis, _INDICES)
    require_type(y, _INDICES)
    if np.prod(axis.shape) != 1 or not x.shape:
        raise OperatorError(
            f"input and axis have shapes {x.shape} and {axis.shape}, expected a dimension in the "
            "first and one element in the second"
        )

    def plan() -> tuple[tuple[int, ...], Eval]:
        along = normalized_axis(integers(axis)[0], len(x.shape))
        if x.shape[along] == 0:
            raise OperatorError(f"axis {along} of {x.shape} is empty, expected elements")

        def run() -> None:
            y.data[...] = function(x.data, axis=along)

        return x.shape[:along] + x.shape[along + 1 :], run

    return size_output(context, y, plan, shape_inputs=(axis,))
