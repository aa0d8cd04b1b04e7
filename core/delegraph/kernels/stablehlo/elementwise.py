"""StableHLO operators of one or two operands that work on each element alone.

The official interpreter runs STABLEHLO_ADD, AND, MAXIMUM, MINIMUM and MULTIPLY; these follow it.
The others, which it only parses, follow the StableHLO specification.

Source:
    tflite/kernels/stablehlo_elementwise.{h,cc};
    https://openxla.org/stablehlo/spec
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.kernels.stablehlo.types import (
    BOOLEAN,
    COMPLEX,
    FLOAT,
    INTEGER,
    LITERT,
    NUMBER,
    SIGNED,
)
from delegraph.kernels.unary import run_ufunc, unary_operands
from delegraph.operators.checks import (
    require_counts,
    require_same_type,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.schema.enums import TensorType

Array = NDArray[Any]
Unary = Callable[[Array, Array], object]
"""Computes from its first argument what its second one holds afterwards."""

Binary = Callable[[Array, Array, Array], object]
"""Computes from two arguments what the third one holds afterwards."""

_PARTS = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


def greater(kept: Array, other: Array, y: Array) -> None:
    """Store the greater of two elements; *kept* where *other* is no number. *y* may be *other*."""
    _prevailing(np.maximum, kept, other, y)


def less(kept: Array, other: Array, y: Array) -> None:
    """Store the lesser of two elements; *kept* where *other* is no number. *y* may be *other*."""
    _prevailing(np.minimum, kept, other, y)


def _prevailing(ufunc: np.ufunc, kept: Array, other: Array, y: Array) -> None:
    is_nan = other != other
    ufunc(other, kept, out=y)
    if is_nan.any():
        np.copyto(y, kept, where=is_nan)


def _divide(a: Array, b: Array, y: Array) -> None:
    """Divide; integers are cut towards zero, and divided by zero are zero."""
    if a.dtype.kind not in "iu":
        np.divide(a, b, y)
        return
    np.floor_divide(a, b, y)
    # The quotient's fraction was cut downwards: one more where that was away from zero.
    y += (y * b != a) & ((a < 0) != (b < 0)) & (b != 0)


def _power(a: Array, b: Array, y: Array) -> None:
    """Raise to a power; integers wrap, and of negative powers the fraction is cut off."""
    if a.dtype.kind not in "iu":
        np.power(a, b, y)
        return
    is_inverse = b < 0
    np.power(a, np.where(is_inverse, b & 1, b), y)
    np.copyto(y, 0, where=is_inverse & (a != 1) & (a != -1 if a.dtype.kind == "i" else True))


def _logistic(x: Array, y: Array) -> None:
    one = np.ones((), x.dtype)
    np.divide(one, one + np.exp(-x), y)


def _rsqrt(x: Array, y: Array) -> None:
    np.divide(np.ones((), x.dtype), np.sqrt(x), y)


_BINARY: dict[str, tuple[Binary, frozenset[TensorType]]] = {
    "STABLEHLO_ADD": (np.add, LITERT),
    "STABLEHLO_AND": (np.bitwise_and, INTEGER | BOOLEAN),
    "STABLEHLO_DIVIDE": (_divide, NUMBER),
    "STABLEHLO_MAXIMUM": (greater, LITERT),
    "STABLEHLO_MINIMUM": (less, LITERT),
    "STABLEHLO_MULTIPLY": (np.multiply, LITERT),
    "STABLEHLO_OR": (np.bitwise_or, INTEGER | BOOLEAN),
    "STABLEHLO_POWER": (_power, NUMBER),
    "STABLEHLO_REMAINDER": (np.fmod, INTEGER | FLOAT),
    "STABLEHLO_SUBTRACT": (np.subtract, NUMBER),
}

_UNARY: dict[str, tuple[Unary, frozenset[TensorType]]] = {
    "STABLEHLO_CBRT": (np.cbrt, FLOAT),
    "STABLEHLO_COSINE": (np.cos, FLOAT | COMPLEX),
    "STABLEHLO_EXPONENTIAL": (np.exp, FLOAT | COMPLEX),
    "STABLEHLO_FLOOR": (np.floor, FLOAT),
    "STABLEHLO_LOG": (np.log, FLOAT | COMPLEX),
    "STABLEHLO_LOGISTIC": (_logistic, FLOAT | COMPLEX),
    "STABLEHLO_NEGATE": (np.negative, NUMBER),
    "STABLEHLO_RSQRT": (_rsqrt, FLOAT | COMPLEX),
    "STABLEHLO_TANH": (np.tanh, FLOAT | COMPLEX),
}

ELEMENTWISE = frozenset({*_BINARY, *_UNARY, "STABLEHLO_ABS", "STABLEHLO_SHIFT_LEFT"})
"""Operators that give the same element wherever it stands, in arrays of any shape."""


def _register_binary(name: str, operation: Binary, allowed: frozenset[TensorType]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Return the eval of an operator on two tensors of one type and shape."""
        require_counts(node, 2)
        a, b = input_tensor(context, node, 0), input_tensor(context, node, 1)
        y = output_tensor(context, node)
        require_type(a, allowed)
        require_same_type(a, b)
        require_same_type(a, y)
        require_shape(b, a.shape)
        context.resize_tensor(y, a.shape)

        def run() -> None:
            operation(a.data, b.data, y.data)

        return run


def _register_unary(name: str, function: Unary, allowed: frozenset[TensorType]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Return the eval of an operator on one tensor."""
        return run_ufunc(function, *unary_operands(context, node, allowed))


for _name, (_operation, _types) in _BINARY.items():
    _register_binary(_name, _operation, _types)
for _name, (_function, _types) in _UNARY.items():
    _register_unary(_name, _function, _types)


@kernel("STABLEHLO_ABS")
def prepare_abs(context: OpContext, node: Node) -> Eval:
    """Return the eval of STABLEHLO_ABS; complex numbers have real magnitudes."""
    x, y = input_tensor(context, node, 0), output_tensor(context, node)
    if x.type not in COMPLEX:
        return run_ufunc(np.abs, *unary_operands(context, node, SIGNED | FLOAT))
    require_counts(node, 1)
    require_type(y, {_PARTS[x.type]})
    context.resize_tensor(y, x.shape)
    return run_ufunc(np.abs, x, y)
