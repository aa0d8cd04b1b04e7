"""Kernels of BITWISE_XOR and RIGHT_SHIFT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph.kernels.elementwise.binary import binary_operands, run_binary
from delegraph.operators.checks import tensor_types
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext

_TYPES = tensor_types("INT8 UINT8 INT16 UINT16 INT32 UINT32")


@kernel("BITWISE_XOR")
def prepare_bitwise_xor(context: OpContext, node: Node) -> Eval:
    """Prepare BITWISE_XOR: ``y = a ^ b``, broadcast, on 8- to 32-bit integers.

    Source:
        tflite/kernels/bitwise_xor.cc.
    """
    return _prepare(context, node, np.bitwise_xor)


@kernel("RIGHT_SHIFT")
def prepare_right_shift(context: OpContext, node: Node) -> Eval:
    """Prepare RIGHT_SHIFT: ``y = a >> b``, broadcast, on 8- to 32-bit integers.

    Shifts outside of the type's width count as the nearest valid shift.

    Source:
        tflite/kernels/right_shift.cc.
    """

    def shift(a: Any, b: Any, y: Any) -> None:
        np.right_shift(a, b.clip(0, 8 * b.dtype.itemsize - 1), y)

    return _prepare(context, node, shift)


def _prepare(context: OpContext, node: Node, operation: Callable[..., Any]) -> Eval:
    return run_binary(operation, *binary_operands(context, node, _TYPES))
