"""StableHLO operators that compute each element separately: arithmetic, comparison, conversion.

The official interpreter runs STABLEHLO_ADD, AND, MAXIMUM, MINIMUM and MULTIPLY; the kernels here
give the same results. Other operators are only parsed by the official interpreter; their kernels
follow the StableHLO specification.

Source:
    tflite/kernels/stablehlo_elementwise.{h,cc};
    https://openxla.org/stablehlo/spec
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.kernels.cast import saturate
from delegraph.kernels.elementwise.binary import matching_operands, run_binary
from delegraph.kernels.elementwise.complex_numbers import complex_parts
from delegraph.kernels.elementwise.unary import run_ufunc, unary_operands
from delegraph.kernels.stablehlo.types import (
    ANY,
    BOOLEAN,
    COMPLEX,
    FLOAT,
    INTEGER,
    LITERT,
    NUMBER,
    SIGNED,
)
from delegraph.operators.checks import (
    option,
    require_same_type,
    require_shape,
    require_type,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.enums import StablehloComparisonType as Comparison
from delegraph.schema.enums import TensorType

Array = NDArray[Any]
Unary = Callable[[Array, Array], object]
"""Function that computes its second argument, an output, from its first."""

Binary = Callable[[Array, Array, Array], object]
"""Function that computes its third argument, an output, from the first two."""

_COMPARISONS = {
    Direction.STABLEHLO_COMPARISON_DIRECTION_EQ: np.equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_NE: np.not_equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_GE: np.greater_equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_GT: np.greater,
    Direction.STABLEHLO_COMPARISON_DIRECTION_LE: np.less_equal,
    Direction.STABLEHLO_COMPARISON_DIRECTION_LT: np.less,
}
_EQUALITIES = (np.equal, np.not_equal)


def greater(kept: Array, other: Array, y: Array) -> None:
    """Store the greater of *kept* and *other* in *y*; store *kept* if *other* is NaN."""
    _prevailing(np.maximum, kept, other, y)


def less(kept: Array, other: Array, y: Array) -> None:
    """Store the lesser of *kept* and *other* in *y*; store *kept* if *other* is NaN."""
    _prevailing(np.minimum, kept, other, y)


def _prevailing(ufunc: np.ufunc, kept: Array, other: Array, y: Array) -> None:
    is_nan = other != other
    ufunc(other, kept, out=y)
    if is_nan.any():
        np.copyto(y, kept, where=is_nan)


def _divide(a: Array, b: Array, y: Array) -> None:
    """Store *a* / *b* in *y*; integers are truncated towards zero, and division by 0 gives 0."""
    if a.dtype.kind not in "iu":
        np.divide(a, b, y)
        return
    np.floor_divide(a, b, y)
    # The quotient was rounded down: add one where that was away from zero.
    y += (y * b != a) & ((a < 0) != (b < 0)) & (b != 0)


def _power(a: Array, b: Array, y: Array) -> None:
    """Store *a* to the power of *b* in *y*; integers wrap, or are truncated for negative *b*."""
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
"""Operators whose result for an element does not depend on the element's position."""


def _register_binary(name: str, operation: Binary, allowed: frozenset[TensorType]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an operator on two tensors with the same type and shape."""
        return run_binary(operation, *matching_operands(context, node, allowed))


def _register_unary(name: str, function: Unary, allowed: frozenset[TensorType]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an elementwise operator on one tensor."""
        return run_ufunc(function, *unary_operands(context, node, allowed))


for _name, (_operation, _types) in _BINARY.items():
    _register_binary(_name, _operation, _types)
for _name, (_function, _types) in _UNARY.items():
    _register_unary(_name, _function, _types)


@kernel("STABLEHLO_ABS")
def prepare_abs(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_ABS: magnitudes, which are real for complex numbers."""
    if input_tensor(context, node, 0).type in COMPLEX:
        return complex_parts(context, node, np.abs)
    return run_ufunc(np.abs, *unary_operands(context, node, SIGNED | FLOAT))


@kernel("STABLEHLO_COMPARE")
def prepare_compare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_COMPARE: whether a relation holds, as bool.

    In the total order of floats, -NaN < -inf < -0 < +0 < +inf < NaN.
    """
    a, b, y = tensors_of(context, node, 2)
    require_type(a, ANY)
    require_same_type(a, b)
    require_type(y, {TensorType.BOOL})
    require_shape(b, a.shape)
    eq, no_type = next(iter(_COMPARISONS)), Comparison.STABLEHLO_COMPARISON_TYPE_NOTYPE
    compare = _COMPARISONS[Direction(option(node, "comparison_direction", eq))]
    kind = Comparison(option(node, "compare_type", no_type))
    if a.type in COMPLEX and compare not in _EQUALITIES:
        raise OperatorError(f"complex numbers compared by {compare.__name__}, expected EQ or NE")
    context.resize_tensor(y, a.shape)

    def run_in_total_order() -> None:
        compare(total_order(a.data), total_order(b.data), out=y.data)

    is_total = kind == Comparison.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
    if is_total and a.type in FLOAT:
        return run_in_total_order
    return run_binary(compare, a, b, y)


def total_order(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers that have the order of the floats *values* in IEEE 754's total order.

    >>> total_order(np.array([np.nan, -0.0, 0.0], np.float32)).argsort().tolist()
    [1, 2, 0]
    """
    bits = values.view(f"i{values.dtype.itemsize}")
    # The bits of negative floats grow with their magnitude.
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


@kernel("STABLEHLO_SELECT")
def prepare_select(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_SELECT: input 1 where input 0 is true, else input 2."""
    condition, a, b, y = tensors_of(context, node, 3)
    require_type(condition, {TensorType.BOOL})
    require_type(a, ANY)
    for tensor in (b, y):
        require_same_type(tensor, a)
    require_shape(b, a.shape)
    _require_shape_or_scalar(condition, a.shape)
    context.resize_tensor(y, a.shape)

    def run() -> None:
        np.copyto(y.data, b.data)
        np.copyto(y.data, a.data, where=condition.data)

    return run


@kernel("STABLEHLO_CLAMP")
def prepare_clamp(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_CLAMP: input 1, limited to the range from input 0 to input 2."""
    low, x, high, y = tensors_of(context, node, 3)
    require_type(x, ANY - COMPLEX)
    for tensor in (low, high, y):
        require_same_type(tensor, x)
    _require_shape_or_scalar(low, x.shape)
    _require_shape_or_scalar(high, x.shape)
    context.resize_tensor(y, x.shape)

    def run() -> None:
        np.maximum(x.data, low.data, out=y.data)
        np.minimum(y.data, high.data, out=y.data)

    return run


def _require_shape_or_scalar(tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.shape:
        require_shape(tensor, shape)


@kernel("STABLEHLO_CONVERT")
def prepare_convert(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_CONVERT: elements in the output's type.

    Floats are truncated towards zero and saturate at an integer's limits; NaN becomes the largest
    integer. Complex numbers lose their imaginary part. A number other than 0 becomes True as bool.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, ANY)
    require_type(y, ANY)
    context.resize_tensor(y, x.shape)
    takes_real_part = x.type in COMPLEX and y.type not in COMPLEX | {TensorType.BOOL}
    saturates = x.type in COMPLEX | FLOAT and y.type in INTEGER

    def run() -> None:
        values = x.data.real if takes_real_part else x.data
        if saturates:
            wide = values.astype(np.float32) if values.dtype.itemsize < 4 else values
            saturate(wide, y.data)
        else:
            np.copyto(y.data, values, casting="unsafe")

    return run
