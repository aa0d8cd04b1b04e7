"""Kernels that move values without changing them."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    fill_bytes,
    jit,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    store_i16,
    store_i32,
    store_i64,
    store_u8,
    word,
)
from delegraph_numba_cpu.codegen.moves_transpose import transposer
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import moves as instructions
from delegraph_numba_cpu.kernels.positions import report_position

LOOP_BYTES = 8 * instructions.NEST_WORDS


@kernel(instructions.COPY)
def copy(record, tile, worker):
    """Copy this tile's share of the bytes.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    size, tiles = word(record, COPY_BYTES), word(record, COPY_TILES)
    first, last = size * tile // tiles, size * (tile + 1) // tiles
    copy_bytes(word(record, COPY_TARGET) + first, word(record, COPY_SOURCE) + first, last - first)


COPY_SOURCE, COPY_TARGET, COPY_BYTES, COPY_TILES = instructions.COPY.slots(*instructions.COPY.names)


def _mover(unit, load, store):
    """Return a function that copies rows of elements of *unit* bytes, by *load* and *store*.

    Its arguments are source, source_row, target, target_row, rows, source_step, target_step and
    count. Rows of the source are *source_row* bytes apart, and its elements *source_step* bytes.
    """

    @jit
    def move(source, source_row, target, target_row, rows, source_step, target_step, count):
        for _ in range(rows):
            for i in range(count):
                store(target + i * target_step, load(source + i * source_step))
            source += source_row
            target += target_row

    return move


def _turning_mover(unit, load, store):
    """Return a function like that of :func:`_mover`, but faster if rows become columns.

    It then transposes small squares in registers: if *source_row* and *target_step* are *unit*.
    """
    transpose, move_on = transposer(unit, load, store), _mover(unit, load, store)

    @jit
    def move(source, source_row, target, target_row, rows, source_step, target_step, count):
        if source_row == unit and target_step == unit:
            transpose(source, source_step, target, target_row, count, rows)
        else:
            move_on(source, source_row, target, target_row, rows, source_step, target_step, count)

    return move


move_1, move_4 = _turning_mover(1, load_u8, store_u8), _turning_mover(4, load_i32, store_i32)
move_2, move_8 = _mover(2, load_i16, store_i16), _mover(8, load_i64, store_i64)

N_SOURCE, N_TARGET, N_LOOPS, N_DEPTH, N_ROWS, N_GRAIN, N_UNIT, N_TILES = instructions.NEST.slots(
    *instructions.NEST.names
)


@jit
def place(loops, depth, outer, side):
    """Return the byte offset at step *outer* of the outer loops, all of *depth* but the inner two.

    *loops* is the address of the loops' records. *side* is 1 for the source, 2 for the target.
    """
    offset = 0
    for k in range(depth - 3, -1, -1):
        loop = loops + LOOP_BYTES * k
        steps = load_i64(loop)
        offset += outer % steps * load_i64(loop + 8 * side)
        outer //= steps
    return offset


@kernel(instructions.NEST)
def nest(record, tile, worker):
    """Copy this tile's share of the rows of the loop nest.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    walk(
        word(record, N_SOURCE), word(record, N_TARGET), word(record, N_LOOPS),
        word(record, N_DEPTH), word(record, N_ROWS), word(record, N_GRAIN),
        word(record, N_UNIT), tile, word(record, N_TILES),
    )  # fmt: skip


(
    U_SOURCE, U_TARGET, U_LOOPS, U_DEPTH, U_ROWS, U_UNIT, U_STARTS, U_INDEX_BYTES, U_LIMITS, U_RANK,
    U_TILES,
) = instructions.UPDATE.slots(*instructions.UPDATE.names)  # fmt: skip


@kernel(instructions.UPDATE)
def update(record, tile, worker):
    """Copy this tile's share of rows into the target, from the start position in a tensor.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    starts, index_bytes = word(record, U_STARTS), word(record, U_INDEX_BYTES)
    target, limit = word(record, U_TARGET), word(record, U_LIMITS)
    for _ in range(word(record, U_RANK)):
        start = load_i64(starts) if index_bytes == 8 else np.int64(load_i32(starts))
        target += max(min(start, load_i64(limit)), 0) * load_i64(limit + 8)
        starts, limit = starts + index_bytes, limit + 16
    walk(
        word(record, U_SOURCE), target, word(record, U_LOOPS), word(record, U_DEPTH),
        word(record, U_ROWS), 1, word(record, U_UNIT), tile, word(record, U_TILES),
    )  # fmt: skip


@jit
def walk(source_start, target_start, loops, depth, rows, grain, unit, tile, tiles):
    """Copy one tile's share of the rows of a loop nest; a row is one run of the innermost loop.

    *loops* is the address of the records of *depth* loops. Tiles have groups of *grain* rows.
    """
    inner = loops + LOOP_BYTES * (depth - 1)
    middle = inner - LOOP_BYTES
    count, source_step, target_step = load_i64(inner), load_i64(inner + 8), load_i64(inner + 16)
    steps, source_row, target_row = load_i64(middle), load_i64(middle + 8), load_i64(middle + 16)
    grains = (rows + grain - 1) // grain
    row, last = grains * tile // tiles * grain, grains * (tile + 1) // tiles * grain
    last = min(last, rows)
    while row < last:
        outer, first = row // steps, row % steps
        several = min(steps - first, last - row)
        source = source_start + place(loops, depth, outer, 1) + first * source_row
        target = target_start + place(loops, depth, outer, 2) + first * target_row
        if source_step == unit and target_step == unit:
            for _ in range(several):
                copy_bytes(target, source, count * unit)
                source += source_row
                target += target_row
        elif unit == 1:
            move_1(source, source_row, target, target_row, several, source_step, target_step, count)
        elif unit == 2:
            move_2(source, source_row, target, target_row, several, source_step, target_step, count)
        elif unit == 4:
            move_4(source, source_row, target, target_row, several, source_step, target_step, count)
        else:
            move_8(source, source_row, target, target_row, several, source_step, target_step, count)
        row += several


F_TARGET, F_LOOPS, F_DEPTH, F_ROWS, F_UNIT, F_VALUE, F_TILES = instructions.FILL.slots(
    *instructions.FILL.names
)


@kernel(instructions.FILL)
def fill(record, tile, worker):
    """Fill a tile's share of a strided array with one value, contiguous piece by piece.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    loops, depth, rows = word(record, F_LOOPS), word(record, F_DEPTH), word(record, F_ROWS)
    unit, value, tiles = word(record, F_UNIT), word(record, F_VALUE), word(record, F_TILES)
    inner = loops + LOOP_BYTES * (depth - 1)
    middle = inner - LOOP_BYTES
    count, step = load_i64(inner), load_i64(inner + 16)
    steps, target_row = load_i64(middle), load_i64(middle + 16)
    start = word(record, F_TARGET)
    row, last = rows * tile // tiles, rows * (tile + 1) // tiles
    while row < last:
        outer, first = row // steps, row % steps
        several = min(steps - first, last - row)
        target = start + place(loops, depth, outer, 2) + first * target_row
        for _ in range(several):
            fill_row(target, value, count, step, unit)
            target += target_row
        row += several


LEAST_FILL = 32
"""Least number of bytes for which a call of ``memset`` takes less time than a loop."""


@jit
def fill_row(target, value, count, step, unit):
    """Store the low *unit* bytes of a value *count* times, *step* bytes apart."""
    if step == unit and (unit == 1 or value == 0) and count * unit >= LEAST_FILL:
        fill_bytes(target, value, count * unit)
    elif unit == 1:
        for i in range(count):
            store_u8(target + i * step, value)
    elif unit == 2:
        for i in range(count):
            store_i16(target + i * step, value)
    elif unit == 4:
        for i in range(count):
            store_i32(target + i * step, value)
    else:
        for i in range(count):
            store_i64(target + i * step, value)


P_SOURCE, P_TARGET, P_OUTER, P_INNER, P_OFFSETS, P_RUN, P_ROWS, P_TILES = instructions.PICK.slots(
    *instructions.PICK.names
)


@kernel(instructions.PICK)
def pick(record, tile, worker):
    """Copy this tile's share of the runs of bytes.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    source, outer, offsets = word(record, P_SOURCE), word(record, P_OUTER), word(record, P_OFFSETS)
    inner, run = word(record, P_INNER), word(record, P_RUN)
    rows, tiles = word(record, P_ROWS), word(record, P_TILES)
    row, last = rows * tile // tiles, rows * (tile + 1) // tiles
    target = word(record, P_TARGET) + row * run
    while row < last:
        start, first = source + load_i64(outer + row // inner * 8), row % inner
        several = min(inner - first, last - row)
        pick_runs(start, offsets + 8 * first, target, several, run)
        target += several * run
        row += several


@jit
def pick_runs(source, offsets, target, count, run):
    """Copy *count* runs of *run* bytes to *target*; *offsets* has int64 places in *source*."""
    if run == 1:
        for i in range(count):
            store_u8(target + i, load_u8(source + load_i64(offsets + 8 * i)))
    elif run == 4:
        for i in range(count):
            store_i32(target + 4 * i, load_i32(source + load_i64(offsets + 8 * i)))
    else:
        for i in range(count):
            copy_bytes(target + run * i, source + load_i64(offsets + 8 * i), run)


(
    G_SOURCE, G_TARGET, G_POSITIONS, G_INDEX_BYTES, G_LIMITS, G_DEPTH, G_TUPLES, G_SLICES, G_SLAB,
    G_RUN, G_ROWS, G_REPORT, G_WRONG, G_AMONG, G_TILES,
) = instructions.GATHER.slots(*instructions.GATHER.names)  # fmt: skip


@kernel(instructions.GATHER)
def gather(record, tile, worker):
    """Copy this tile's share of the runs of bytes; skip runs whose position is out of range.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    source, positions, limits = (
        word(record, G_SOURCE),
        word(record, G_POSITIONS),
        word(record, G_LIMITS),
    )
    index_bytes, depth = word(record, G_INDEX_BYTES), word(record, G_DEPTH)
    tuples, slices, slab = word(record, G_TUPLES), word(record, G_SLICES), word(record, G_SLAB)
    run, rows, tiles = word(record, G_RUN), word(record, G_ROWS), word(record, G_TILES)
    row, last = rows * tile // tiles, rows * (tile + 1) // tiles
    target = word(record, G_TARGET) + row * run
    while row < last:
        slice, first = row // tuples, row % tuples
        several = min(tuples - first, last - row)
        index = positions + (slice // slices * tuples + first) * depth * index_bytes
        gather_runs(
            record, source + slice * slab, index, index_bytes, limits, depth, target, several, run
        )
        target += several * run
        row += several


@jit
def gather_runs(record, source, index, index_bytes, limits, depth, target, count, run):
    """Copy pieces of bytes from positions in a tensor; report positions that are out of range.

    Args:
        record: address of the kernel call's operands.
        source: address of the first byte that positions count from.
        index: address of the positions: *depth* for each piece.
        index_bytes: number of bytes of a position.
        limits: address of each axis's number of positions, and bytes from one position to the next.
        depth: number of axes that have a position.
        target: address to which the first piece is copied.
        count: number of pieces.
        run: number of bytes of a piece.
    """
    for _ in range(count):
        offset, is_inside = 0, True
        for k in range(depth):
            position = load_index(index, index_bytes)
            index += index_bytes
            size = load_i64(limits + 16 * k)
            if not 0 <= position < size:
                report_position(
                    record + 8 * G_WRONG,
                    record + 8 * G_AMONG,
                    word(record, G_REPORT),
                    position,
                    size,
                )
                is_inside = False
            offset += position * load_i64(limits + 16 * k + 8)
        if is_inside:
            copy_run(target, source + offset, run)
        target += run


@jit
def load_index(address, size):
    """Return the integer of *size* bytes, 2, 4 or 8, at an address."""
    if size == 4:
        return np.int64(load_i32(address))
    return load_i64(address) if size == 8 else np.int64(load_i16(address))


@jit
def copy_run(target, source, size):
    """Copy *size* bytes at one address to another; common sizes need no function call."""
    if size == 4:
        store_i32(target, load_i32(source))
    elif size == 1:
        store_u8(target, load_u8(source))
    elif size % 64:
        copy_bytes(target, source, size)
    elif size <= 512:
        for k in range(0, size, 64):
            copy_line(target + k, source + k)
    else:
        copy_bytes(target, source, size)


@jit
def copy_line(target, source):
    """Copy 64 bytes from the address *source* to the address *target*."""
    a, b, c, d = (
        load_i64(source),
        load_i64(source + 8),
        load_i64(source + 16),
        load_i64(source + 24),
    )
    e, f = load_i64(source + 32), load_i64(source + 40)
    g, h = load_i64(source + 48), load_i64(source + 56)
    store_i64(target, a)
    store_i64(target + 8, b)
    store_i64(target + 16, c)
    store_i64(target + 24, d)
    store_i64(target + 32, e)
    store_i64(target + 40, f)
    store_i64(target + 48, g)
    store_i64(target + 56, h)


R_SOURCE, R_TARGET, R_TABLE, R_RUN, R_RUNS, R_STEP, R_TILES = instructions.RECODE.slots(
    *instructions.RECODE.names
)


@kernel(instructions.RECODE)
def recode(record, tile, worker):
    """Convert this tile's share of the runs of bytes by the table.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    run, runs, tiles = word(record, R_RUN), word(record, R_RUNS), word(record, R_TILES)
    table = word(record, R_TABLE)
    for i in range(runs * tile // tiles, runs * (tile + 1) // tiles):
        source = word(record, R_SOURCE) + i * run
        target = word(record, R_TARGET) + i * word(record, R_STEP)
        for k in range(run):
            store_u8(target + k, load_u8(table + load_u8(source + k)))
