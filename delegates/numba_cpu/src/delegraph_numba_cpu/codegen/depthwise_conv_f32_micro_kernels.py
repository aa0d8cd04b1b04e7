"""Micro-kernels in LLVM IR: depthwise sums of products of float32 values in registers.

See ``conv_f32_micro_kernels`` for the addresses of pixels and taps.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.conv_f32_micro_kernels import start_values
from delegraph_numba_cpu.codegen.conv_f32_output import (
    HIGH,
    LOW,
    clamped,
    row_numbers,
    store_rows,
)
from delegraph_numba_cpu.codegen.intrinsics import F32, I64
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    first_lanes,
    integer,
    load,
    masked_load,
    multiply_add,
    store,
    vector,
)


def channel_product(height: int, width: int, masked: bool) -> Any:
    """Return an intrinsic for *width* channels, one register, of *height* depthwise pixels.

    It is called as ``product(rows, taps, tap_count, channel, weight, *output)``. *rows* has the
    address of each pixel, *taps* the offset of each of *tap_count* taps. *channel* is the offset of
    the first channel in a pixel, also in bytes. *weight* has start values, then weights by tap.
    With *masked*, only the first *columns* channels are read and written. *output* is ``out, pitch,
    pixels, columns, limits``, as of ``matrix_product``.
    """

    @intrinsic
    def product(
        context: Any,
        rows: Any,
        taps: Any,
        tap_count: Any,
        channel: Any,
        weight: Any,
        out: Any,
        pitch: Any,
        pixels: Any,
        columns: Any,
        limits: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows, taps, tap_count, channel, weight, out, pitch, pixels, columns, limits = arguments
            kind = vector(F32, width)
            mask = first_lanes(builder, columns, width) if masked else None
            sums, weights = start_values(builder, height, (width,), weight)
            pixel = [load(builder, builder.add(rows, integer(8 * m)), I64) for m in range(height)]
            pixel = [builder.add(address, channel) for address in pixel]
            loop = Loop(builder, tap_count)
            weights = loop.carried(weights)
            sums = [loop.carried(value) for value in sums]
            offset = load(builder, builder.add(taps, builder.shl(loop.index, integer(3))), I64)
            factors = load(builder, weights, kind)
            following = []
            for address, value in zip(pixel, sums, strict=True):
                place = builder.add(address, offset)
                x = (
                    load(builder, place, kind)
                    if mask is None
                    else masked_load(builder, place, mask, kind)
                )
                following.append(multiply_add(builder, x, factors, value))
            loop.close(builder.add(weights, integer(4 * width)), *following)
            results = clamped(builder, following, limits, LOW, HIGH)
            places = row_numbers(builder, height, pixels)
            masks = None if mask is None else [mask]
            store_rows(builder, results, places, [0], out, pitch, masks)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 10), generate

    return product


def row_product(heights: tuple[int, ...], width: int, kernel: int, stride: int) -> Any:
    """Return an intrinsic that computes one register of depthwise channels for adjacent pixels.

    It is called as ``product(height, source, step, taps, tap_rows, weight, out, pitch, limits)``.
    It computes *width* channels of *height* adjacent pixels, one of *heights*. Windows are *kernel*
    wide and *stride* apart, and values that they share are read once. *source* plus a number in the
    table *taps* is the address of one of the first pixel's taps. Only the first number for each row
    of a window is read. *step* is the distance of input pixels.
    """

    @intrinsic
    def product(
        context: Any,
        height: Any,
        source: Any,
        step: Any,
        taps: Any,
        tap_rows: Any,
        weight: Any,
        out: Any,
        pitch: Any,
        limits: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            chosen, *others = arguments
            for height in heights:
                with builder.if_then(builder.icmp_signed("==", chosen, integer(height))):
                    _adjacent_pixels(builder, height, width, kernel, stride, *others)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 9), generate

    return product


def _adjacent_pixels(
    builder: Any,
    height: int,
    width: int,
    kernel: int,
    stride: int,
    source: Any,
    step: Any,
    taps: Any,
    tap_rows: Any,
    weight: Any,
    out: Any,
    pitch: Any,
    limits: Any,
) -> None:
    """Append instructions that compute and store *height* pixels; see :func:`row_product`."""
    kind = vector(F32, width)
    sums, weights = start_values(builder, height, (width,), weight)
    loop = Loop(builder, tap_rows)
    weights = loop.carried(weights)
    sums = [loop.carried(value) for value in sums]
    place = builder.add(taps, builder.mul(loop.index, integer(8 * kernel)))
    first = builder.add(source, load(builder, place, I64))
    factors = [
        load(builder, builder.add(weights, integer(4 * width * j)), kind) for j in range(kernel)
    ]
    following = list(sums)
    for i in range((height - 1) * stride + kernel):
        x = load(builder, first, kind)
        first = builder.add(first, step)
        for m in range(height):
            if 0 <= i - m * stride < kernel:
                following[m] = multiply_add(builder, x, factors[i - m * stride], following[m])
    loop.close(builder.add(weights, integer(4 * width * kernel)), *following)
    for value in clamped(builder, following, limits, LOW, HIGH):
        store(builder, value, out)
        out = builder.add(out, pitch)
