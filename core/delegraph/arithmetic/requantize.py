"""Requantisation: converts integer accumulators to quantized outputs, like official kernels.

:func:`requantizer` returns the function that most integer kernels need, for sums of any size.
:class:`Requantize` is for kernels with bounds per channel, or with another scaling.

The fixed-point pipeline multiplies by a Q31 mantissa, rounds, shifts right and rounds again. Both
roundings are floors of a sum, and nested floors merge::

    floor((floor(a * m / 2**31 + 1/2) + 2**(e-1)) / 2**e)
        = floor(a * m / 2**(31+e) + 1/2 + 2**-(e+1))

So one float64 multiplication, one addition and one floor give the same integer if the float64
product is exact, that is below 2**53 units. For kernels whose second rounding rounds halves away
from zero, the constant differs by ``2**-e``, for negative values only. Accumulators that are too
large for exact float64 products are usually saturated anyway. If this cannot be proven in prepare,
integer arithmetic is used.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from delegraph.arithmetic.accumulator_scaling import Scaling, fixed_point_scaling, int64_scaling
from delegraph.arithmetic.channelwise import TILE, by_pattern, repeated
from delegraph.operators.registration import OpContext

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_EXACT_BITS = 53

Store: TypeAlias = "Callable[[NDArray[Any], NDArray[Any]], None]"
"""Function that requantises sums, ``[..., O]`` in any float type, into an integer array.

Both arrays are contiguous and have the same shape.

The sums are the first argument, and the integer array is the second.
"""


def requantizer(
    context: OpContext,
    multipliers: NDArray[np.float64],
    bias: NDArray[np.integer[Any]],
    bound: float,
    zero_point: int,
    dtype: DTypeLike,
    *,
    limits: tuple[int, int] | None = None,
    int64_sums: bool = False,
) -> Store:
    """Return the function that requantises sums like most integer kernels.

    Args:
        context: context that provides working memory.
        multipliers: factors from sums to units of the output, ``[O], float64``.
        bias: numbers that are added to the sums first, ``[O]``.
        bound: largest magnitude of a sum without bias.
        zero_point: zero point of the output.
        dtype: integer type of the output.
        limits: smallest and largest value; by default the limits of *dtype*.
        int64_sums: whether the official kernel sums in 64 bits, and so rounds only once.

    Source:
        MultiplyByQuantizedMultiplier, tflite/kernels/internal/common.cc.
    """
    scaling = int64_scaling(multipliers) if int64_sums else fixed_point_scaling(multipliers, True)
    kind = np.dtype(dtype)
    low, high = limits or (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    wide_bias = bias.astype(np.int64)
    largest = bound + float(np.abs(wide_bias).max(initial=0))
    if largest * max(2 * float(multipliers.max(initial=0)), 1.0) < 2**31:
        return Requantize(context, scaling, wide_bias, bound, zero_point, low, high, kind)

    def wrapping(acc: NDArray[Any], out: NDArray[Any]) -> None:
        # Sums beyond 32 bits wrap before they saturate, as in the official kernels.
        scaled = scaling.exact(acc.astype(np.int64) + wide_bias).astype(np.int32)
        out[...] = np.clip(scaled.astype(np.int64) + zero_point, low, high)

    return wrapping


class Method(Enum):
    """How :class:`Requantize` computes: in float64, in one of two orders, or in integers."""

    TRUNCATE = auto()
    """Computation in float64; the zero point is added together with the bias."""
    FLOOR_FIRST = auto()
    """Computation in float64; the zero point is added last, as tiny multipliers need all bits."""
    INTEGERS = auto()
    """Computation in integers by the definition, several times slower."""


LARGEST_BIAS = 1 << 62
"""Largest magnitude of a bias; with a larger bias, sums could overflow."""


class Requantize:
    """Adds the bias, scales, rounds, shifts by the zero point, clamps and stores.

    Each node has its own object; calling it touches only arrays.

    Args:
        context: context that provides working memory. During invoke it is None, and results are
            computed in integers.
        scaling: scaling of the accumulators.
        bias: numbers that are added to the accumulators first, ``[O], int64``.
        bound: largest magnitude of an accumulator without bias; per channel or for all.
        zero_point: zero point of the output.
        low: smallest stored value.
        high: largest stored value.
        dtype: integer type of the output.

    Attributes:
        method: method of computation; all methods give the same results.
    """

    def __init__(
        self,
        context: OpContext | None,
        scaling: Scaling,
        bias: NDArray[np.int64],
        bound: NDArray[np.float64] | float,
        zero_point: int,
        low: int,
        high: int,
        dtype: np.dtype[Any],
    ) -> None:
        self._scaling = scaling
        self._bias = bias = np.clip(bias, -LARGEST_BIAS, LARGEST_BIAS)
        self._zero_point = zero_point
        self._range = low, high
        self._dtype = dtype
        self.method = Method.INTEGERS
        if context is None:
            return
        reals = scaling
        self.method = self._method_for(reals, bias, bound)
        if self.method == Method.INTEGERS:
            reals, bias = self._without_constant_channels(bound)
            self.method = self._method_for(reals, bias, bound)
        if self.method != Method.INTEGERS:
            self._prepare_floats(context, reals, bias)

    def _method_for(
        self, scaling: Scaling, bias: NDArray[np.int64], bound: NDArray[np.float64] | float
    ) -> Method:
        """Return the fastest method that rounds every possible accumulator correctly.

        Args:
            scaling: factors and rounding of the accumulators.
            bias: numbers that are added to the accumulators first, ``[O], int64``.
            bound: largest magnitude of an accumulator without bias; per channel or for all.
        """
        zero_point, (low, high) = self._zero_point, self._range
        limit = np.ldexp(scaling.unit, _EXACT_BITS)
        product = bound * scaling.factor
        offset = np.abs(bias * scaling.factor) + 1  # including the half
        values = 1 << (8 * self._dtype.itemsize)
        if _is_exact(limit, product, offset + values, values):
            return Method.TRUNCATE
        if _is_exact(limit, product, offset, max(high - zero_point, zero_point - low) + 1):
            return Method.FLOOR_FIRST
        return Method.INTEGERS

    def _without_constant_channels(
        self, bound: NDArray[np.float64] | float
    ) -> tuple[Scaling, NDArray[np.int64]]:
        """Return scaling and bias; a channel with only one possible result becomes a constant.

        *bound* is the largest magnitude of an accumulator without bias.

        Pruned channels have zero weights and a tiny scale, so their bias has 30 bits, which is too
        many for exact float64 products.
        """
        scaling, bias, (low, high) = self._scaling, self._bias, self._range
        reach = np.broadcast_to(bound, bias.shape).astype(np.int64)
        least, most = (
            np.clip(scaling.exact(acc) + self._zero_point, low, high) - self._zero_point
            for acc in (bias - reach, bias + reach)
        )
        fixed = least == most
        return Scaling(
            factor=np.where(fixed, 0.0, scaling.factor),
            half=np.where(fixed, least, scaling.half),
            away=np.where(fixed, 0.0, scaling.away),
            unit=np.where(fixed, 1.0, scaling.unit),
            exact=scaling.exact,
        ), np.where(fixed, 0, bias)

    def _prepare_floats(
        self, context: OpContext, scaling: Scaling, bias: NDArray[np.int64]
    ) -> None:
        low, high = self._range
        bits, self._unsigned = self._dtype.itemsize * 8, np.dtype(f"u{self._dtype.itemsize}")
        self._sign_bit = 0 if self._dtype == self._unsigned else 1 << (bits - 1)
        shift = self._zero_point + self._sign_bit
        self._factor = repeated(scaling.factor)
        offset, half = bias * scaling.factor, scaling.half
        # Negative values differ only below the zero point, which may be clamped away.
        self._splits_signs = bool(scaling.away.any()) and low < self._zero_point
        if self._splits_signs:
            self._product_bias = repeated(offset)
            self._half_away = repeated(scaling.away / 2)
            self._signs = context.scratch((max(TILE, len(offset)),), np.float64)
            offset, half = np.zeros_like(offset), half - scaling.away / 2
        self._shift = 0.0
        if self.method == Method.FLOOR_FIRST:
            shift, self._shift = 0, float(shift)
        self._offset = repeated(offset + half + shift)
        self._low = low + self._sign_bit - self._shift
        self._high = high + self._sign_bit - self._shift
        self._product = context.scratch((max(TILE, len(offset)),), np.float64)

    def __call__(self, acc: NDArray[Any], out: NDArray[Any]) -> None:
        """Requantise the accumulators *acc* and store the integers in *out*.

        Args:
            acc: exact integers, ``[..., O]``, contiguous, any float dtype.
            out: the same shape, contiguous.
        """
        if not acc.size:
            return
        if self.method != Method.INTEGERS:
            unsigned = out.reshape(-1).view(self._unsigned)
            by_pattern(self._store, len(self._factor), acc.reshape(-1), unsigned)
        else:
            self._store_exactly(acc, out)

    def _store(self, acc: NDArray[Any], out: NDArray[Any]) -> None:
        length = acc.shape[-1]
        value = self._product.data[: acc.size].reshape(acc.shape)
        np.copyto(value, acc)  # faster than a conversion in the product
        value *= self._factor[:length]
        if self._splits_signs:
            value += self._product_bias[:length]
            signed_half = self._signs.data[: acc.size].reshape(acc.shape)
            np.copysign(self._half_away[:length], value, out=signed_half)
            value += signed_half
        value += self._offset[:length]
        if self.method == Method.FLOOR_FIRST:
            np.floor(value, out=value)
        np.clip(value, self._low, self._high, out=value)
        if self._shift:
            value += self._shift
        # The conversion truncates; all values are non-negative here.
        np.copyto(out, value, casting="unsafe")
        if self._sign_bit:
            np.bitwise_xor(out, out.dtype.type(self._sign_bit), out=out)

    def _store_exactly(self, acc: NDArray[Any], out: NDArray[Any]) -> None:
        rows = max(TILE // acc.shape[-1], 1)
        flat, stored = acc.reshape(-1, acc.shape[-1]), out.reshape(-1, acc.shape[-1])
        for start in range(0, len(flat), rows):
            value = self._scaling.exact(flat[start : start + rows].astype(np.int64) + self._bias)
            stored[start : start + rows] = np.clip(value + self._zero_point, *self._range)


def _is_exact(
    limit: NDArray[np.float64],
    product: NDArray[np.float64],
    offset: NDArray[np.float64],
    reach: float,
) -> bool:
    """Whether float64 gives the exact integer for every accumulator that an output may have.

    Float64 has 53 bits. Accumulator times factor, plus the rounding constant, must fit in 53 bits,
    unless the output is clamped.

    Args:
        limit: magnitude from which float64 loses bits, for each channel.
        product: largest magnitude of the product.
        offset: magnitude of the constant.
        reach: magnitude from which the output is saturated, so that rounding errors have no effect.
    """
    fits = product + offset < limit
    harmless = (product < limit) | (limit - offset > reach)
    return bool((fits | (harmless & (offset < limit) & (limit >= reach))).all())
