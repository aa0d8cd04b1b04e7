"""Scaling of integer accumulators to units of a quantized output: factors and rounding.

TFLite's kernels scale in three ways: with two roundings and a Q31 multiplier (most kernels), with
one rounding and a Q15 multiplier (int64 accumulators), and in real numbers.
:mod:`delegraph.arithmetic.requantize` applies the scalings. The functions use only operators and
methods of the arrays, so that (traced) JAX arrays work as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic.fixed_point import (
    IntArray,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_gemm,
    quantize_multipliers,
    reduce_multiplier,
    wide_multiply_by_quantized_multiplier,
)
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_SUM = (1 << 47) - 1
"""Largest int64 sum whose product with a 15-bit multiplier is still an int64."""

_LARGEST_REAL = float(1 << 62)

_MOST_SCALINGS = 128
"""Number of results of :func:`fixed_point_scaling` that are kept.

The results for a node are needed several times: when the node is checked, claimed and prepared.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Parameters by which accumulators are scaled to output units, per channel.

    Attributes:
        factor: the multiplier as a real number, ``[O], float64``, exact.
        half: number that is added before the floor, ``[O], float64``.
        away: number that is subtracted from negative values before the floor, ``[O], float64``, so
            that their halves are rounded away from zero; 0 if halves are rounded up.
        unit: power of two of which every product of accumulator and factor is a multiple, ``[O],
            float64``.
        exact: function that scales accumulators ``[..., O], int64`` in integer arithmetic, the
            exact definition; results outside of the output's range are saturated later.
    """

    factor: NDArray[np.float64]
    half: NDArray[np.float64]
    away: NDArray[np.float64]
    unit: NDArray[np.float64]
    exact: Callable[[IntArray], IntArray]


def fixed_point_scaling(
    multipliers: NDArray[np.float64], halves_away: NDArray[np.bool_] | bool
) -> Scaling:
    """Return the scaling of 32-bit accumulators to outputs, by Q31 mantissas and two roundings.

    Args:
        multipliers: real multipliers, ``[O], float64``.
        halves_away: whether the second rounding rounds halves away from zero
            (:func:`multiply_by_quantized_multiplier`) or up
            (:func:`multiply_by_quantized_multiplier_gemm`); per channel or for all.
    """
    reals = np.asarray(multipliers, np.float64)
    away = np.broadcast_to(halves_away, reals.shape)
    return _fixed_point_scaling(reals.tobytes(), away.tobytes())


@lru_cache(_MOST_SCALINGS)
def _fixed_point_scaling(reals: bytes, halves_away: bytes) -> Scaling:
    """Return the result of :func:`fixed_point_scaling`, given the bytes of its array arguments.

    *reals* are the bytes of the multipliers, float64; *halves_away* those of the flags, bool.
    Callers share the result and must not change its arrays.
    """
    mantissa, shift = quantize_multipliers(np.frombuffer(reals))
    away = np.frombuffer(halves_away, np.bool_)
    right = np.maximum(-shift, 0)
    last_bit = np.where(right > 0, np.ldexp(1.0, -right), 0.0)

    def exact(acc: IntArray) -> IntArray:
        up = multiply_by_quantized_multiplier_gemm(acc, mantissa, shift)
        if not away.any():
            return up
        otherwise: IntArray = multiply_by_quantized_multiplier(acc, mantissa, shift)
        mixed: IntArray = up + (otherwise - up) * away
        return mixed

    arrays = (
        np.ldexp(mantissa.astype(np.float64), shift - 31),
        0.5 + last_bit / 2,
        np.where(away, last_bit, 0.0),
        np.ldexp(1.0, shift - 31),
    )
    for array in arrays:
        array.setflags(write=False)
    return Scaling(*arrays, exact)


def int64_scaling(multipliers: NDArray[np.float64]) -> Scaling:
    """Return the scaling of 64-bit accumulators to outputs, by Q15 mantissas.

    Args:
        multipliers: real multipliers, ``[O], float64``.
    """
    mantissa, shift = quantize_multipliers(multipliers)

    def exact(acc: IntArray) -> IntArray:
        within = acc.clip(-_LARGEST_SUM, _LARGEST_SUM)
        return wide_multiply_by_quantized_multiplier(within, mantissa, shift)

    return Scaling(
        factor=np.ldexp(reduce_multiplier(mantissa).astype(np.float64), shift - 15),
        half=np.full(mantissa.shape, 0.5),
        away=np.zeros(mantissa.shape),
        unit=np.ldexp(1.0, shift - 15),
        exact=exact,
    )


def real_scaling(multipliers: NDArray[np.float64]) -> Scaling:
    """Return the scaling of accumulators to outputs in float64, halves rounded away from zero.

    Args:
        multipliers: real multipliers, ``[O], float64``; multipliers that are not finite count as 0.

    Source:
        FullyConnected with scales, tflite/kernels/internal/reference/integer_ops.
    """
    multipliers = np.where(np.isfinite(multipliers), multipliers, 0.0)

    def exact(acc: IntArray) -> IntArray:
        real = (acc * multipliers).clip(-_LARGEST_REAL, _LARGEST_REAL)
        whole: IntArray = real.astype(np.int64)
        rounded: IntArray = whole + (real - whole >= 0.5) - (whole - real >= 0.5).astype(np.int64)
        return rounded

    never = np.zeros(multipliers.shape)  # a real number has no last bit of known weight
    return Scaling(multipliers, never, never, never, exact)
