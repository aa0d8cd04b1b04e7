"""Kernels of 8- and 16-bit operands as tables of precomputed results.

An 8-bit operator is a table of 256 results for one input, and of 65,536 results for two. A 16-bit
operator of one input also has 65,536 results. The table is computed by the operator's slow
definition, in prepare or, if the table is large, after the first runs. Later, an invoke only looks
up results.

Tables are indexed by the bits of the stored integer seen as unsigned: ``table[q & 0xFF]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from delegraph.operators.registration import Eval, OpContext, Scratch
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
UnaryFunction: TypeAlias = "Callable[[Integers], NDArray[Any]]"
"""Function that converts stored integers to stored integers (or bools), one by one."""
BinaryFunction: TypeAlias = "Callable[[Integers, Integers], NDArray[Any]]"
"""Function of two broadcast arrays of stored integers that returns stored integers or bools."""
RealFunction: TypeAlias = "Callable[[NDArray[Any]], NDArray[Any]]"
"""Function of real numbers, element by element, that keeps their dtype."""

Made = TypeVar("Made")

# Number of elements from which bytearray.translate is faster than ndarray.take.
_TRANSLATE_FROM = 4096


def every_value(dtype: np.dtype[Any]) -> Integers:
    """Return all values of *dtype*, an 8- or 16-bit integer type, in table order.

    >>> every_value(np.dtype(np.int8))[126:130].tolist()
    [126, 127, -128, -127]
    """
    bits = np.arange(1 << (8 * dtype.itemsize)).astype(unsigned(dtype))
    return bits.view(dtype).astype(np.int64)


def unary_lookup(x: Tensor, y: Tensor, function: UnaryFunction) -> Eval:
    """Return the evaluation that sets *y* to *function* of *x*, by a table of all results.

    Args:
        x: tensor of any shape and an 8- or 16-bit integer type.
        y: tensor of the same shape.
        function: function of stored integers; its results must fit the type of *y*.
    """
    return lookup(x, y, np.asarray(function(every_value(x.dtype))))


def lookup(x: Tensor, y: Tensor, table: NDArray[Any]) -> Eval:
    """Return the evaluation that sets *y* to ``table[x]``, with a result for every value of *x*."""
    table = table.astype(y.dtype)
    if x.dtype.itemsize == 1 == y.dtype.itemsize and math.prod(x.shape) >= _TRANSLATE_FROM:
        return _translate(x, y, table.tobytes())
    take, bits = table.take, unsigned(x.dtype)

    def run() -> None:
        take(x.data.view(bits), None, y.data, "clip")

    return run


def unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the unsigned type as wide as *dtype*; ``numpy.take`` is fastest with such indices."""
    return np.dtype(f"u{dtype.itemsize}")


def _translate(x: Tensor, y: Tensor, table: bytes) -> Eval:
    def run() -> None:
        y.data.reshape(-1)[:] = np.frombuffer(bytearray(x.data).translate(table), y.dtype)

    return run


def binary_lookup(
    context: OpContext, a: Tensor, b: Tensor, y: Tensor, function: BinaryFunction
) -> Eval:
    """Return the evaluation that sets *y* to *function* of *a* and *b*, broadcast.

    Args:
        context: context of the node.
        a: tensor of an 8-bit integer type.
        b: tensor of the same type.
        y: tensor of the broadcast shape.
        function: function of two arrays of stored integers; results must fit the type of *y*.
    """
    if b.is_constant and b.data.size == 1 and a.shape == y.shape:
        value = b.data.astype(np.int64).reshape(1)
        return unary_lookup(a, y, lambda q: function(q, value))
    if a.is_constant and a.data.size == 1 and b.shape == y.shape:
        value = a.data.astype(np.int64).reshape(1)
        return unary_lookup(b, y, lambda q: function(value, q))
    index, fill = pair_index(context, a, b, y)
    table = once_needed(pair_table, a.dtype, y.dtype, function)
    runs_without_table = _COMPUTED_FIRST // max(math.prod(y.shape), 1)

    def run() -> None:
        nonlocal runs_without_table
        if runs_without_table > 0:
            runs_without_table -= 1
            y.data[...] = function(*(np.atleast_1d(x.data).astype(np.int64) for x in (a, b)))
            return
        fill()
        table().take(index.data, None, y.data, "clip")

    return run


_COMPUTED_FIRST = 32_768
"""Number of results that a node computes one by one before it fills a table for all pairs.

A table has twice as many results. So a program that runs a small model only once does not wait for
a table.
"""


def once_needed(make: Callable[..., Made], *arguments: object) -> Callable[[], Made]:
    """Return a function that calls ``make(*arguments)`` when first called, and keeps the result.

    A node that a delegate claims is prepared for checking, but never runs. So filling its table of
    65,536 pairs in prepare would waste time.
    """
    return cache(partial(make, *arguments))


_ROWS = 32
"""Number of rows of a pair table computed at a time, so that temporaries fit the cache."""


def pair_table(
    operands: np.dtype[Any], result: np.dtype[Any], function: BinaryFunction
) -> NDArray[Any]:
    """Return the results of *function* for all pairs of 8-bit *operands*, as *result* dtype.

    The order is that of :func:`pair_index`: ``[65536]``.
    """
    values = every_value(operands)
    table = np.empty((256, 256), result)
    for start in range(0, 256, _ROWS):
        rows = slice(start, start + _ROWS)
        table[rows] = function(values[rows, None], values[None, :])
    return table.reshape(-1)


def pair_index(
    context: OpContext, a: Tensor, b: Tensor, y: Tensor
) -> tuple[Scratch, Callable[[], None]]:
    """Return working memory in the shape of *y*, and a function that writes table indices to it.

    An index stands for a pair of elements of *a* and *b*, broadcast, in :func:`pair_table`.
    """
    index = context.scratch(y.shape, np.uint16)
    shift, merge, high = np.left_shift, np.bitwise_or, np.uint16(8)

    def fill() -> None:
        i = index.data
        shift(a.data.view(np.uint8), high, i, dtype=np.uint16)
        merge(i, b.data.view(np.uint8), i)

    return index, fill


def transform_table(x: Tensor, y: Tensor, function: RealFunction) -> NDArray[Any]:
    """Return the table of a real *function* from *x* to *y*, quantized 8-bit tensors: ``[256]``.

    Source:
        LUTPopulateInt8, tflite/kernels/internal/common.h.
    """
    limits = np.iinfo(y.dtype)
    values = every_value(x.dtype) - x.zero_point
    real = np.float32(x.scale) * values.astype(np.float32)
    with np.errstate(all="ignore"):
        rescaled = round_half_away(function(real) * (np.float32(1) / np.float32(y.scale)))
        quantized = np.clip(rescaled + np.float32(y.zero_point), limits.min, limits.max)
    table: NDArray[Any] = quantized.astype(y.dtype)
    return table


def in_double(function: RealFunction) -> RealFunction:
    """Return *function* computed in float64 and rounded to float32, which is closest to C's.

    C's float functions are rounded almost perfectly; NumPy's vectorised float32 functions are not.
    """
    return lambda x: np.asarray(function(x.astype(np.float64)).astype(x.dtype))


def transform_table_int16(x: Tensor, y: Tensor, function: RealFunction) -> NDArray[np.int16]:
    """Return the table of a real *function* from *x* to *y*, quantized int16 tensors: ``[65536]``.

    The table has the values that the official kernel interpolates between 513 points.

    Source:
        LUTPopulateInt16 and LUTLookup(int16_t), tflite/kernels/internal/common.h.
    """
    scales = np.float32(x.scale), np.float32(y.scale)
    points = interpolation_points(scales[0], x.zero_point, scales[1], y.zero_point, function)
    return np.asarray(interpolate(every_value(x.dtype), points).astype(np.int16))


def interpolation_points(
    input_scale: np.floating[Any],
    input_zero_point: int,
    output_scale: np.floating[Any],
    output_zero_point: int,
    function: RealFunction,
) -> Integers:
    """Return the 513 points of *function* between which the official kernel interpolates.

    The result is ``[513], int64``, in the output's stored integers. Each point is shifted by half
    of the error that linear interpolation has in the middle of the step after it. All arithmetic is
    done in the float type of the scales.

    Args:
        input_scale: scale of the int16 input.
        input_zero_point: zero point of the input.
        output_scale: scale of the int16 output.
        output_zero_point: zero point of the output.
        function: function of real numbers.

    Source:
        LUTPopulateInt16, tflite/kernels/internal/common.h.
    """
    real = type(input_scale)
    low = input_scale * real(-32768 - input_zero_point)
    high = input_scale * real(32767 - input_zero_point)
    out_low = output_scale * real(-32768 - output_zero_point)
    out_high = output_scale * real(32767 - output_zero_point)
    step = (high - low) / real(512)
    inverse = real(65536) / (out_high - out_low)

    def sample(x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(function(x) * inverse)

    with np.errstate(all="ignore"):
        i = np.arange(512).astype(real)
        at = sample(low + i * step)
        middle = sample(low + i * step + step / real(2))
        following = sample(low + (i + real(1)) * step)
        here = round_half_away(at)
        error = round_half_away((following + here) / real(2)) - round_half_away(middle)
        points = here - round_half_away(error / real(2))
        last = round_half_away(sample(np.array([high])))
        points = np.clip(np.concatenate([points, last]), -32768, 32767)
    points = np.nan_to_num(points, nan=0.0)  # as x86 converts overflowed numbers
    return np.asarray(points.astype(np.int64))


def interpolate(q: Integers, points: Integers) -> Integers:
    """Return the values at *q* of an int16 function that is known at 513 points.

    Values between two *points* are interpolated.

    Source:
        LUTLookup(int16_t), tflite/kernels/internal/common.h.
    """
    i = 256 + (q >> 7)
    slope = (points[i + 1] - points[i]).astype(np.int16).astype(np.int64)  # wraps as in C
    value: Integers = points[i] + ((slope * (q & 0x7F) + 64) >> 7)
    return value


def round_half_away(x: NDArray[Any]) -> NDArray[Any]:
    """Round *x* to whole numbers in its dtype, halves away from zero, like C's ``round``.

    >>> round_half_away(np.array([0.5, -2.5, 2.4999])).tolist()
    [1.0, -3.0, 2.0]
    """
    whole = np.trunc(x)
    return np.asarray(whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype))


def exponentials(scale: float, beta: float) -> NDArray[np.float32]:
    """Return exp(beta * scale * d) for every difference d to a row's maximum: ``[256], float32``.

    Differences are 0 to -255; the table is indexed by their low 8 bits.

    Source:
        PopulateSoftmaxLookupTable, tflite/kernels/internal/optimized/optimized_ops.h.
    """
    factor = -np.float32(scale) * np.float32(beta)
    values = np.exp((factor * np.arange(256, dtype=np.float32)).astype(np.float64))
    return np.roll(values[::-1], 1).astype(np.float32)


def requantisation_table(x: Tensor, y: Tensor) -> NDArray[Any] | None:
    """Return the table of output values for all input values, ``[256], uint8``.

    The result is None if each output value equals its input value.

    The arithmetic is float32, as in the official kernel: ``round(q * scale + bias) + zero_point``
    with ``scale = x.scale / y.scale`` and halves rounded away from zero.
    """
    if (x.scale, x.zero_point) == (y.scale, y.zero_point):
        return None
    scale = np.float32(x.scale) * (np.float32(1) / np.float32(y.scale))
    real = np.arange(256, dtype=np.float32) * scale + np.float32(-x.zero_point) * scale
    rounded = np.trunc(real + np.copysign(np.float32(0.5), real)).astype(np.int64) + y.zero_point
    table: NDArray[np.uint8] = np.clip(rounded, 0, 255).astype(np.uint8)
    return table
