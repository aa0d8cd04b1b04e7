"""Integer operators of two 8-bit operands.

The core's kernel is run on all 65,536 pairs. ADD, SUB and MUL are sums and products with one
rounding at the end, so formulas in float32 are tried on all pairs. Their constants are moved by a
few units in the last place. If a formula gives all results, the kernel computes it; otherwise the
kernel reads a table. Sums that are rounded to nearest take the least time, and are tried first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection
from delegraph.arithmetic import (
    PairTables,
    Table,
    pair_tables,
    quantized_activation_range,
    without_zero,
)
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import (
    activation_of,
    check_same_type,
    check_shapes,
    first_rejection,
)
from delegraph_numba_cpu.lowering.elementwise.elementwise_chains import emit_operation
from delegraph_numba_cpu.lowering.evaluation import check_evaluation, evaluate, every_value
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder

SUMS, PRODUCT = {"ADD": 1, "SUB": -1}, "MUL"

EXTREMES = {
    ("MAXIMUM", "INT8"): Operation.LARGER_INT8,
    ("MAXIMUM", "UINT8"): Operation.LARGER_UINT8,
    ("MINIMUM", "INT8"): Operation.SMALLER_INT8,
    ("MINIMUM", "UINT8"): Operation.SMALLER_UINT8,
}

_NEAREST = {
    "INT8": Operation.NEAREST_SUM_OF_INT8,
    "UINT8": Operation.NEAREST_SUM_OF_UINT8,
}

_FORMULAS = {
    (False, "INT8"): Operation.SUM_OF_INT8,
    (False, "UINT8"): Operation.SUM_OF_UINT8,
    (True, "INT8"): Operation.PRODUCT_OF_INT8,
    (True, "UINT8"): Operation.PRODUCT_OF_UINT8,
}

Parameters = tuple[float | NDArray[np.generic], ...]

Positions = NDArray[np.intp]
"""Positions of pairs in a table of 65,536: 256 times the bits of the first, plus the second's."""


def tables(call: Call) -> PairTables:
    """Return a node's results for all pairs of 8-bit operands, as tables for the kernel.

    Raises:
        OperatorError: the core's kernel refuses the node.
    """
    return pair_tables(
        call.name,
        call.input(0),
        call.input(1),
        call.context.numerics,
        lambda inputs, numerics: evaluate(call, inputs, numerics),
    )


def check_pair(call: Call) -> Rejection | None:
    """Check that Delegraph's own kernel accepts operands of equal types, or return a rejection."""
    return first_rejection(check_operands(call), check_same_type(call.input(0), call.output()))


def check_operands(call: Call) -> Rejection | None:
    """Check that Delegraph's own kernel accepts the two operands, or return a rejection.

    Any output type is accepted.
    """
    rejection = check_shapes(call, 2)
    if rejection is None:
        rejection = check_same_type(call.input(0), call.input(1))
    if rejection is not None:
        return rejection
    a, b = (np.ones(1, call.input(i).dtype) for i in range(2))
    return check_evaluation(call, [a, without_zero(call.input(1), b)])


def lower_pair(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel call of an operator on two 8-bit operands.

    The kernel computes a formula, or reads a table of the results of all pairs of operands.
    """
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
        emit_operation(call, builder, *formula)
    elif known.length == known.vector_end:
        emit_operation(call, builder, Operation.LOOKUP_PAIR, (known.vector,))
    else:
        parameters = known.vector, known.rest, known.length, known.vector_end
        emit_operation(call, builder, Operation.LOOKUP_PAIR_BY_POSITION, parameters)


def find_formula(call: Call, wanted: Table, exact: bool) -> tuple[int, Parameters] | None:
    """Return a float32 formula that computes a node's results; None if none is exact.

    Args:
        call: an ADD, SUB or MUL node of 8-bit operands.
        wanted: the right result for each pair of operands.
        exact: whether the formula must give all results in *wanted*; it is tried on all pairs.

    Returns:
        The operation of the chain, and its parameters.
    """
    kind = call.input(0).type.name
    found = _find_nearest_sum(call, wanted, exact)
    if found is not None:
        return _NEAREST[kind], found
    found = _find_truncation(call, wanted, exact)
    return None if found is None else (_FORMULAS[call.name == PRODUCT, kind], found)


def _find_truncation(call: Call, wanted: Table, exact: bool) -> Parameters | None:
    """Return the parameters of a formula that adds a half and truncates; None if none is exact.

    Args:
        call: an ADD, SUB or MUL node of 8-bit operands.
        wanted: the right result for each pair of operands.
        exact: whether the formula must give all results in *wanted*; else the formula of real
            arithmetic is returned untried.
    """
    if call.name not in (*SUMS, PRODUCT):
        return None
    y = call.output()
    low, high = quantized_activation_range(activation_of(call), y)
    limits = y.zero_point, low, high
    dtype = call.input(0).dtype
    candidates = _products(call) if call.name == PRODUCT else _sums(call)
    apply = _product if call.name == PRODUCT else _sum

    def real(candidate: Candidate, pairs: Positions | None) -> NDArray[np.float32]:
        """Return the real results of *candidate* for *pairs*, which the kernel truncates."""
        with np.errstate(all="ignore"):
            found = apply(*_operands(dtype, pairs), *candidate[0])
            return found + np.copysign(np.float32(candidate[1]), found)

    def fails(candidate: Candidate, pairs: Positions | None) -> Positions:
        """Return the positions of those *pairs* for which *candidate* gives a wrong result."""
        found = real(candidate, pairs)
        has_integer = np.abs(found) < LARGEST
        whole = np.where(has_integer, found, 0).astype(np.int32)
        is_right = (whole + y.zero_point).clip(low, high) == _results(wanted, pairs)
        return np.flatnonzero(~(has_integer & is_right))

    # Pairs that one candidate gets wrong are mostly wrong for the next ones.
    hard = np.empty(0, np.intp)
    for candidate in candidates:
        if exact:
            if len(fails(candidate, hard)):
                continue
            wrong = fails(candidate, None)
            if len(wrong):
                hard = np.append(hard, wrong[:: len(wrong) // _HARD + 1])
                continue
        elif not (np.abs(real(candidate, None)) < LARGEST).all():
            continue
        return (*candidate[0], candidate[1], *limits)
    return None


def _find_nearest_sum(call: Call, wanted: Table, exact: bool) -> Parameters | None:
    """Return the parameters of a sum that is rounded to the nearest integer; None if none is exact.

    Some processors round a product before it is added, others do not. Both must be right.

    Args:
        call: an ADD, SUB or MUL node of 8-bit operands.
        wanted: the right result for each pair of operands.
        exact: whether the sum must give all results in *wanted*; else the sum of real arithmetic is
            returned untried.
    """
    if call.name not in SUMS:
        return None
    y = call.output()
    low, high = quantized_activation_range(activation_of(call), y)
    dtype = call.input(0).dtype

    def fails(factors: Sequence[np.float32], pairs: Positions | None) -> Positions:
        """Return the positions of *pairs* for which the sum gives a wrong result."""
        a, b = _operands(dtype, pairs)
        results = _results(wanted, pairs)
        sums = [add(a, b, *factors) for add in (_rounded_sum, _fused_sum)]
        is_right = [np.rint(found).clip(low, high) == results for found in sums]
        return np.flatnonzero(~np.logical_and(*is_right))

    hard = np.empty(0, np.intp)
    for (a_factor, b_factor, offset), half in _sums(call):
        bias = half - 0.5
        factors = [np.float32(x) for x in (a_factor, b_factor, offset + y.zero_point + bias)]
        if not _are_plain(*map(float, factors)) or (exact and len(fails(factors, hard))):
            continue
        wrong = fails(factors, None) if exact else hard
        if not len(wrong):
            return (*map(float, factors), low, high)
        hard = np.append(hard, wrong[:: len(wrong) // _HARD + 1])
    return None


def _are_plain(a_factor: float, b_factor: float, offset: float) -> bool:
    """Whether the float64 arithmetic in :func:`_fused_sum` is exact for these numbers.

    Sums are less than 2**11 then, and multiples of 2**-42.
    """
    factors = a_factor, b_factor
    are_wide = all(2.0**-19 <= abs(factor) <= 2 for factor in factors)
    return are_wide and (offset == 0 or 2.0**-19 <= abs(offset) <= 2.0**10)


def _operands(
    dtype: np.dtype[Any], pairs: Positions | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return both operands of *pairs*, or a column and a row that broadcast to all pairs."""
    values = _values(dtype)
    if pairs is None:
        return values[:, None], values
    return values[pairs >> 8], values[pairs & 0xFF]


@cache
def _values(dtype: np.dtype[Any]) -> NDArray[np.float32]:
    return every_value(dtype).astype(np.float32)


def _results(wanted: Table, pairs: Positions | None) -> Table:
    """Return the right results of *pairs*; of all, one row for each first operand."""
    return wanted.reshape(256, 256) if pairs is None else wanted[pairs]


LARGEST = 2.0**30
"""Upper bound of the real results that the kernel truncates to integers."""

_HARD = 256
"""Number of wrong pairs of a formula that are kept; the next formulas are tried on these first."""


def _sum(
    a: NDArray[np.float32], b: NDArray[np.float32], a_factor: float, b_factor: float, offset: float
) -> NDArray[np.float32]:
    """Return ``a * a_factor + b * b_factor + offset`` in float32, before rounding."""
    f = np.float32
    return a * f(a_factor) + b * f(b_factor) + f(offset)


def _rounded_sum(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    a_factor: np.float32,
    b_factor: np.float32,
    offset: np.float32,
) -> NDArray[np.float32]:
    """Return ``a * a_factor + (b * b_factor + offset)``, with products rounded to float32."""
    return a * a_factor + (b * b_factor + offset)


def _fused_sum(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    a_factor: np.float32,
    b_factor: np.float32,
    offset: np.float32,
) -> NDArray[np.float32]:
    """Return the result of :func:`_rounded_sum` without rounding of products."""
    f, wide = np.float32, np.float64
    second = (b * wide(b_factor) + wide(offset)).astype(f)
    return (a * wide(a_factor) + second.astype(wide)).astype(f)


def _product(
    a: NDArray[np.float32], b: NDArray[np.float32], a_zero: float, b_zero: float, factor: float
) -> NDArray[np.float32]:
    f = np.float32
    return ((a - f(a_zero)) * (b - f(b_zero))) * f(factor)


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
    """Return *value* moved by *ulps* units in the last place, in float32."""
    number = np.float32(value)
    return float(number + np.float32(ulps) * np.spacing(number))


FEATURES = ("activation", "broadcast", "computed-weights", "empty", "many-dims", "scalar",
            "dynamic-shapes")  # fmt: skip
