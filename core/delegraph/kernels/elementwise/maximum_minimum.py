"""Kernels of MAXIMUM and MINIMUM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_operands
from delegraph.operators.checks import require_type, tensor_types
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, nothing
from delegraph.schema.enums import TensorType

_FLOATS = {TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16}
_TYPES = _FLOATS | tensor_types("UINT8 INT8 INT16 INT32 INT64")


@kernel("MAXIMUM")
def prepare_maximum(context: OpContext, node: Node) -> Eval:
    """Prepare MAXIMUM: the larger of a and b; quantized integers are compared as stored.

    Comparisons with NaN are false, so ``a > b ? a : b`` is b if either is NaN. Tensors without
    elements may have any type.

    Source:
        tflite/kernels/maximum_minimum.cc.
    """
    return _prepare(context, node, np.maximum)


@kernel("MINIMUM")
def prepare_minimum(context: OpContext, node: Node) -> Eval:
    """Prepare MINIMUM: the smaller of a and b, broadcast; types and NaN as in MAXIMUM."""
    return _prepare(context, node, np.minimum)


def _prepare(context: OpContext, node: Node, operation: Callable[..., Any]) -> Eval:
    a, b, y = broadcast_operands(context, node)
    if 0 in y.shape:
        return nothing
    require_type(a, _TYPES)

    def run() -> None:
        operation(a.data, b.data, out=y.data)

    def run_floats() -> None:
        out = y.data
        operation(a.data, b.data, out=out)
        is_nan = np.isnan(out)
        if is_nan.any():
            np.copyto(out, b.data, where=is_nan)

    return run_floats if a.type in _FLOATS else run
