"""FLOOR_DIV and FLOOR_MOD."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_operands
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_DIV_TYPES = {TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32}
_MOD_TYPES = _DIV_TYPES | {TensorType.INT64}


@kernel("FLOOR_DIV", versions=(1, 3))
def prepare_floor_div(context: OpContext, node: Node) -> Eval:
    """Return the eval of FLOOR_DIV: floor(a / b), broadcast; refuses divisors of 0.

    float32, int8, int16 and int32, as stored.

    Source:
        tflite/kernels/floor_div.cc.
    """
    a, b, y = _operands(context, node, _DIV_TYPES)

    def run() -> None:
        _require_nonzero(b)
        np.floor_divide(a.data, b.data, y.data)

    def run_float() -> None:
        _require_nonzero(b)
        y.data[...] = np.floor(np.divide(a.data, b.data, dtype=np.float64))

    return run_float if a.type is TensorType.FLOAT32 else run


@kernel("FLOOR_MOD", versions=(1, 2))
def prepare_floor_mod(context: OpContext, node: Node) -> Eval:
    """Return the eval of FLOOR_MOD: the remainder with b's sign; integers refuse divisors of 0.

    float32, int8, int16, int32 and int64, as stored.

    Source:
        tflite/kernels/floor_mod.cc.
    """
    a, b, y = _operands(context, node, _MOD_TYPES)

    def run() -> None:
        _require_nonzero(b)
        np.remainder(a.data, b.data, y.data)

    def run_float() -> None:
        np.remainder(a.data, b.data, y.data)

    return run_float if a.type is TensorType.FLOAT32 else run


def _operands(
    context: OpContext, node: Node, allowed: set[TensorType]
) -> tuple[Tensor, Tensor, Tensor]:
    a, b, y = broadcast_operands(context, node)
    require_type(a, allowed)
    return a, b, y


def _require_nonzero(divisor: Tensor) -> None:
    if not divisor.data.all():
        raise OperatorError(f"division by zero: tensor {divisor.name!r} holds 0")
