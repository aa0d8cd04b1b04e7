"""Quantized SUM, MEAN and REDUCE_PROD, with the rounding of the official kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_gemm,
    multiply_by_quantized_multiplier_int64,
    quantize_multiplier,
    require_multiplier,
    unlimited_multiplier,
)
from delegraph.arithmetic.lookup_table import Integers, round_half_away
from delegraph.arithmetic.reduction import Reduction
from delegraph.operators.checks import require_scales
from delegraph.operators.registration import Eval

if TYPE_CHECKING:
    from delegraph.operators.numerics import Numerics

Finish = Callable[[Integers], Integers]
"""Function that converts sums of stored integers, NumPy or JAX arrays, to results, both int64."""

_LANES = 16  # channels the vector loop of the spatial mean handles at a time


def total(r: Reduction, numerics: Numerics) -> Eval:
    """Return the evaluation of a quantized SUM.

    The builtin kernels rescale the sum in float32.

    Args:
        r: the node: input, output and axes.
        numerics: official kernels whose rounding is reproduced, builtin or reference.

    Raises:
        OperatorError: scales are too far apart for the reference kernels.

    Source:
        QuantizedMeanOrSum, tflite/kernels/internal/optimized/reduce.h.
    """
    if _lacks_scale(r):
        return _without_scale(r, saturates=numerics == "builtin")
    if numerics != "builtin":
        return _stored(r, fixed_point_sum(r, divisor=1)) if r.count else lambda: r.y.data.fill(0)
    scale = np.float32(r.x.scale) / np.float32(r.y.scale)
    bias = np.float32(-r.x.zero_point) * scale * np.float32(r.count)
    y, y_zero, limits = r.y, r.y.zero_point, np.iinfo(r.y.dtype)

    def run() -> None:
        sums = _sums(r).astype(np.float32)
        rounded = round_half_away(sums * scale + bias)
        y.data[...] = (rounded.astype(np.int64) + y_zero).clip(limits.min, limits.max)

    return run


def mean(r: Reduction, numerics: Numerics) -> Eval:
    """Return the evaluation of a quantized MEAN.

    Args:
        r: the node: input, output and axes.
        numerics: official kernels whose rounding is reproduced, builtin or reference.
    """
    if _lacks_scale(r):
        return _without_scale(r, saturates=_is_spatial(r, numerics))
    if not r.count:
        return lambda: r.y.data.fill(0)
    return _stored(r, mean_of_sums(r, numerics))


def mean_of_sums(r: Reduction, numerics: Numerics) -> Finish:
    """Return the function that converts sums of stored integers to the quantized means of *r*.

    A sum has at least one element. The builtin kernels have a special arithmetic for 8-bit means
    over height and width of ``[N, H, W, C]`` that keep the dimensions. *numerics* is the choice
    between builtin and reference rounding.
    """
    return _spatial_mean(r) if _is_spatial(r, numerics) else fixed_point_sum(r, divisor=r.count)


def _is_spatial(r: Reduction, numerics: Numerics) -> bool:
    is_image = len(r.x.shape) == 4 and r.axes == (1, 2) and r.keep_dims
    return numerics == "builtin" and is_image and r.x.dtype.itemsize == 1 and r.count > 0


def _lacks_scale(r: Reduction) -> bool:
    """Whether a scale of *r*'s input or output is 0.

    Raises:
        OperatorError: a scale is negative or NaN.
    """
    require_scales(*(t for t in (r.x, r.y) if t.scale != 0))
    return 0 in (r.x.scale, r.y.scale)


def _without_scale(r: Reduction, saturates: bool) -> Eval:
    """Return the evaluation of *r* with a scale of 0, which fills the output with its zero point.

    Multipliers of 0, infinity and NaN all count as 0. If *saturates* and the output's scale is 0,
    the result is a limit of the type, as on x86: the greatest value for a negative zero point,
    otherwise the smallest. Sums of no elements are 0.
    """
    y, limits = r.y, np.iinfo(r.y.dtype)
    value = r.y.zero_point if r.count else 0
    if saturates and r.y.scale == 0:
        value = limits.min if r.y.zero_point >= 0 else limits.max  # the sum wraps below int32
    return lambda: y.data.fill(value)


def _spatial_mean(r: Reduction) -> Finish:
    """Return the function that converts sums over height and width to the 8-bit means of *r*.

    Groups of sixteen channels are rounded with halves up, the remaining channels with halves away
    from zero.

    Source:
        Mean and MeanImpl, tflite/kernels/internal/optimized/{reduce,integer_ops/mean}.h as compiled
        for x86, on one thread.
    """
    x_scale, y_scale = np.float32(r.x.scale), np.float32(r.y.scale)
    offset = np.float32(r.x.zero_point) * x_scale / y_scale
    offset = offset + np.float32(0.5) if offset > 0 else offset - np.float32(0.5)
    bias = r.y.zero_point - int(offset)
    multiplier, shift = unlimited_multiplier(float(x_scale / (np.float32(r.count) * y_scale)))
    channels, limits = r.x.shape[3], np.iinfo(r.y.dtype)
    is_rest = np.arange(channels) >= channels - channels % _LANES

    def finish(sums: Integers) -> Integers:
        result = multiply_by_quantized_multiplier_gemm(sums, multiplier, shift)
        if is_rest.any():
            rest = multiply_by_quantized_multiplier(sums, multiplier, shift)
            result = result + (rest - result) * is_rest
        return (result.astype(np.int64) + bias).clip(limits.min, limits.max)

    return finish


def fixed_point_sum(r: Reduction, divisor: int) -> Finish:
    """Return the function that converts *r*'s sums of stored integers to results / *divisor*.

    The multiplier contains the division.

    Raises:
        OperatorError: the scales of a sum, which is not divided, are too far apart.

    Source:
        QuantizedMeanOrSum, tflite/kernels/internal/reference/reduce.h.
    """
    if divisor != r.count:
        require_multiplier(r.x.scale / r.y.scale, (r.x,), r.y)
    multiplier, shift = unlimited_multiplier(r.x.scale / r.y.scale)
    bits = min(divisor.bit_length() - 1, 32, 31 + shift)
    multiplier, shift = (multiplier << bits) // divisor, shift - bits
    subtrahend = r.x.zero_point * r.count
    y_zero, limits = r.y.zero_point, np.iinfo(r.y.dtype)

    def finish(sums: Integers) -> Integers:
        result = multiply_by_quantized_multiplier(sums - subtrahend, multiplier, shift)
        return (result.astype(np.int64) + y_zero).clip(limits.min, limits.max)

    return finish


def _stored(r: Reduction, finish: Finish) -> Eval:
    """Return the evaluation that sums the input of *r*, applies *finish*, and stores the result."""
    y = r.y

    def run() -> None:
        y.data[...] = finish(_sums(r))

    return run


def product(r: Reduction, numerics: Numerics) -> Eval:
    """Return the evaluation of a quantized REDUCE_PROD, rescaled after each factor.

    Without axes, or if all axes have length 1, the builtin kernels copy the input, even between
    different scales. The official kernels do not write products of no elements; here they are 1.

    Args:
        r: the node: input, output and axes.
        numerics: official kernels whose rounding is reproduced, builtin or reference.

    Source:
        QuantizedReduceProd, tflite/kernels/internal/{optimized,reference}/reduce.h.
    """
    x, y, x_zero, y_zero, limits = r.x, r.y, r.x.zero_point, r.y.zero_point, np.iinfo(r.y.dtype)
    if not r.count:
        one = 1.0 if _lacks_scale(r) else 1 / np.float64(y.scale)
        return lambda: y.data.fill(int(np.clip(np.rint(one) + y_zero, limits.min, limits.max)))
    if numerics == "builtin" and r.count == 1:
        return lambda: np.copyto(y.data, x.data.reshape(y.shape))
    if _lacks_scale(r):
        return _without_scale(r, saturates=False)
    multiplier, shift = quantize_multiplier(r.x.scale / r.y.scale ** (1 / r.count))

    def run() -> None:
        factors = r.rows().T.astype(np.int64) - x_zero
        result = factors[0]
        for factor in factors[1:]:
            result = multiply_by_quantized_multiplier_int64(result * factor, multiplier, shift)
            result = result.astype(np.int64)
        scaled = multiply_by_quantized_multiplier_int64(result, multiplier, shift)
        quantized = (scaled + np.int32(y_zero)).clip(limits.min, limits.max)  # wraps, as in C
        y.data[...] = quantized.reshape(y.shape)

    return run


def _sums(r: Reduction) -> Integers:
    """Return the sums of the stored integers along the reduced axes, in the output's shape."""
    sums = r.x.data.sum(r.axes, np.int32, keepdims=r.keep_dims)
    return np.asarray(sums, np.int64)
