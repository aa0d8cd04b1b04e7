"""Formulas in float32 that compute 8-bit ADD, SUB and MUL exactly.

These operators are sums and products with one rounding at the end. Candidates are formulas whose
constants are changed by a few units in the last place. Sums that are rounded to the nearest integer
take the least time, so they are tried first.

A formula and the core's kernel both round a number that is close to the real result. Their results
can differ only if the real result is close to the middle between two integers. So candidates are
tried on the pairs of operands with these results, the *close pairs*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import Table, quantized_activation_range
from delegraph_numba_cpu.instructions.elementwise import Operation
from delegraph_numba_cpu.lowering.checks import activation_of
from delegraph_numba_cpu.lowering.evaluation import every_value
from delegraph_numba_cpu.lowering.registry import Call

SUMS, PRODUCT = {"ADD": 1, "SUB": -1}, "MUL"

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

Parameters = tuple[float, ...]

Pairs = NDArray[np.intp]
"""Pairs of operands, ``[K]``: 256 times the bits of the first operand, plus those of the second."""

Constants = NDArray[np.float64]
"""Constants of K candidates, ``[constants, K]``; the last row is the half for rounding."""

CLOSE = 2.0**-8
"""Distance from the middle between two integers within which roundings may differ.

In float32, real results below :data:`_LARGEST` have errors below half of this distance, even if
constants are changed by :data:`ULPS`. Delegraph's own kernels have smaller errors: they compute
with 20 or 31 fractional bits.
"""

_LARGEST = 2.0**10
"""Largest real result of an operator for which close pairs are enough to try candidates."""

LARGEST_INTEGER = 2.0**30
"""Upper bound of the real results that the kernel truncates to integers."""

_SAMPLE = 64
"""Number of pairs on which all candidates are tried first."""


CORNERS: Pairs = np.array([256 * i + j for i in (0, 127, 128, 255) for j in (0, 127, 128, 255)])
"""Pairs of smallest and largest operands, signed and unsigned; all results lie between theirs."""


@np.errstate(all="ignore")
def close_pairs(call: Call) -> Pairs:
    """Return the close pairs of a node's operands, which show whether a formula is exact.

    If results may be so large that other pairs matter too, return all pairs.

    Args:
        call: an ADD, SUB or MUL node of 8-bit operands.
    """
    a, b, y = call.input(0), call.input(1), call.output()
    first, second = _values(a.dtype) - a.zero_point, _values(b.dtype) - b.zero_point
    margin = CLOSE
    if call.name == PRODUCT:
        factor = _product_factor(call)
        real = np.multiply.outer(first * np.float32(factor), second)
        margin += _double_rounding(factor)
    else:
        a_factor, b_factor = np.float32(a.scale / y.scale), np.float32(b.scale / y.scale)
        real = np.add.outer(first * a_factor, second * (SUMS[call.name] * b_factor))
    real = real.reshape(-1)
    if not (np.abs(real[CORNERS]) < _LARGEST).all():
        return np.arange(real.size)
    real -= np.rint(real)
    return np.flatnonzero(np.abs(real, out=real) >= 0.5 - margin)


@np.errstate(all="ignore")
def find_formula(call: Call, pairs: Pairs, wanted: Table | None) -> tuple[int, Parameters] | None:
    """Return a float32 formula that computes a node's results; None if none is exact.

    Args:
        call: an ADD, SUB or MUL node of 8-bit operands.
        pairs: the pairs of operands on which a formula is tried.
        wanted: the right result for each of *pairs*; None if the formula need not be exact.

    Returns:
        The operation of the chain, and its parameters.
    """
    kind = call.input(0).type.name
    found = None if call.name == PRODUCT else _find_nearest_sum(call, pairs, wanted)
    if found is not None:
        return _NEAREST[kind], found
    found = _find_truncation(call, pairs, wanted)
    return None if found is None else (_FORMULAS[call.name == PRODUCT, kind], found)


def _find_truncation(call: Call, pairs: Pairs, wanted: Table | None) -> Parameters | None:
    """Return the parameters of a float32 formula that adds a half and truncates.

    The result is None if no formula gives the *wanted* results of the node *call* for all *pairs*
    of operands.
    """
    a, b, y = call.input(0), call.input(1), call.output()
    low, high = quantized_activation_range(activation_of(call), y)
    is_product = call.name == PRODUCT
    zero_points = (a.zero_point, b.zero_point) if is_product else ()
    apply = _product if is_product else _sum

    def is_right(constants: Constants, pairs: Pairs, results: Table | None) -> NDArray[np.bool_]:
        *factors, half = constants.astype(np.float32)[..., None]
        found = apply(*_operands(a.dtype, pairs), *zero_points, *factors)
        found = found + np.copysign(half, found)
        has_integer: NDArray[np.bool_] = np.abs(found) < LARGEST_INTEGER
        if results is None:
            return has_integer
        whole = np.where(has_integer, found, 0).astype(np.int32)
        has_integer &= (whole + y.zero_point).clip(low, high) == results
        return has_integer

    found = _first_right(
        lambda moved: (_products if is_product else _sums)(call, moved), is_right, pairs, wanted
    )
    return None if found is None else (*zero_points, *found, y.zero_point, low, high)


def _find_nearest_sum(call: Call, pairs: Pairs, wanted: Table | None) -> Parameters | None:
    """Return the parameters of a sum that is rounded to the nearest integer; None if none is exact.

    Some processors round a product before they add it, others do not. Results must be right in both
    cases.

    *wanted* has the right result of the node *call* for each pair of operands in *pairs*.
    """
    y = call.output()
    low, high = quantized_activation_range(activation_of(call), y)
    dtype = call.input(0).dtype

    def candidates(moved: int) -> Constants:
        a_factor, b_factor, offset, half = _sums(call, moved)
        offset = offset + y.zero_point + (half - 0.5)
        numbers = np.array([a_factor, b_factor, offset]).astype(np.float32).astype(np.float64)
        return numbers[:, _are_plain(*numbers)]

    def is_right(constants: Constants, pairs: Pairs, results: Table | None) -> NDArray[np.bool_]:
        factors = constants.astype(np.float32)[..., None]
        a, b = _operands(dtype, pairs)
        sums = (add(a, b, *factors) for add in (_rounded_sum, _fused_sum))
        if results is None:
            return np.ones(constants.shape[1:] + pairs.shape, np.bool_)
        rounded, fused = (np.rint(found).clip(low, high) == results for found in sums)
        are_right: NDArray[np.bool_] = rounded & fused
        return are_right

    found = _first_right(candidates, is_right, pairs, wanted)
    return None if found is None else (*found, low, high)


IsRight = Callable[[Constants, Pairs, Table | None], NDArray[np.bool_]]
"""Function that returns whether results are right for each candidate and pair, ``[K, pairs]``."""


def _first_right(
    made: Callable[[int], Constants], is_right: IsRight, pairs: Pairs, wanted: Table | None
) -> Parameters | None:
    """Return the first candidate constants that give right results for all pairs; None if none do.

    The unchanged constants are right for most nodes, so they are tried alone first. Pairs with a
    wrong result mostly stay wrong for the next candidates, so these are first tried on a sample of
    the wrong pairs.

    Args:
        made: function that returns the constants of the candidates, given the largest number of
            values of each constant.
        is_right: function that tries candidates on pairs.
        pairs: the pairs of operands.
        wanted: the right result for each of *pairs*; None if the formula need not be exact.
    """
    candidates = made(1)
    if candidates.size and is_right(candidates[:, 0], pairs, wanted).all():
        return tuple(candidates[:, 0].tolist())
    candidates = made(len(HALVES))
    while candidates.size:
        first, candidates = candidates[:, 0], candidates[:, 1:]
        wrong = np.flatnonzero(~is_right(first, pairs, wanted))
        if not len(wrong):
            return tuple(first.tolist())
        sample = wrong[:: len(wrong) // _SAMPLE + 1]
        results = None if wanted is None else wanted[sample]
        candidates = candidates[:, is_right(candidates, pairs[sample], results).all(axis=-1)]
    return None


def _are_plain(
    a_factor: NDArray[np.float64], b_factor: NDArray[np.float64], offset: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether float64 computes :func:`_fused_sum` exactly for bytes and these numbers, ``[K]``.

    Sums are then below 2**11, and multiples of 2**-42.
    """
    sizes = np.abs([a_factor, b_factor])
    are_wide = ((sizes >= 2.0**-19) & (sizes <= 2)).all(axis=0)
    size = np.abs(offset)
    is_right: NDArray[np.bool_] = (size == 0) | ((size >= 2.0**-19) & (size <= 2.0**10))
    return is_right & are_wide


def _operands(
    dtype: np.dtype[Any], pairs: Pairs
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return both operands of *pairs*."""
    values = _values(dtype)
    return values[pairs >> 8], values[pairs & 0xFF]


@cache
def _values(dtype: np.dtype[Any]) -> NDArray[np.float32]:
    return every_value(dtype).astype(np.float32)


Floats = NDArray[np.float32]


def _sum(a: Floats, b: Floats, a_factor: Floats, b_factor: Floats, offset: Floats) -> Floats:
    """Return ``a * a_factor + b * b_factor + offset`` in float32, before rounding."""
    return a * a_factor + b * b_factor + offset


def _rounded_sum(
    a: Floats, b: Floats, a_factor: Floats, b_factor: Floats, offset: Floats
) -> Floats:
    """Return ``a * a_factor + (b * b_factor + offset)``, with products rounded to float32."""
    return a * a_factor + (b * b_factor + offset)


def _fused_sum(a: Floats, b: Floats, a_factor: Floats, b_factor: Floats, offset: Floats) -> Floats:
    """Return ``a * a_factor + (b * b_factor + offset)``, with products that are not rounded.

    Each of the two sums is rounded to float32, as a fused multiply-add does.
    """
    narrow, wide = np.float32, np.float64
    second = (b * b_factor.astype(wide) + offset).astype(narrow)
    return (a * a_factor.astype(wide) + second).astype(narrow)


def _product(a: Floats, b: Floats, a_zero: int, b_zero: int, factor: Floats) -> Floats:
    return ((a - np.float32(a_zero)) * (b - np.float32(b_zero))) * factor


ULPS = (0, 1, -1, 2, -2)

HALVES = (0.5, 0.5 + 2.0**-20, 0.5 - 2.0**-20, 0.5 + 2.0**-17, 0.5 - 2.0**-17)


def _sums(call: Call, moved: int) -> Constants:
    """Return the candidates of a sum: both factors, the offset and the half for rounding.

    Each constant has at most *moved* values.
    """
    a, b, y = call.input(0), call.input(1), call.output()
    a_factor, b_factor = a.scale / y.scale, SUMS[call.name] * b.scale / y.scale
    offset = -(a.zero_point * a_factor + b.zero_point * b_factor)
    ulps = ULPS[: min(moved, 3)]
    values = (_moved(value, ulps) for value in (a_factor, b_factor, offset))
    half, *numbers = np.array([*product(HALVES[:moved], *values)]).T
    return np.array([*numbers, half])


def _products(call: Call, moved: int) -> Constants:
    """Return the candidates of a product: the factor and the half, with *moved* values each."""
    factor = _product_factor(call)
    more = _double_rounding(factor)
    half, factors = np.array([*product(HALVES[:moved], _moved(factor, ULPS[:moved]))]).T
    return np.array([factors, half + more])


def _product_factor(call: Call) -> float:
    a, b, y = call.input(0), call.input(1), call.output()
    return float(np.float32(a.scale) * np.float32(b.scale) / np.float32(y.scale))


def _double_rounding(factor: float) -> float:
    """Return the largest error that the core's first rounding of a product causes in its result."""
    shift = math.frexp(factor)[1]
    return 2.0 ** (shift - 1) if shift < 0 else 0.0


def _moved(value: float, ulps: Sequence[int]) -> NDArray[np.float64]:
    """Return *value* changed by each of *ulps* units in the last place, in float32."""
    number = np.float32(value)
    return np.asarray(number + np.array(ulps, np.float32) * np.spacing(number), np.float64)
