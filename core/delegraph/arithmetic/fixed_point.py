"""TFLite's MultiplyByQuantizedMultiplier: fixed-point multiplication, bit for bit.

A real multiplier M is stored as a 31-bit mantissa m and a shift s: ``M = m * 2**(s - 31)``. ``x *
M`` is then rounded to an integer. Kernels round in different ways, each of which has a function:

===============================================  ================================================
:func:`multiply_by_quantized_multiplier`         most kernels: rounds twice, the second time with
                                                 halves away from zero
:func:`multiply_by_quantized_multiplier_gemm`    matrix products (ruy on x86): rounds twice, both
                                                 times with halves up
:func:`multiply_by_quantized_multiplier_int64`   int16 activations: 15-bit mantissa, rounds once
===============================================  ================================================

All functions take integer arrays of any width. Multiplier and shift broadcast, so multipliers per
channel are an array as long as the last axis. The functions use only operators and methods of the
arrays, so that (traced) JAX arrays work as well. These functions are the definitions;
:mod:`delegraph.arithmetic.requantize` scales, shifts and stores a whole kernel's sums faster.

Source:
    MultiplyByQuantizedMultiplier, tflite/kernels/internal/common.{h,cc}; gemmlowp's fixedpoint.h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

IntArray: TypeAlias = "NDArray[Any]"
"""An integer array of any width."""

_LARGEST_SHIFT = 31

_MOST_MULTIPLIERS = 1024
"""Number of results of :func:`unlimited_multiplier` that are kept.

The results for a node are needed several times: when the node is checked, claimed and prepared.
"""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def quantize_multiplier(real: float) -> tuple[int, int]:
    """Return the Q31 mantissa and the left shift that together represent *real*.

    Multipliers below 2**-32 become ``(0, 0)``, and so do infinities and NaN.

    >>> quantize_multiplier(0.375)
    (1610612736, -1)

    Raises:
        OperatorError: *real* is 2**31 or more, which needs too large a shift.

    Source:
        QuantizeMultiplier, tflite/kernels/internal/quantization_util.cc.
    """
    mantissa, shift = unlimited_multiplier(real)
    _require_shifts(shift, real)
    return mantissa, shift


@lru_cache(_MOST_MULTIPLIERS)
def unlimited_multiplier(real: float) -> tuple[int, int]:
    """Return :func:`quantize_multiplier` of *real*, with a left shift that may exceed 31.

    C does not define such a shift. Its effect in the official kernels is described at
    :func:`multiply_by_quantized_multiplier` and :func:`multiply_by_quantized_multiplier_gemm`.

    >>> unlimited_multiplier(2.0**40)
    (1073741824, 41)
    """
    if real == 0.0 or not math.isfinite(real):
        return 0, 0
    fraction, shift = math.frexp(real)
    mantissa = round_half_away(fraction * (1 << 31))
    if mantissa == 1 << 31:
        mantissa //= 2
        shift += 1
    return (0, 0) if shift < -31 else (mantissa, shift)


def quantize_multipliers(
    reals: NDArray[np.float64] | Sequence[float],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return :func:`quantize_multiplier` of each multiplier, as two arrays, ``[K], int64``.

    Args:
        reals: real multipliers, ``[K]``.

    Raises:
        OperatorError: a multiplier is negative, or 2**31 or more.
    """
    values = np.asarray(reals, np.float64)
    fractions, exponents = np.frexp(np.where(np.isfinite(values), values, 0.0))
    mantissas = np.floor(fractions * 2.0**31 + 0.5).astype(np.int64)
    shifts = exponents.astype(np.int64)
    is_carried = mantissas == 1 << 31
    mantissas[is_carried] >>= 1
    shifts[is_carried] += 1
    is_nothing = (mantissas == 0) | (shifts < -31)
    mantissas[is_nothing] = 0
    shifts[is_nothing] = 0
    if mantissas.min(initial=0) < 0:
        raise OperatorError(f"scales give the multiplier {values.min()}, expected none below 0")
    _require_shifts(int(shifts.max(initial=0)), float(values.max(initial=0)))
    return mantissas, shifts


def _require_shifts(largest: int, real: float) -> None:
    if largest > _LARGEST_SHIFT:
        raise OperatorError(f"scales give the multiplier {real:g}, expected less than 2**31")


def require_multiplier(real: float, inputs: Sequence[Tensor], y: Tensor) -> None:
    """Check that the scales of *inputs* and of the output *y* give a multiplier below 2**31.

    Args:
        real: the multiplier, or the largest of several multipliers; infinity and NaN are allowed.
        inputs: tensors whose scales are in the multiplier.
        y: output.

    Raises:
        OperatorError: *real* is 2**31 or more; the message has all scales.
    """
    if 2.0**_LARGEST_SHIFT <= real < math.inf:
        scales = " and ".join(f"{x.scale:g} ({x.name!r})" for x in inputs)
        raise OperatorError(
            f"scales {scales} into {y.scale:g} ({y.name!r}) give the multiplier {real:g}, "
            "expected less than 2**31; calibrate the model again with data that make the output "
            "differ from 0"
        )


def round_half_away(value: float) -> int:
    """Return the integer nearest to *value*, halves away from zero (C's ``round``).

    >>> round_half_away(-2.5), round_half_away(2.5), round_half_away(2.49)
    (-3, 3, 2)
    """
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def saturating_rounding_doubling_high_mul(a: IntArray, b: IntArray | int) -> NDArray[np.int32]:
    """Return ``a * b / 2**31`` rounded to nearest, halves up: int32, broadcast.

    Args:
        a: int32 values, in an array of any integer dtype.
        b: int32 values, in an array of any integer dtype, or one number.

    >>> saturating_rounding_doubling_high_mul(np.array([3, -3, -(2**31)]), 2**30).tolist()
    [2, -1, -1073741824]

    Source:
        SaturatingRoundingDoublingHighMul, gemmlowp/fixedpoint/fixedpoint.h.
    """
    return _rounding_doubling_high_mul(a, b).astype(np.int32)


def _rounding_doubling_high_mul(a: IntArray, b: IntArray | int) -> NDArray[np.int64]:
    """Return a new array with the result of :func:`saturating_rounding_doubling_high_mul`.

    *a* may be an array that JAX traces, so only methods and operators of arrays are used.
    """
    product: NDArray[np.int64] = a.astype(np.int64) * b
    product += 1 << 30
    product >>= 31
    least = b if isinstance(b, int) else np.min(b, initial=0)
    return product.clip(None, INT32_MAX) if least < 0 else product  # only MIN * MIN is too large


def rounding_divide_by_pot(x: IntArray, exponent: IntArray | int) -> IntArray:
    """Return ``x / 2**exponent`` rounded to nearest, halves away from zero, in *x*'s dtype.

    >>> rounding_divide_by_pot(np.array([5, -5, 6, -6]), 2).tolist()
    [1, -1, 2, -2]

    Source:
        RoundingDivideByPOT, gemmlowp/fixedpoint/fixedpoint.h.
    """
    exponent = np.asarray(exponent, x.dtype)
    mask = ((np.int64(1) << exponent) - 1).astype(x.dtype)
    threshold = (mask >> 1) + (x < 0)
    rounded: IntArray = (x >> exponent) + ((x & mask) > threshold)
    return rounded


def rounding_divide_by_any_pot(x: IntArray, exponent: IntArray | int) -> NDArray[np.int64]:
    """Return ``x / 2**exponent`` rounded to nearest, halves away from zero, for any exponent.

    *x* has int32 values. Some official kernels use exponents outside of [0, 31], for which C does
    not define the result. As in x86's shift instructions, only the low bits of the exponent count.

    >>> rounding_divide_by_any_pot(np.array([1000, -1000]), -1).tolist()
    [1, -1]
    """
    wide = np.asarray(x, np.int64)
    bits = np.asarray(exponent, np.int64)
    mask = ((np.uint64(1) << (bits & 63).astype(np.uint64)) - np.uint64(1)).astype(np.int32)
    threshold = (mask.astype(np.int64) >> 1) + (wide < 0)
    return np.asarray((wide >> (bits & 31)) + ((wide & mask) > threshold))


def multiply_by_quantized_multiplier(
    x: IntArray, multiplier: IntArray | int, shift: IntArray | int
) -> NDArray[np.int32]:
    """Return ``x * multiplier * 2**(shift - 31)``, rounded as in most integer kernels.

    Args:
        x: int32 values, in an array of any integer dtype.
        multiplier: Q31 mantissa from :func:`quantize_multiplier`.
        shift: left shift of the mantissa; negative values shift right. For a shift above 31, only
            its low five bits count, as in scalar instructions of x86 and AArch64.

    Source:
        MultiplyByQuantizedMultiplier(int32_t, ...), tflite/kernels/internal/common.cc.
    """
    if isinstance(shift, int):
        low_bits: IntArray | int = shift & 31 if shift > 0 else shift
    else:
        low_bits = np.where(shift > 0, shift & 31, shift)
    high, right = _doubling_high_mul(x, multiplier, low_bits)
    is_below = high >> 63  # -1 below 0, where halves are rounded down
    is_below *= right > 0
    high += is_below
    high += (np.int64(1) << right) >> 1
    high >>= right
    return high.astype(np.int32)


def multiply_by_quantized_multiplier_gemm(
    x: IntArray, multiplier: IntArray | int, shift: IntArray | int
) -> NDArray[np.int32]:
    """Return ``x * multiplier * 2**(shift - 31)``, rounded as in ruy's x86 matrix products.

    *x* has int32 values, and *multiplier* is a Q31 mantissa. Results differ from those of
    :func:`multiply_by_quantized_multiplier` if the first rounding leaves a negative half, which is
    rounded up here. A *shift* above 31 gives 0, as in vector instructions.

    Source:
        rounding_right_shift, ruy/kernel_avx512.cc and kernel_avx2_fma.cc.
    """
    multiplier = multiplier * (np.asarray(shift) <= _LARGEST_SHIFT)
    high, right = _doubling_high_mul(x, multiplier, shift)
    high += (np.int64(1) << right) >> 1
    high >>= right
    return high.astype(np.int32)


def multiply_by_quantized_multiplier_int64(
    x: IntArray, multiplier: IntArray | int, shift: IntArray | int
) -> NDArray[np.int32]:
    """Return ``x * multiplier * 2**(shift - 31)``, rounded as in kernels with int64 accumulators.

    The mantissa is first rounded to 15 bits. Values must fit in 48 bits.

    Source:
        MultiplyByQuantizedMultiplier(int64_t, ...), tflite/kernels/internal/common.cc.
    """
    return wide_multiply_by_quantized_multiplier(x, multiplier, shift).astype(np.int32)


def wide_multiply_by_quantized_multiplier(
    x: IntArray, multiplier: IntArray | int, shift: IntArray | int
) -> NDArray[np.int64]:
    """Return all 64 bits of the result of :func:`multiply_by_quantized_multiplier_int64`.

    They are ``x * multiplier * 2**(shift - 31)``, of which that function takes the low 32 bits.
    """
    reduced = reduce_multiplier(multiplier)
    total = 15 - np.asarray(shift, np.int64)
    product = x.astype(np.int64) * reduced
    product += np.int64(1) << (total - 1)
    product >>= total
    return product


def reduce_multiplier(multiplier: IntArray | int) -> NDArray[np.int64]:
    """Round *multiplier*, Q31 mantissas, to the Q15 mantissas that scale int64 accumulators."""
    mantissa = np.asarray(multiplier, np.int64)
    return np.where(mantissa < 0x7FFF0000, (mantissa + (1 << 15)) >> 16, 0x7FFF)


def _doubling_high_mul(
    x: IntArray, multiplier: IntArray | int, shift: IntArray | int
) -> tuple[NDArray[np.int64], NDArray[np.int64] | int]:
    """Return ``x * 2**left * multiplier / 2**31``, rounded, and the right shift that must follow.

    *multiplier* is the Q31 mantissa. A positive *shift* is the left shift; a negative one is
    returned as a right shift, and the left shift is 0. The product is in a new array of int32
    values, with halves rounded up.
    """
    left: IntArray | int
    right: IntArray | int
    if isinstance(shift, int):
        left, right, shifts_left = max(shift, 0), max(-shift, 0), shift > 0
    else:
        shift = np.asarray(shift, np.int64)
        left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
        shifts_left = shift.max(initial=0) > 0
    shifted = x.astype(np.int64) << left if shifts_left else x
    narrow = shifted.astype(np.int32, copy=False)  # wraps like the C code
    return _rounding_doubling_high_mul(narrow, multiplier), right


def power_of_two(scale: float) -> int | None:
    """Return the base-2 logarithm of *scale*; None if *scale* is no power of two.

    >>> power_of_two(2**-15), power_of_two(0.3)
    (-15, None)

    Source:
        CheckedLog2, tflite/kernels/internal/quantization_util.cc.
    """
    if not 0 < scale < math.inf:
        return None
    log2 = np.log(np.float32(scale)) * np.float32(1 / np.log(np.float32(2)))
    nearest = round(float(log2))
    return nearest if abs(float(log2) - nearest) < 1e-3 else None


def scale_exponent(tensor: Tensor) -> int:
    """Return the base-2 logarithm of a tensor's scale, which must be a power of two.

    Raises:
        OperatorError: the scale is no power of two.
    """
    exponent = power_of_two(tensor.scale)
    if exponent is None:
        raise OperatorError(
            f"tensor {tensor.name!r} has scale {tensor.scale}, expected a power of two"
        )
    return exponent
