"""Passes of attention over a block of queries, whose scores lie in columns.

A block is a matrix of float32 in scratch memory. It has a column for each query. The number of
columns is the number of lanes of one or two registers. So no pass has to combine the lanes of a
register.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.conv_f32_micro_kernels import prefetch
from delegraph_numba_cpu.codegen.intrinsics import F32, I64
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.math_functions import LARGEST, falling_exp
from delegraph_numba_cpu.codegen.moves_transpose import zipped
from delegraph_numba_cpu.codegen.row_passes import larger
from delegraph_numba_cpu.codegen.vector_ir import (
    LANES,
    Loop,
    first_lanes,
    integer,
    load,
    masked_load,
    masked_store,
    multiply_add,
    splat,
    store,
    vector,
)

REGISTER = vector(F32, LANES)

AHEAD = 128
"""Distance in bytes between a row in use and the row that is prefetched."""


def product(heights: tuple[int, ...], width: int) -> Any:
    """Return an intrinsic that computes a register tile: some rows of a matrix by *width* columns.

    It is called as ``product(height, x, across, down, depth, weights, start, start_step, out)``. It
    computes *height* rows, one of *heights*. Value k of row m is at ``x + m * across + k * down``.
    Each row has *depth* values, which are multiplied with as many rows of *weights*. Sums of row m
    begin with those at ``start + m * start_step``. Rows of *weights* and of the results at *out*
    have *width* floats, without gaps.
    """

    @intrinsic
    def run(
        context: Any,
        height: Any,
        x: Any,
        across: Any,
        down: Any,
        depth: Any,
        weights: Any,
        start: Any,
        start_step: Any,
        out: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            chosen, *others = arguments
            for height in heights:
                with builder.if_then(builder.icmp_signed("==", chosen, integer(height))):
                    _tile(builder, height, width, *others)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 9), generate

    return run


def _tile(
    builder: Any,
    height: int,
    width: int,
    x: Any,
    across: Any,
    down: Any,
    depth: Any,
    weights: Any,
    start: Any,
    start_step: Any,
    out: Any,
) -> None:
    """Append instructions that compute *height* rows of a register tile; see :func:`product`."""
    rows, starts = [x], [start]
    for _ in range(1, height):
        rows.append(builder.add(rows[-1], across))
        starts.append(builder.add(starts[-1], start_step))
    places = [integer(4 * lane) for lane in range(0, width, LANES)]
    sums = [
        load(builder, builder.add(first, place), REGISTER) for first in starts for place in places
    ]
    loop = Loop(builder, depth)
    offset, weights = loop.carried(integer(0)), loop.carried(weights)
    sums = [loop.carried(value) for value in sums]
    columns = [load(builder, builder.add(weights, place), REGISTER) for place in places]
    following = []
    for m, row in enumerate(rows):
        value = splat(builder, load(builder, builder.add(row, offset), F32), LANES)
        for column, total in zip(columns, sums[m * len(places) :], strict=False):
            following.append(multiply_add(builder, value, column, total))
    loop.close(builder.add(offset, down), builder.add(weights, integer(4 * width)), *following)
    for i, total in enumerate(following):
        store(builder, total, builder.add(out, integer(4 * LANES * i)))


def _row_pass(width: int, body: Callable[..., Lanes]) -> Any:
    """Return an intrinsic that applies *body* to the rows of a block, one after the other.

    Args:
        width: number of columns of the block.
        body: function ``(x, row, other, vector, number)`` that appends instructions for the row *x*
            at the address *row*, and returns the next *vector*. *number* is a vector of copies of a
            number.

    Returns:
        An intrinsic, called as ``(rows, count, other, other_step, vector, number)``. There are
        *count* rows, at least one, from the address *rows* on. The address *other* changes by
        *other_step* bytes from row to row. *vector* is the address of a vector that is read before
        the first row, and written after the last.
    """
    kind = vector(F32, width)

    @intrinsic
    def run(
        context: Any, rows: Any, count: Any, other: Any, other_step: Any, place: Any, number: Any
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows, count, other, other_step, place, number = arguments
            copies = Lanes(builder, splat(builder, number, width))
            first = load(builder, place, kind)
            loop = Loop(builder, count)
            row, at, value = loop.carried(rows), loop.carried(other), loop.carried(first)
            x = Lanes(builder, load(builder, row, kind))
            found = body(x, row, at, Lanes(builder, value), copies).value
            following = builder.add(row, integer(4 * width))
            loop.close(following, builder.add(at, other_step), found)
            store(builder, found, place)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 5, types.float32), generate

    return run


def finished_scores(width: int, is_scaled: bool, mask: str) -> Any:
    """Return an intrinsic that finishes scores, and updates the vector of the largest scores.

    It multiplies the scores by a number if *is_scaled*. Then it adds the mask at the address
    *other*. For the *mask* "value", one value is added to a whole row of the block; for "row", one
    value to each column; for "none", nothing. Results are limited to finite numbers, like those of
    MUL and ADD. For other arguments, see :func:`_row_pass`.
    """

    def body(x: Lanes, row: Any, other: Any, largest: Lanes, factor: Lanes) -> Lanes:
        builder = x.builder
        if is_scaled:
            x = (x * factor).at_least(-LARGEST).at_most(LARGEST)
        if mask != "none":
            if mask == "value":
                added = splat(builder, load(builder, other, F32), width)
            else:
                added = load(builder, other, x.type)
            x = (x + Lanes(builder, added)).at_least(-LARGEST).at_most(LARGEST)
        if is_scaled or mask != "none":
            store(builder, x.value, row)
        found: Lanes = larger(largest, x)
        return found

    return _row_pass(width, body)


def exponentials(width: int) -> Any:
    """Return an intrinsic that replaces scores by ``exp((score - largest) * number)``.

    It also adds each row to a row of sums at the address *other*. *vector* is the address of the
    largest scores. For other arguments, see :func:`_row_pass`.
    """

    def body(x: Lanes, row: Any, other: Any, largest: Lanes, beta: Lanes) -> Lanes:
        builder = x.builder
        e = falling_exp((x - largest) * beta)
        store(builder, e.value, row)
        total = Lanes(builder, load(builder, other, x.type)) + e
        store(builder, total.value, other)
        return largest

    return _row_pass(width, body)


def multiplied(width: int) -> Any:
    """Return an intrinsic that writes each row of a block, times a vector, to an address.

    The address is *other*; for all arguments of the intrinsic, see the result of :func:`_row_pass`.
    """

    def body(x: Lanes, row: Any, other: Any, factors: Lanes, number: Lanes) -> Lanes:
        store(x.builder, (x * factors).value, other)
        return factors

    return _row_pass(width, body)


def reciprocal_sums(width: int, count: int) -> Any:
    """Return an intrinsic that writes ``1 / sum`` of each column of a block of *count* rows.

    A row has *width* values; *count* is a power of two.

    It is called as ``(rows, target)``. It adds the second half of the rows to the first half, again
    and again, in the order of ``row_passes.folded``. The rows are overwritten.
    """
    kind = vector(F32, width)

    @intrinsic
    def run(context: Any, rows: Any, target: Any) -> Any:
        def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows, target = arguments
            half = count // 2
            while half:
                loop = Loop(builder, integer(4 * width * half), step=4 * width)
                low = builder.add(rows, loop.index)
                high = builder.add(low, integer(4 * width * half))
                total = builder.fadd(load(builder, low, kind), load(builder, high, kind))
                store(builder, total, low)
                loop.close()
                half //= 2
            total = 1.0 / Lanes(builder, load(builder, rows, kind))
            store(builder, total.value, target)
            return lowering.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return run


def gathered_square(is_part: bool) -> Any:
    """Return an intrinsic that reads a square of ``LANES`` by ``LANES`` values and transposes it.

    It is called as ``(table, offset, target, target_step, count)``. Row i is read *offset* bytes
    after address i in the *table*. If *is_part*, rows have only *count* values, and zeros follow
    them. Rows of the result are *target_step* bytes apart.
    """

    @intrinsic
    def run(
        context: Any, table: Any, offset: Any, target: Any, target_step: Any, count: Any
    ) -> Any:
        def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            table, offset, target, target_step, count = arguments
            lanes = first_lanes(builder, count, LANES) if is_part else None
            rows = []
            for i in range(LANES):
                row = load(builder, builder.add(table, integer(8 * i)), I64)
                place = builder.add(row, offset)
                prefetch(builder, builder.add(place, integer(AHEAD)))
                if lanes is None:
                    rows.append(load(builder, place, REGISTER))
                else:
                    rows.append(masked_load(builder, place, lanes, REGISTER))
            for row in zipped(builder, rows, 1):
                store(builder, row, target)
                target = builder.add(target, target_step)
            return lowering.get_dummy_value()

        return types.void(*[types.int64] * 5), generate

    return run


def scattered_square(is_part: bool) -> Any:
    """Return an intrinsic that writes a square of ``LANES`` by ``LANES`` values, transposed.

    It is called as ``(source, source_step, table, offset, count)``. Rows of the square begin at the
    address *source*, *source_step* bytes apart. *table* is the address of a table of addresses. Row
    i of the result is written *offset* bytes after the address with number i in it. If *is_part*,
    only the first *count* values of a row are written.
    """

    @intrinsic
    def run(
        context: Any, source: Any, source_step: Any, table: Any, offset: Any, count: Any
    ) -> Any:
        def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source, source_step, table, offset, count = arguments
            lanes = first_lanes(builder, count, LANES) if is_part else None
            rows = []
            for _ in range(LANES):
                rows.append(load(builder, source, REGISTER))
                source = builder.add(source, source_step)
            for i, row in enumerate(zipped(builder, rows, 1)):
                address = load(builder, builder.add(table, integer(8 * i)), I64)
                place = builder.add(address, offset)
                if lanes is None:
                    store(builder, row, place)
                else:
                    masked_store(builder, row, place, lanes)
            return lowering.get_dummy_value()

        return types.void(*[types.int64] * 5), generate

    return run
