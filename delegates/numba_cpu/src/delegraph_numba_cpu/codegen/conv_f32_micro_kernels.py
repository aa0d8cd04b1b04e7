"""Micro-kernels in LLVM IR: sums of products of float32 values in registers.

Every micro-kernel takes the addresses of a few pixels (*rows*), and the offsets of the *taps* of a
window: tap *t* of pixel *m* is at ``rows[m] + taps[t]``. Sums stay in registers until the last tap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.conv_f32_output import HIGH, LOW, clamped, write
from delegraph_numba_cpu.codegen.intrinsics import F32, I8, I32, I64, call, pointer
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    halves_of,
    hidden_lanes,
    integer,
    joined,
    load,
    multiply_add,
    repeated,
    splat,
    store,
    strided,
    vector,
)

VALUES_AT_ONCE = 4 if level().machine == "aarch64" else 1
"""Number of values of a pixel that are loaded together.

It is 4 on AArch64, whose multiply instructions can take one factor from any lane of a register.
"""


def matrix_product(
    heights: tuple[int, ...],
    widths: tuple[int, ...],
    *,
    in_pairs: bool = False,
    in_lines: bool = False,
    prefetches: bool = True,
) -> Any:
    """Return an intrinsic that computes a register tile: a few pixels by some registers of columns.

    It is called as ``product(height, *window, weight, ahead, ahead_step, *output)``. It computes
    *height* pixels, one of *heights*. Each pixel has registers of *widths* lanes. *window* is
    ``rows, taps, tap_count, tap_bytes``. Each tap has ``tap_bytes / 4`` values, which are
    multiplied with as many rows of weights.

    For each row of weights, it prefetches a row of the next weights at *ahead*, and adds
    *ahead_step* bytes to that address. So the next weights arrive while the present ones are in
    use. Without *prefetches*, nothing is prefetched.

    *output* is ``out, residual, pitch, pixels, columns, limits``; see ``conv_f32_output.write``.

    The highest tile has so many sums that no addition waits for the previous one, but not more than
    fit into the registers.

    With *in_pairs*, *widths* are a whole and half a register, and heights are even. The halves of
    two adjacent pixels share a register, so their products take half as many instructions.

    With *in_lines*, pixels in the first half, and in the second half, are equally far apart. So few
    registers are needed for addresses.
    """
    form = _Form(widths, in_pairs, in_lines, prefetches)

    @intrinsic
    def product(
        context: Any,
        height: Any,
        rows: Any,
        taps: Any,
        tap_count: Any,
        tap_bytes: Any,
        weight: Any,
        ahead: Any,
        ahead_step: Any,
        out: Any,
        residual: Any,
        pitch: Any,
        pixels: Any,
        columns: Any,
        limits: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            chosen, *others = arguments
            for height in heights:
                with builder.if_then(builder.icmp_signed("==", chosen, integer(height))):
                    _tile(builder, height, form, *others)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 14), generate

    return product


@dataclass(frozen=True)
class _Form:
    """Arguments of :func:`matrix_product` besides heights."""

    widths: tuple[int, ...]
    in_pairs: bool
    in_lines: bool
    prefetches: bool


def _tile(
    builder: Any,
    height: int,
    form: _Form,
    rows: Any,
    taps: Any,
    tap_count: Any,
    tap_bytes: Any,
    weight: Any,
    ahead: Any,
    ahead_step: Any,
    *output: Any,
) -> None:
    """Append instructions that compute and store *height* pixels; see :func:`matrix_product`."""
    widths, in_pairs = form.widths, form.in_pairs
    second = hidden_lanes(builder, *widths) if in_pairs else None
    sums, weights = start_values(builder, height, widths, weight, in_pairs)
    numbers = (0, 1, height // 2) if form.in_lines else range(height)
    pixel = [load(builder, builder.add(rows, integer(8 * m)), I64) for m in numbers]
    outer = Loop(builder, tap_count)
    weights = outer.carried(weights)
    ahead = outer.carried(ahead)
    sums = [outer.carried(value) for value in sums]
    offset = load(builder, builder.add(taps, builder.shl(outer.index, integer(3))), I64)
    tap = [builder.add(address, offset) for address in pixel]

    def at(k: Any) -> list[Any]:
        """Return, for each pixel, the address of byte *k* of the present tap."""
        places = [builder.add(address, k) for address in tap]
        if not form.in_lines:
            return places
        step, (first, _, middle) = builder.sub(tap[1], tap[0]), places
        return [x for start in (first, middle) for x in strided(builder, start, step, height // 2)]

    following, coming, *sums = _tap_products(
        builder, sums, form, second, at, tap_bytes, weights, ahead, ahead_step
    )
    outer.close(following, coming, *sums)
    if in_pairs:
        sums = _rows_of_pairs(builder, height, sums)
    write(builder, sums, height, widths, *output)


def _tap_products(
    builder: Any,
    sums: list[Any],
    form: _Form,
    second: Any,
    at: Callable[[Any], list[Any]],
    tap_bytes: Any,
    weights: Any,
    ahead: Any,
    ahead_step: Any,
) -> list[Any]:
    """Append the products of one tap; return addresses and sums for the next tap.

    The result is the next address of the weights, the next address to prefetch, and the sums.
    *second* is the mask for :func:`_add_products_in_pairs`; None if no pixels share a register.
    *at* returns the addresses of a byte of the tap in all pixels. *ahead* is the address to
    prefetch.
    """
    widths = form.widths

    def added(count: int, k: Any, values: list[Any]) -> list[Any]:
        """Append the products of *count* values of every pixel, from byte *k* of the tap on.

        Return the next address of the weights, the next address to prefetch, and the sums.
        """
        weights, ahead, *sums = values
        kind = F32 if count == 1 else vector(F32, count)
        loaded = [load(builder, address, kind) for address in at(k)]
        for i in range(count):
            for line in range(0, 4 * sum(widths), 64) if form.prefetches else ():
                prefetch(builder, builder.add(ahead, integer(line)))
            ahead = builder.add(ahead, ahead_step)
            following = builder.add(weights, integer(4 * sum(widths)))
            pixels = loaded
            if count > 1:
                pixels = [builder.extract_element(x, ir.Constant(I32, i)) for x in loaded]
            if second is None:
                sums = _add_products(builder, sums, widths, pixels, weights)
            else:
                sums = _add_products_in_pairs(builder, sums, widths, pixels, weights, second)
            weights = following
        return [weights, ahead, *sums]

    values = [weights, ahead, *sums]
    if VALUES_AT_ONCE == 1:
        loop = Loop(builder, tap_bytes, step=4)
        values = added(1, loop.index, [loop.carried(value) for value in values])
        loop.close(*values)
        return values
    step = 4 * VALUES_AT_ONCE
    many, one = (partial(added, count) for count in (VALUES_AT_ONCE, 1))
    done, values = repeated(builder, integer(0), tap_bytes, step, values, many)
    return repeated(builder, done, tap_bytes, 4, values, one)[1]


def prefetch(builder: Any, address: Any) -> None:
    """Prefetch the cache line at an address, which may be outside of any memory block."""
    place = pointer(builder, address, I8)
    read, near, data = (ir.Constant(I32, value) for value in (0, 2, 1))
    call(builder, "llvm.prefetch.p0", ir.VoidType(), [place, read, near, data])


def start_values(
    builder: Any, height: int, widths: tuple[int, ...], weight: Any, in_pairs: bool = False
) -> Any:
    """Return the start values of all sums, which are the bias, and the first weights' address.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        height: number of pixels.
        widths: number of lanes of each register of a pixel.
        weight: address of the packed weights, which begin with the bias.
        in_pairs: whether two pixels share their last register; the shared registers come last.
    """
    bias, address = [], weight
    for width in widths:
        bias.append(load(builder, address, vector(F32, width)))
        address = builder.add(address, integer(4 * width))
    if in_pairs:
        whole, half = bias
        return [whole] * height + [joined(builder, half)] * (height // 2), address
    return bias * height, address


def _columns(builder: Any, widths: tuple[int, ...], weights: Any) -> list[Any]:
    """Return the row of weights at the address *weights*, as registers of *widths* lanes."""
    columns, start = [], 0
    for width in widths:
        columns.append(load(builder, builder.add(weights, integer(4 * start)), vector(F32, width)))
        start += width
    return columns


def _add_products(
    builder: Any, sums: list[Any], widths: tuple[int, ...], values: list[Any], weights: Any
) -> list[Any]:
    """Append the products of one value of every pixel, in *values*; return the new sums.

    *weights* is the address of the row of weights that they are multiplied with.
    """
    columns = _columns(builder, widths, weights)
    following = []
    for m, value in enumerate(values):
        for j, width in enumerate(widths):
            copies = splat(builder, value, width)
            following.append(multiply_add(builder, copies, columns[j], sums[m * len(widths) + j]))
    return following


def _add_products_in_pairs(
    builder: Any,
    sums: list[Any],
    widths: tuple[int, ...],
    values: list[Any],
    weights: Any,
    second: Any,
) -> list[Any]:
    """Append products like :func:`_add_products`, where two pixels share the last register.

    *second* is the mask of the lanes of the second pixel in a shared register.
    """
    whole, half = _columns(builder, widths, weights)
    copies = [splat(builder, value, widths[0]) for value in values]
    pairs = [builder.select(second, copies[m + 1], copies[m]) for m in range(0, len(copies), 2)]
    factors = [whole] * len(copies) + [joined(builder, half)] * len(pairs)
    return [
        multiply_add(builder, x, factor, value)
        for x, factor, value in zip(copies + pairs, factors, sums, strict=True)
    ]


def _rows_of_pairs(builder: Any, height: int, sums: list[Any]) -> list[Any]:
    """Return the sums row by row: for each pixel, a whole register and half a register."""
    halves = [half for pair in sums[height:] for half in halves_of(builder, pair)]
    return [value for row in zip(sums[:height], halves, strict=True) for value in row]


def blocks_product(heights: tuple[int, ...], blocks: int, width: int) -> Any:
    """Return an intrinsic that computes several blocks of columns for a few pixels.

    It is called as ``product(height, *window, weight, apart, *output)``. It computes *blocks*
    blocks of columns of *height* pixels, one of *heights*. A block has two registers of *width*
    lanes, and weights of blocks are *apart* bytes apart. *output* is ``out, pitch, limits``. Other
    arguments are those of :func:`matrix_product`. There are so many sums that only reading the
    weights limits the speed.
    """

    @intrinsic
    def product(
        context: Any,
        height: Any,
        rows: Any,
        taps: Any,
        tap_count: Any,
        tap_bytes: Any,
        weight: Any,
        apart: Any,
        out: Any,
        pitch: Any,
        limits: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            chosen, *others = arguments
            for height in heights:
                with builder.if_then(builder.icmp_signed("==", chosen, integer(height))):
                    _blocks(builder, height, blocks, width, *others)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 10), generate

    return product


def _blocks(
    builder: Any,
    height: int,
    blocks: int,
    width: int,
    rows: Any,
    taps: Any,
    tap_count: Any,
    tap_bytes: Any,
    weight: Any,
    apart: Any,
    out: Any,
    pitch: Any,
    limits: Any,
) -> None:
    """Append the instructions of :func:`blocks_product` for *height* pixels."""
    kind = vector(F32, width)
    starts, start = [], integer(0)
    for _ in range(blocks):
        starts += [start, builder.add(start, integer(4 * width))]
        start = builder.add(start, apart)
    sums = [load(builder, builder.add(weight, start), kind) for start in starts] * height
    pixel = [load(builder, builder.add(rows, integer(8 * m)), I64) for m in range(height)]
    weights = builder.add(weight, integer(8 * width))
    outer = Loop(builder, tap_count)
    weights = outer.carried(weights)
    sums = [outer.carried(value) for value in sums]
    offset = load(builder, builder.add(taps, builder.shl(outer.index, integer(3))), I64)
    tap = [builder.add(address, offset) for address in pixel]
    inner = Loop(builder, tap_bytes, step=4)
    weights = inner.carried(weights)
    sums = [inner.carried(value) for value in sums]
    values = [load(builder, builder.add(address, inner.index), F32) for address in tap]
    copies = [splat(builder, value, width) for value in values]
    following = list(sums)
    for j, start in enumerate(starts):
        column = load(builder, builder.add(weights, start), kind)
        for m, value in enumerate(copies):
            at = m * len(starts) + j
            following[at] = multiply_add(builder, value, column, following[at])
    weights = builder.add(weights, integer(8 * width))
    inner.close(weights, *following)
    outer.close(weights, *following)
    for i, value in enumerate(clamped(builder, following, limits, LOW, HIGH)):
        row, column = divmod(i, len(starts))
        place = builder.add(out, builder.mul(pitch, integer(row)))
        store(builder, value, builder.add(place, integer(4 * width * column)))
