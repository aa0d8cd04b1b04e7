"""LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT of bools; BITWISE_XOR and RIGHT_SHIFT of integers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from delegraph.kernels.elementwise.binary import binary_operands, run_binary
from delegraph.kernels.elementwise.unary import run_ufunc, unary_operands
from delegraph.operators.checks import tensor_types
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_BOOL = {TensorType.BOOL}
_INTEGERS = tensor_types("INT8 UINT8 INT16 UINT16 INT32 UINT32")


def _right_shift(a: Any, b: Any, y: Any) -> None:
    """Store *a* >> *b* in *y*; a shift outside of the type's width is the nearest valid shift."""
    np.right_shift(a, b.clip(0, 8 * b.dtype.itemsize - 1), y)


_BINARY: dict[str, tuple[Callable[..., Any], Collection[TensorType]]] = {
    "BITWISE_XOR": (np.bitwise_xor, _INTEGERS),  # bitwise_xor.cc
    "LOGICAL_AND": (np.logical_and, _BOOL),  # logical.cc
    "LOGICAL_OR": (np.logical_or, _BOOL),  # logical.cc
    "RIGHT_SHIFT": (_right_shift, _INTEGERS),  # right_shift.cc
}
"""Function and types of each operator of two operands; comments name the file of tflite/kernels."""


def _register(name: str, function: Callable[..., Any], allowed: Collection[TensorType]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an operator of two operands, broadcast."""
        return run_binary(function, *binary_operands(context, node, allowed))


for _name, _row in _BINARY.items():
    _register(_name, *_row)


@kernel("LOGICAL_NOT")
def prepare_logical_not(context: OpContext, node: Node) -> Eval:
    """Prepare LOGICAL_NOT: the opposite of each bool. Source: tflite/kernels/elementwise.cc."""
    return run_ufunc(np.logical_not, *unary_operands(context, node, _BOOL))
