"""Kernels of FLOOR_DIV and FLOOR_MOD."""

from __future__ import annotations

import numpy as np

from delegraph.kernels.elementwise.binary import binary_operands, require_nonzero
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_DIV_TYPES = {TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32}
_MOD_TYPES = _DIV_TYPES | {TensorType.INT64}


@kernel("FLOOR_DIV")
def prepare_floor_div(context: OpContext, node: Node) -> Eval:
    """Prepare FLOOR_DIV: floor(a / b), broadcast; a divisor of 0 is an error.

    Types are float32, int8, int16 and int32, as stored.

    Source:
        tflite/kernels/floor_div.cc.
    """
    a, b, y = binary_operands(context, node, _DIV_TYPES)

    def run() -> None:
        require_nonzero(b)
        np.floor_divide(a.data, b.data, y.data)

    def run_float() -> None:
        require_nonzero(b)
        y.data[...] = np.floor(np.divide(a.data, b.data, dtype=np.float64))

    return run_float if a.type is TensorType.FLOAT32 else run


@kernel("FLOOR_MOD")
def prepare_floor_mod(context: OpContext, node: Node) -> Eval:
    """Prepare FLOOR_MOD: the remainder with b's sign; integer b = 0 is an error.

    Types are float32, int8, int16, int32 and int64; scales and zero points are ignored. A remainder
    of 0.0 has the sign of a.

    Source:
        tflite/kernels/floor_mod.cc.
    """
    a, b, y = binary_operands(context, node, _MOD_TYPES)

    def run() -> None:
        require_nonzero(b)
        np.remainder(a.data, b.data, y.data)

    def run_float() -> None:
        out = y.data
        np.fmod(a.data, b.data, out)
        np.add(out, b.data, out, where=(out != 0) & ((b.data < 0) != (out < 0)))

    return run_float if a.type is TensorType.FLOAT32 else run
