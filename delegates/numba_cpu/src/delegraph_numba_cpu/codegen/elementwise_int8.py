"""Operations on 8-bit integers that use packing instructions, mostly on pairs of operands."""

from __future__ import annotations

from collections.abc import Callable

from delegraph_numba_cpu.codegen import x86_bytes
from delegraph_numba_cpu.codegen.elementwise_operations import HALF, WIDE, operation
from delegraph_numba_cpu.codegen.intrinsics import I8, I32
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.instructions.elementwise import Operation


def _unsigned_less(a: Lanes, b: Lanes) -> Lanes:
    return Lanes(a.builder, a.builder.icmp_unsigned("<", a.value, b.value))


def _rounded(x: Lanes, half: Lanes, zero: Lanes, low: Lanes, high: Lanes, *, signed: bool) -> Lanes:
    """Return bytes: float32 *x* rounded, plus *zero*, and clamped to *low* and *high*.

    To round, *half*, with the sign of *x*, is added to *x*, and the sum is truncated. The lowering
    has checked that all values fit int32. *signed* says whether the bytes are int8.
    """
    return _as_bytes((x + half.with_sign_of(x)).to_integer() + zero, low, high, signed)


def _as_bytes(whole: Lanes, low: Lanes, high: Lanes, signed: bool) -> Lanes:
    """Return int32 *whole* clamped between *low* and *high*, as bytes; int8 if *signed*."""
    if not x86_bytes.IS_THERE:
        return whole.at_least(low).at_most(high).narrow(I8)
    found = x86_bytes.saturated_bytes(whole, signed=signed)
    low, high = low.narrow(I8), high.narrow(I8)
    if signed:
        return found.at_least(low).at_most(high)
    found = _unsigned_less(found, low).choose(low, found)
    return _unsigned_less(high, found).choose(high, found)


def _sum(signed: bool) -> Callable[..., Lanes]:
    """Return the operation ``a * a_factor + b * b_factor + offset`` of a chain, for bytes.

    Results are rounded and clamped. *signed* says whether the bytes are int8.

    Each product and each sum is rounded. The lowering has checked the results for every pair of
    operands for which roundings may differ from the official roundings.
    """

    def function(a: Lanes, b: Lanes, a_factor: Lanes, b_factor: Lanes, offset: Lanes,
                 *rounding: Lanes) -> Lanes:  # fmt: skip
        a, b = (x.widen(I32, signed=signed).to_float() for x in (a, b))
        return _rounded(a * a_factor + b * b_factor + offset, *rounding, signed=signed)

    return function


def _scaled(signed: bool) -> Callable[..., Lanes]:
    """Return the operation ``x * factor + offset`` of a chain, for bytes.

    Results are rounded to the nearest integer and clamped. *signed* says whether the bytes are
    int8. The lowering has checked the results for every value, with and without a rounding between
    product and sum.
    """

    def function(x: Lanes, factor: Lanes, offset: Lanes, low: Lanes, high: Lanes) -> Lanes:
        total = x.widen(I32, signed=signed).to_float().times_plus(factor, offset)
        if x86_bytes.IS_THERE:
            return _as_bytes(x86_bytes.nearest_integer(total), low, high, signed)
        return _as_bytes(total.nearest_integer(), low, high, signed)

    return function


def _nearest_sum(signed: bool) -> Callable[..., Lanes]:
    """Return the operation ``a * a_factor + b * b_factor + offset`` of a chain, for bytes.

    Results are rounded to the nearest integer. The zero point is in the offset. The lowering has
    checked the results for every pair of operands for which roundings may differ, with and without
    a rounding between product and sum.
    """

    def function(a: Lanes, b: Lanes, a_factor: Lanes, b_factor: Lanes, offset: Lanes,
                 low: Lanes, high: Lanes) -> Lanes:  # fmt: skip
        a, b = (x.widen(I32, signed=signed).to_float() for x in (a, b))
        total = a.times_plus(a_factor, b.times_plus(b_factor, offset))
        if x86_bytes.IS_THERE:
            return _as_bytes(x86_bytes.nearest_integer(total), low, high, signed)
        return _as_bytes(total.nearest_integer(), low, high, signed)

    return function


def _quantized(signed: bool) -> Callable[..., Lanes]:
    """Return the operation that turns float32 into bytes: times a factor, rounded, clamped.

    Halves are rounded to even, and the zero point is added last.

    The limit *high* is relative to the zero point. NaN becomes the least value.
    """

    def function(x: Lanes, factor: Lanes, low: Lanes, high: Lanes, zero_point: Lanes) -> Lanes:
        whole = x86_bytes.nearest_integer((x * factor).at_most(high))
        return x86_bytes.saturated_bytes(whole, signed=signed, zero=zero_point)

    return function


def _product(signed: bool) -> Callable[..., Lanes]:
    """Return the operation ``(a - a_zero) * (b - b_zero) * factor`` of a chain, for bytes.

    Results are rounded and clamped. *signed* says whether the bytes are int8.
    """

    def function(a: Lanes, b: Lanes, a_zero: Lanes, b_zero: Lanes, factor: Lanes,
                 *rounding: Lanes) -> Lanes:  # fmt: skip
        a, b = a.widen(I32, signed=signed), b.widen(I32, signed=signed)
        product = ((a - a_zero).to_float() * (b - b_zero).to_float()) * factor
        return _rounded(product, *rounding, signed=signed)

    return function


_PAIRS = WIDE if x86_bytes.IS_THERE else HALF

operation(Operation.SUM_OF_INT8, "ffffiii", _PAIRS)(_sum(True))
operation(Operation.SUM_OF_UINT8, "ffffiii", _PAIRS)(_sum(False))
operation(Operation.NEAREST_SUM_OF_INT8, "fffii", _PAIRS)(_nearest_sum(True))
operation(Operation.NEAREST_SUM_OF_UINT8, "fffii", _PAIRS)(_nearest_sum(False))
operation(Operation.SCALED_INT8, "ffii", _PAIRS)(_scaled(True))
operation(Operation.SCALED_UINT8, "ffii", _PAIRS)(_scaled(False))
operation(Operation.PRODUCT_OF_INT8, "iiffiii", _PAIRS)(_product(True))
operation(Operation.PRODUCT_OF_UINT8, "iiffiii", _PAIRS)(_product(False))
if x86_bytes.IS_THERE:
    operation(Operation.QUANTIZE_INT8, "fffi")(_quantized(True))
    operation(Operation.QUANTIZE_UINT8, "fffi")(_quantized(False))

operation(Operation.LARGER_INT8)(lambda a, b: (a > b).choose(a, b))
operation(Operation.LARGER_UINT8)(lambda a, b: _unsigned_less(a, b).choose(b, a))
operation(Operation.SMALLER_INT8)(lambda a, b: (a > b).choose(b, a))
operation(Operation.SMALLER_UINT8)(lambda a, b: _unsigned_less(a, b).choose(a, b))
