"""Operations on int16 in fixed point: to a common scale, and from there to results."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.elementwise_operations import QUARTER, operation
from delegraph_numba_cpu.codegen.intrinsics import I16, I32, I64
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.instructions.elementwise import Operation


def _scaled(x: Lanes, left: Lanes, multiplier: Lanes, right: Lanes) -> Lanes:
    """Return int32 ``x * multiplier * 2**(left - right - 31)``, rounded twice.

    The product is rounded to the nearest integer, halves up; the shift to the right rounds halves
    away from zero.
    """
    product = (x << left).widen(I64, signed=True) * multiplier.widen(I64, signed=True)
    high = (product + (1 << 30)) >> 31
    shift = right.widen(I64, signed=True)
    half = (high.filled(1) << shift) >> 1
    away = shift.equals(0).choose(high.filled(0), high >> 63)
    return ((high + half + away) >> shift).narrow(I32)


@operation(Operation.RESCALE_INT16, "iiiii", QUARTER)
def rescale(
    x: Lanes, zero_point: Lanes, left: Lanes, down: Lanes, multiplier: Lanes, right: Lanes
) -> Lanes:
    """Return int16 *x* minus its zero point, converted to another scale, as int32.

    The difference is shifted left by *left* bits, then right by *down* bits. Then it is rescaled by
    *multiplier* and *right*; see :func:`_scaled`.
    """
    number = ((x.widen(I32, signed=True) - zero_point) << left) >> down
    return _scaled(number, left.filled(0), multiplier, right)


@operation(Operation.PRODUCT_OF_INT16, lanes=QUARTER)
def product(a: Lanes, b: Lanes) -> Lanes:
    """Return the products of *a* and *b* as int32."""
    return a.widen(I32, signed=True) * b.widen(I32, signed=True)


@operation(Operation.STORE_INT16, "iiiiii", QUARTER)
def store_int16(
    x: Lanes, left: Lanes, multiplier: Lanes, right: Lanes, zero_point: Lanes, low: Lanes,
    high: Lanes,
) -> Lanes:  # fmt: skip
    """Return int32 *x* as int16: rescaled, plus *zero_point*, and clamped to *low* and *high*.

    For *left*, *multiplier* and *right* see :func:`_scaled`.
    """
    number = _scaled(x, left, multiplier, right) + zero_point
    return number.at_least(low).at_most(high).narrow(I16)
