"""Integer operators of two 8-bit operands.

The core's kernel is run on all 65,536 pairs. ADD, SUB and MUL are sums and products with one
rounding at the end, so a formula in float32 is tried on all pairs, with its constants moved by a
few units in the last place. Where one gives the same results everywhere, the kernel computes; else
it looks results up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.arithmetic.vector_loop import inner_loop
from delegraph_numba_cpu.blocks.elementwise import Operation
from delegraph_numba_cpu.operators.chains import emit_operation
from delegraph_numba_cpu.operators.checks import (
    activation_of,
    check_same_type,
    check_shapes,
    first_rejection,
)
from delegraph_numba_cpu.operators.evaluation import check_evaluation, evaluate, every_value
from delegraph_numba_cpu.operators.registry import Call
from delegraph_numba_cpu.program import ProgramBuilder

SUMS, PRODUCT = {"ADD": 1, "SUB": -1}, "MUL"

EXTREMES = {
    ("MAXIMUM", "INT8"): Operation.LARGER_INT8,
    ("MAXIMUM", "UINT8"): Operation.LARGER_UINT8,
    ("MINIMUM", "INT8"): Operation.SMALLER_INT8,
    ("MINIMUM", "UINT8"): Operation.SMALLER_UINT8,
}

_FORMULAS = {
    (False, "INT8"): Operation.SUM_OF_INT8,
    (False, "UINT8"): Operation.SUM_OF_UINT8,
    (True, "INT8"): Operation.PRODUCT_OF_INT8,
    (True, "UINT8"): Operation.PRODUCT_OF_UINT8,
}

_LOOPS = ("ADD", "MUL")
"""Operators whose vector loops may round otherwise than what is left over."""

Table = NDArray[np.generic]

Parameters = tuple[float | NDArray[np.generic], ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """What an operator gives for all pairs: ``[65536]``, at 256 * a + b, by their bits.

    Attributes:
        vector: in the official kernel's vector loop.
        rest: for what that loop leaves over.
        length: elements of its innermost loop.
        vector_end: how many of them the vector loop computes.
    """

    vector: Table
    rest: Table
    length: int
    vector_end: int


def tables(call: Call) -> Tables:
    """Return the tables of a node.

    Raises:
        OperatorError: the core's kernel refuses the node.
    """
    a, b = call.input(0), call.input(1)
    loop = inner_loop(a.shape, b.shape)
    lanes = 8 if a.type.name == "UINT8" or (call.name == "ADD" and _repeats(a, b)) else 16
    rest = _pairs(call, False, "reference")
    if loop is None or loop.length < lanes or call.context.numerics == "reference":
        return Tables(rest, rest, 1, 1)
    vector = _pairs(call, loop.repeats_scalar and call.name in _LOOPS, "builtin")
    if loop.length % lanes == 0 or (vector == rest).all():
        return Tables(vector, vector, 1, 1)
    return Tables(vector, rest, loop.length, loop.length - loop.length % lanes)


def _repeats(a: Tensor, b: Tensor) -> bool:
    loop = inner_loop(a.shape, b.shape)
    return loop is not None and loop.repeats_scalar


def _pairs(call: Call, repeats_scalar: bool, numerics: str) -> Table:
    """Return the results for all pairs, computed by one kind of the official loops."""
    values = every_value(call.input(0).dtype), every_value(call.input(1).dtype)
    a, b = (grid.copy() for grid in np.meshgrid(*values, indexing="ij"))
    if repeats_scalar:
        a = values[0][:, None]
    if call.name == "DIV":
        b = _without_zero(call, b)
    with np.errstate(all="ignore"):
        return evaluate(call, [a, b], numerics).reshape(-1)  # type: ignore[arg-type]


def _without_zero(call: Call, divisors: Table) -> Table:
    """Return divisors in which another number stands for zero, which none is."""
    zero = call.input(1).zero_point
    return np.where(divisors == zero, divisors.dtype.type(zero ^ 1), divisors)


def check_pair(call: Call) -> Rejection | None:
    """Reject all but what the core's kernel takes, with results of the same type."""
    return first_rejection(check_operands(call), check_same_type(call.input(0), call.output()))


def check_operands(call: Call) -> Rejection | None:
    """Reject all but what the core's kernel takes; results may be of any type."""
    rejection = check_shapes(call, 2)
    if rejection is None:
        rejection = check_same_type(call.input(0), call.input(1))
    if rejection is not None:
        return rejection
    a, b = (np.ones(1, call.input(i).dtype) for i in range(2))
    return check_evaluation(call, [a, _without_zero(call, b)])


def lower_pair(call: Call, builder: ProgramBuilder) -> None:
    """Emit a chain of one operator, by a formula or by a table."""
    if not math.prod(call.output().shape):
        return
    found = EXTREMES.get((call.name, call.input(0).type.name))
    if found is not None:
        emit_operation(call, builder, found)
        return
    known = tables(call)
    formula = None
    if known.length == known.vector_end:
        formula = find_formula(call, known.vector, builder.exact)
    if formula is not None:
        is_product = call.name == PRODUCT
        operation = _FORMULAS[is_product, call.input(0).type.name]
        emit_operation(call, builder, operation, formula)
    elif known.length == known.vector_end:
        emit_operation(call, builder, Operation.LOOKUP_PAIR, (known.vector,))
    else:
        parameters = known.vector, known.rest, known.length, known.vector_end
        emit_operation(call, builder, Operation.LOOKUP_PAIR_BY_POSITION, parameters)


def find_formula(call: Call, wanted: Table, exact: bool) -> Parameters | None:
    """Return the parameters of a formula that gives *wanted*; None when none is found.

    Without *exact* it need not be tried: it is what real arithmetic rounds to.
    """
    if call.name not in (*SUMS, PRODUCT):
        return None
    y = call.output()
    low, high = quantized_activation_range(activation_of(call), y)
    limits = y.zero_point, low, high
    values = every_value(call.input(0).dtype)
    a, b = np.repeat(values, 256).astype(np.int32), np.tile(values, 256).astype(np.int32)
    candidates = _products(call) if call.name == PRODUCT else _sums(call)
    apply = _product if call.name == PRODUCT else _sum
    for constants, half in candidates:
        parameters = (*constants, half, *limits)
        if not exact:
            return parameters
        real = apply(a, b, *constants)
        with np.errstate(all="ignore"):
            whole = (real + np.copysign(np.float32(half), real)).clip(-1e9, 1e9).astype(np.int32)
        if ((whole + y.zero_point).clip(low, high) == wanted).all():
            return parameters
    return None


def _sum(
    a: NDArray[np.int32], b: NDArray[np.int32], a_factor: float, b_factor: float, offset: float
) -> NDArray[np.float32]:
    """Return what the kernel computes before it rounds."""
    f = np.float32
    return a.astype(f) * f(a_factor) + b.astype(f) * f(b_factor) + f(offset)


def _product(
    a: NDArray[np.int32], b: NDArray[np.int32], a_zero: float, b_zero: float, factor: float
) -> NDArray[np.float32]:
    f = np.float32
    return ((a.astype(f) - f(a_zero)) * (b.astype(f) - f(b_zero))) * f(factor)


Candidate = tuple[tuple[float, ...], float]

ULPS = (0, 1, -1, 2, -2)

HALVES = (0.5, 0.5 + 2.0**-20, 0.5 - 2.0**-20, 0.5 + 2.0**-17, 0.5 - 2.0**-17)


def _sums(call: Call) -> Iterator[Candidate]:
    a, b, y = call.input(0), call.input(1), call.output()
    a_factor, b_factor = a.scale / y.scale, SUMS[call.name] * b.scale / y.scale
    offset = -(a.zero_point * a_factor + b.zero_point * b_factor)
    for half, i, j, k in product(HALVES, ULPS[:3], ULPS[:3], ULPS[:3]):
        yield (_moved(a_factor, i), _moved(b_factor, j), _moved(offset, k)), half


def _products(call: Call) -> Iterator[Candidate]:
    a, b, y = call.input(0), call.input(1), call.output()
    factor = float(np.float32(a.scale) * np.float32(b.scale) / np.float32(y.scale))
    shift = math.frexp(factor)[1]
    double_rounding = 2.0 ** (shift - 1) if shift < 0 else 0.0
    for half, i in product(HALVES, ULPS):
        yield (a.zero_point, b.zero_point, _moved(factor, i)), half + double_rounding


def _moved(value: float, ulps: int) -> float:
    """Return a float32 so many units in the last place from another."""
    number = np.float32(value)
    return float(number + np.float32(ulps) * np.spacing(number))


FEATURES = ("activation", "broadcast", "computed-weights", "empty", "many-dims", "scalar",
            "dynamic-shapes")  # fmt: skip
