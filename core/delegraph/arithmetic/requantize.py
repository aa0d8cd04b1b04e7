"""From integer accumulators to quantized outputs, exactly as the fixed-point kernels round.

The fixed-point pipeline multiplies by a Q31 mantissa, rounds, shifts right and rounds again. Both
roundings are floors of a sum, and nested floors merge::

    floor((floor(a * m / 2**31 + 1/2) + 2**(e-1)) / 2**e)
        = floor(a * m / 2**(31+e) + 1/2 + 2**-(e+1))

so one float64 multiply, one add and one floor give the same integer wherever the float64 product
is exact, that is below 2**53 units. Kernels whose second rounding takes halves away from zero
differ by ``2**-e`` in the constant, for negative values only. Accumulators large enough to lose
bits saturate anyway; where a prepare-time bound cannot show that, integer arithmetic takes over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.channelwise import TILE, by_pattern, repeated
from delegraph.arithmetic.fixed_point import (
    IntArray,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_gemm,
    multiply_by_quantized_multiplier_int64,
    quantize_multipliers,
    reduce_multiplier,
)
from delegraph.operators.registration import OpContext

_EXACT_BITS = 53


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """How accumulators are scaled to output units, per channel.

    Attributes:
        factor: the multiplier as a real number, ``[O], float64``, exact.
        half: what is added before the floor, ``[O], float64``.
        away: what is taken from negative values before the floor, so that their halves go away
            from zero, ``[O], float64``; 0 where halves go up.
        unit: the product is a multiple of this power of two, ``[O], float64``.
        exact: the definition in integers: accumulators ``[..., O], int64`` to ``int32``.
    """

    factor: NDArray[np.float64]
    half: NDArray[np.float64]
    away: NDArray[np.float64]
    unit: NDArray[np.float64]
    exact: Callable[[IntArray], IntArray]


def fixed_point_scaling(
    multipliers: NDArray[np.float64], halves_away: NDArray[np.bool_] | bool
) -> Scaling:
    """Return the scaling by Q31 multipliers that rounds twice.

    Args:
        multipliers: real multipliers, ``[O], float64``.
        halves_away: where the second rounding takes halves away from zero
            (:func:`multiply_by_quantized_multiplier`) and not up
            (:func:`multiply_by_quantized_multiplier_gemm`); per channel or for all.
    """
    mantissa, shift = quantize_multipliers(multipliers)
    away = np.broadcast_to(np.asarray(halves_away), mantissa.shape)
    right = np.maximum(-shift, 0)
    last_bit = np.where(right > 0, np.ldexp(1.0, -right), 0.0)

    def exact(acc: IntArray) -> IntArray:
        up = multiply_by_quantized_multiplier_gemm(acc, mantissa, shift)
        return np.where(away, multiply_by_quantized_multiplier(acc, mantissa, shift), up)

    return Scaling(
        factor=np.ldexp(mantissa.astype(np.float64), shift - 31),
        half=0.5 + last_bit / 2,
        away=np.where(away, last_bit, 0.0),
        unit=np.ldexp(1.0, shift - 31),
        exact=exact,
    )


def int64_scaling(multipliers: NDArray[np.float64]) -> Scaling:
    """Return the scaling by Q15 multipliers of kernels with int64 accumulators.

    Args:
        multipliers: real multipliers, ``[O], float64``.
    """
    mantissa, shift = quantize_multipliers(multipliers)
    return Scaling(
        factor=np.ldexp(reduce_multiplier(mantissa).astype(np.float64), shift - 15),
        half=np.full(mantissa.shape, 0.5),
        away=np.zeros(mantissa.shape),
        unit=np.ldexp(1.0, shift - 15),
        exact=lambda acc: multiply_by_quantized_multiplier_int64(acc, mantissa, shift),
    )


def real_scaling(multipliers: NDArray[np.float64]) -> Scaling:
    """Return the scaling that multiplies in float64 and rounds halves away from zero.

    Args:
        multipliers: real multipliers, ``[O], float64``; those that are not finite count as 0.

    Source:
        FullyConnected with scales, tflite/kernels/internal/reference/integer_ops.
    """
    multipliers = np.where(np.isfinite(multipliers), multipliers, 0.0)

    def exact(acc: IntArray) -> IntArray:
        real = acc * multipliers
        whole = np.trunc(real)
        whole += np.copysign(np.abs(real - whole) >= 0.5, real)
        return whole.astype(np.int64)

    never = np.zeros(multipliers.shape)  # a product of any real number has no known last bit
    return Scaling(multipliers, never, never, never, exact)


class Method(Enum):
    """How :class:`Requantize` computes."""

    TRUNCATE = auto()
    """In float64, the zero point added together with the bias."""
    FLOOR_FIRST = auto()
    """In float64, the zero point added last: tiny multipliers leave no bits for it before."""
    INTEGERS = auto()
    """By the definition, several times slower."""


class Requantize:
    """Adds the bias, scales, rounds, shifts by the zero point, clamps and stores.

    One object belongs to one node; calling it touches arrays only.

    Args:
        context: for working memory; None while invoking, when none can be had: the result is then
            computed in integers.
        scaling: see :class:`Scaling`.
        bias: added to the accumulators first, ``[O], int64``.
        bound: no accumulator without bias is larger in magnitude; per channel or for all.
        zero_point: of the output.
        low: smallest stored value.
        high: largest stored value.
        dtype: integer type of the output.

    Attributes:
        method: how results are computed; all give the same.
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
        self._bias = bias
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
        """Return the fastest method by which no accumulator rounds differently."""
        zero_point, (low, high) = self._zero_point, self._range
        limit = np.ldexp(scaling.unit, _EXACT_BITS)
        product = bound * scaling.factor
        offset = np.abs(bias * scaling.factor) + 1  # with the half
        values = 1 << (8 * self._dtype.itemsize)
        if _is_exact(limit, product, offset + values, values):
            return Method.TRUNCATE
        if _is_exact(limit, product, offset, max(high - zero_point, zero_point - low) + 1):
            return Method.FLOOR_FIRST
        return Method.INTEGERS

    def _without_constant_channels(
        self, bound: NDArray[np.float64] | float
    ) -> tuple[Scaling, NDArray[np.int64]]:
        """Return scaling and bias in which channels of only one possible result are constants.

        Pruned channels keep weights of zero, a tiny scale and with it a bias of 30 bits, too many
        for float64.
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
        # Negative values differ only below the zero point, and that may be clamped away.
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
        """Requantise *acc* into *out*.

        Args:
            acc: exact integers, ``[..., O]``, contiguous, any float dtype.
            out: the same shape, contiguous.
        """
        if self.method != Method.INTEGERS:
            unsigned = out.reshape(-1).view(self._unsigned)
            by_pattern(self._store, len(self._factor), acc.reshape(-1), unsigned)
        else:
            self._store_exactly(acc, out)

    def _store(self, acc: NDArray[Any], out: NDArray[Any]) -> None:
        length = acc.shape[-1]
        value = self._product.data[: acc.size].reshape(acc.shape)
        np.copyto(value, acc)  # faster than letting the product convert
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
        np.copyto(out, value, casting="unsafe")  # truncates, and nothing is negative any more
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
    """Return whether ``product + offset`` rounds in float64 as it does in integers.

    Args:
        limit: magnitude from which float64 loses bits, per channel.
        product: largest magnitude of what varies.
        offset: magnitude of what is constant.
        reach: from this magnitude on the sum saturates the output, whatever its last bits are.
    """
    fits = product + offset < limit
    harmless = (product < limit) | (limit - offset > reach)
    return bool((fits | (harmless & (offset < limit) & (limit >= reach))).all())
