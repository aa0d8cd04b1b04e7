"""Micro-kernels of 8-bit depthwise convolutions for levels that multiply int16 in pairs.

A word of a packed line has four vertically adjacent bytes. Its even bytes are a pair of int16, and
its odd bytes are another. Weights are stored as pairs of int16, so they need no conversion: first
all weights of even bytes, then all of odd bytes. A register has 8 channels.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.dot_products import add_pairs, half_of
from delegraph_numba_cpu.codegen.intrinsics import I16, I32
from delegraph_numba_cpu.codegen.vector_ir import Loop, integer, load, store, vector
from delegraph_numba_cpu.instructions.conv_int8 import HEADER_BYTES

ADJACENT_PIXELS, KERNELS, STRIDES = (4, 6, 7, 8), (3, 5), (1, 2)
"""Numbers of adjacent pixels, widths of windows and horizontal strides for which there are
kernels."""

REGISTER = 32
"""Number of bytes of a vector register."""

V8I32, V16I16 = vector(I32, 8), vector(I16, 16)

i64 = types.int64


def _product(builder: Any, value: Any, words: Any, pairs: Any) -> Any:
    """Return 8 int32: *value* plus products of int16 in *words* and *pairs*, added in pairs."""
    return builder.add(value, add_pairs(builder, builder.bitcast(words, V16I16), pairs))


def _adjacent(
    builder: Any,
    pixels: int,
    kernel: int,
    stride: int,
    line: Any,
    step: Any,
    group_bytes: Any,
    weights: Any,
    tap_bytes: Any,
    groups: Any,
    odd_groups: Any,
    header: Any,
    acc: Any,
    acc_step: Any,
    channel_bytes: Any,
) -> None:
    """Append the instructions of :func:`adjacent_product`; sizes of tile and window are constant.

    These are *pixels*, *kernel* and *stride*.
    """
    channels = Loop(builder, channel_bytes, REGISTER)
    at = channels.index
    sums = [load(builder, _bias_at(builder, header, at), V8I32)] * pixels
    start, factors_at = builder.add(line, at), builder.add(weights, at)
    for odd, count in enumerate((groups, odd_groups)):
        loop = Loop(builder, count)
        first, factors_at = loop.carried(start), loop.carried(factors_at)
        sums = [loop.carried(value) for value in sums]
        following, column, factors = list(sums), first, []
        for _ in range(kernel):
            factors.append(load(builder, factors_at, V16I16))
            factors_at = builder.add(factors_at, tap_bytes)
        for i in range((pixels - 1) * stride + kernel):
            x = half_of(builder, load(builder, column, V8I32), odd)
            column = builder.add(column, step)
            for m in range(pixels):
                if 0 <= i - m * stride < kernel:
                    following[m] = _product(builder, following[m], x, factors[i - m * stride])
        loop.close(builder.add(first, group_bytes), factors_at, *following)
        sums = following
    place = builder.add(acc, at)
    for value in sums:
        store(builder, value, place)
        place = builder.add(place, acc_step)
    channels.close()


def _bias_at(builder: Any, header: Any, at: Any) -> Any:
    """Return the address of the bias of the channels whose results are at byte *at* of a pixel."""
    of_16 = builder.mul(builder.lshr(at, integer(6)), integer(HEADER_BYTES))
    return builder.add(builder.add(header, of_16), builder.and_(at, integer(63)))


@intrinsic
def adjacent_product(
    context: Any,
    pixels: Any,
    kernel: Any,
    stride: Any,
    line: Any,
    step: Any,
    group_bytes: Any,
    weights: Any,
    tap_bytes: Any,
    groups: Any,
    odd_groups: Any,
    header: Any,
    acc: Any,
    acc_step: Any,
    channel_bytes: Any,
) -> Any:
    """Compute *pixels* adjacent output pixels: store the bias plus the sum over all taps, int32.

    The pixels are *stride* columns apart, and their windows *kernel* columns wide. Columns that
    several windows share are read once. These numbers must be among those of this module.

    Args:
        context: Numba's typing context.
        pixels: number of pixels.
        kernel: number of columns of a window.
        stride: columns from one pixel's window to the next pixel's.
        line: address of the first column of the packed line.
        step: bytes from one of these columns to the next.
        group_bytes: bytes from four rows of windows to the next four.
        weights: address of the weights of the first tap.
        tap_bytes: bytes from one tap's weights to the next tap's.
        groups: number of groups of four rows of windows, at least 1.
        odd_groups: number of groups that have odd rows, at least 1.
        header: address of the bias.
        acc: address of the first pixel's results.
        acc_step: bytes from one pixel's results to the next pixel's.
        channel_bytes: bytes of a pixel's results, a multiple of 32.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pixels, kernel, stride, *others = arguments

        def if_equal(value: Any, wanted: int) -> Any:
            return builder.if_then(builder.icmp_signed("==", value, integer(wanted)))

        for width in KERNELS:
            with if_equal(kernel, width):
                for distance in STRIDES:
                    with if_equal(stride, distance):
                        for number in ADJACENT_PIXELS:
                            with if_equal(pixels, number):
                                _adjacent(builder, number, width, distance, *others)
        return target.get_dummy_value()

    return types.void(*[i64] * 14), generate
