"""Attention: products, softmax and products of a few queries at a time.

Queries are columns of a block, so each key and each value is read in its place, for all queries of
the block. Only the queries are packed.
"""

from __future__ import annotations

import math

import numpy as np

from delegraph_numba_cpu.codegen import attention_f32_passes as passes
from delegraph_numba_cpu.codegen import row_passes
from delegraph_numba_cpu.codegen.intrinsics import (
    fill_bytes,
    jit,
    load_f32,
    load_i64,
    real,
    store_f32,
    store_i64,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import LANES
from delegraph_numba_cpu.instructions.attention_f32 import ATTENTION, CHUNK
from delegraph_numba_cpu.instructions.conv_f32 import HEIGHTS

HEIGHT = HEIGHTS[4 * LANES]
"""Number of rows of a register tile."""

NARROW, WIDE = LANES, 2 * LANES
"""Numbers of queries of the two kinds of blocks: one register, and two."""

SUMS = row_passes.LANES
"""Number of partial sums of a query's exponentials, as for a row of SOFTMAX."""

ZERO, ONE, LOWEST = np.float32(0), np.float32(1), np.float32(-math.inf)

X, KEYS, VALUES, Y, FACTOR, MASK, SCRATCH, SCRATCH_BYTES, TURNED_AT, SCORES_AT = ATTENTION.slots(
    "x", "keys", "values", "y", "factor", "mask", "scratch", "scratch_bytes", "turned_at",
    "scores_at",
)  # fmt: skip
BATCHES, HEADS, QUERIES, DEPTH, KEY_COUNT, COLUMNS, TOGETHER = ATTENTION.slots(
    "batches", "heads", "queries", "depth", "key_count", "columns", "together"
)
X_BATCH, KEYS_BATCH, VALUES_BATCH, Y_BATCH, X_ROW, Y_ROW, BETA, TILES = ATTENTION.slots(
    "x_batch", "keys_batch", "values_batch", "y_batch", "x_row", "y_row", "beta", "tiles"
)
KEYS_ROW, KEYS_COLUMN, VALUES_ROW, VALUES_COLUMN = ATTENTION.slots(
    "keys_row", "keys_column", "values_row", "values_column"
)
MASK_ROWS, MASK_INNER, MASK_OUTER_STEP, MASK_MIDDLE_STEP, MASK_INNER_STEP, MASK_STEP = (
    ATTENTION.slots(
        "mask_rows", "mask_inner", "mask_outer_step", "mask_middle_step", "mask_inner_step",
        "mask_step",
    )
)  # fmt: skip

ROWS_AT, ZEROS_AT = 0, 4 * WIDE * CHUNK
LARGEST_AT, TABLE_AT = ZEROS_AT + 4 * WIDE, ZEROS_AT + 8 * WIDE
"""Offsets in scratch memory of the largest scores, and of the addresses of rows."""

gather, gather_part = passes.gathered_square(False), passes.gathered_square(True)
scatter, scatter_part = passes.scattered_square(False), passes.scattered_square(True)


@kernel(ATTENTION)
def attention(record, tile, worker):
    """Compute this tile's part of the results of an attention.

    Parts consist of units: up to ``together`` queries of a head.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    queries, together = word(record, QUERIES), word(record, TOGETHER)
    blocks = (queries + together - 1) // together
    units, tiles = word(record, BATCHES) * word(record, HEADS) * blocks, word(record, TILES)
    scratch = word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)
    fill_bytes(scratch + ZEROS_AT, 0, 4 * WIDE)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        image, first = unit // blocks, unit % blocks * together
        count = min(together, queries - first)
        if count > NARROW:
            attend_wide(record, scratch, image, first, count)
        else:
            attend_narrow(record, scratch, image, first, count)


def attend_function(width):
    """Return a function that computes the attention of up to *width* queries of one head.

    Args:
        width: number of columns of a block.
    """
    pitch = 4 * width
    product = passes.product(tuple(range(HEIGHT, 0, -1)), width)
    plain, scaled = (
        passes.finished_scores(width, is_scaled, "none") for is_scaled in (False, True)
    )
    masked, scaled_masked = (
        passes.finished_scores(width, is_scaled, "row") for is_scaled in (False, True)
    )
    lifted, scaled_lifted = (
        passes.finished_scores(width, is_scaled, "value") for is_scaled in (False, True)
    )
    exponentials, multiplied = passes.exponentials(width), passes.multiplied(width)
    reciprocal_sums = passes.reciprocal_sums(width, SUMS)

    @jit
    def multiply(x, across, down, count, depth, weights, start, start_step, out):
        """Store at *out* the product of a matrix of *count* rows and *weights*, plus given sums.

        For the other arguments see the intrinsic that ``attention_f32_passes.product`` makes.
        """
        while count > 0:
            height = HEIGHT
            if count < HEIGHT:
                height = count
            elif HEIGHT != count < 2 * HEIGHT - 1:
                height = (count + 1) // 2  # tiles share the work evenly
            product(height, x, across, down, depth, weights, start, start_step, out)
            x += height * across
            start += height * start_step
            out += height * pitch
            count -= height

    @jit
    def turn(table, offset, count, target):
        """Write the first *count* values of some rows as the columns of the block at *target*.

        There is a row for each column. Row i begins *offset* bytes after address i in the *table*.
        """
        for column in range(0, width, LANES):
            place, rows = target + 4 * column, table + 8 * column
            for start in range(0, count, LANES):
                at, left = offset + 4 * start, count - start
                if left >= LANES:
                    gather(rows, at, place, pitch, left)
                else:
                    gather_part(rows, at, place, pitch, left)
                place += LANES * pitch

    @jit
    def turn_back(source, count, table):
        """Transpose a block of *count* rows of float32: write each column as a row of its own.

        *source* is the address of the block. *table* is the address of a table of addresses: column
        i is written at the one with number i.
        """
        for column in range(0, width, LANES):
            place, rows = source + 4 * column, table + 8 * column
            for start in range(0, count, LANES):
                if count - start >= LANES:
                    scatter(place, pitch, rows, 4 * start, count - start)
                else:
                    scatter_part(place, pitch, rows, 4 * start, count - start)
                place += LANES * pitch

    @jit
    def finish(record, scores, count, mask, mask_step, kind, largest):
        """Scale *count* rows of scores, add the mask, and update the largest score of each query.

        Args:
            record: address of the kernel call's operands.
            scores: address of the first row.
            count: number of rows, which are keys.
            mask: address of the part of the mask that is added to the first row.
            mask_step: bytes from there to the part for the next row.
            kind: 0 without a mask, 1 if one value is added to a whole row, 2 for one per column.
            largest: address of the largest scores.
        """
        factor = word(record, FACTOR)
        if factor:
            number = load_f32(factor)
            if kind == 0:
                scaled(scores, count, mask, mask_step, largest, number)
            elif kind == 1:
                scaled_lifted(scores, count, mask, mask_step, largest, number)
            else:
                scaled_masked(scores, count, mask, mask_step, largest, number)
        elif kind == 0:
            plain(scores, count, mask, mask_step, largest, ONE)
        elif kind == 1:
            lifted(scores, count, mask, mask_step, largest, ONE)
        else:
            masked(scores, count, mask, mask_step, largest, ONE)

    @jit
    def write_scores(record, scratch, number, count, keys):
        """Write the scores of a block of queries, and the largest score of each query.

        Args:
            record: address of the kernel call's operands.
            scratch: address of this thread's scratch memory.
            number: number of the first query, counted over all heads.
            count: number of queries.
            keys: address of the head's keys.
        """
        table, largest, zeros = scratch + TABLE_AT, scratch + LARGEST_AT, scratch + ZEROS_AT
        added, step, kind = scratch + ROWS_AT, word(record, MASK_STEP), 0
        if word(record, MASK):
            kind = 1 if write_mask_rows(record, table, number, count, width) else 2
            if kind == 1:
                added = load_i64(table)
            elif step == 0:
                for i in range(width):
                    store_f32(added + 4 * i, load_f32(load_i64(table + 8 * i)))
        for i in range(width):
            store_f32(largest + 4 * i, LOWEST)
        key_count, scores = word(record, KEY_COUNT), scratch + word(record, SCORES_AT)
        for first in range(0, key_count, CHUNK):
            length = min(CHUNK, key_count - first)
            # fmt: off
            multiply(keys + first * word(record, KEYS_ROW), word(record, KEYS_ROW),
                     word(record, KEYS_COLUMN), length, word(record, DEPTH),
                     scratch + word(record, TURNED_AT), zeros, 0, scores)
            # fmt: on
            if kind < 2 or step != 4:
                finish(record, scores, length, added + first * step, step, kind, largest)
            else:
                for start in range(0, length, LANES):
                    left = min(LANES, length - start)
                    turn(table, 4 * (first + start), left, added)
                    finish(record, scores + start * pitch, left, added, pitch, kind, largest)
            scores += length * pitch

    @jit
    def write_sums(record, scratch):
        """Replace scores by exponentials, and the largest scores by ``1 / sum`` of these.

        *record* is the address of the call's operands, *scratch* that of this thread's memory.
        """
        sums, largest = scratch + ROWS_AT, scratch + LARGEST_AT
        key_count, scores = word(record, KEY_COUNT), scratch + word(record, SCORES_AT)
        fill_bytes(sums, 0, pitch * SUMS)
        for first in range(0, key_count, SUMS):
            count = min(SUMS, key_count - first)
            exponentials(scores + first * pitch, count, sums, pitch, largest, real(record, BETA))
        reciprocal_sums(sums, largest)

    @jit
    def write_results(record, scratch, values):
        """Write the results of a block of queries as columns, in place of the queries.

        Args:
            record: address of the kernel call's operands.
            scratch: address of this thread's scratch memory.
            values: address of the head's values.
        """
        columns, row = word(record, COLUMNS), word(record, VALUES_ROW)
        results, factors = scratch + word(record, TURNED_AT), scratch + LARGEST_AT
        key_count, scores = word(record, KEY_COUNT), scratch + word(record, SCORES_AT)
        shares, start, start_step = scratch + ROWS_AT, scratch + ZEROS_AT, 0
        for first in range(0, key_count, CHUNK):
            length = min(CHUNK, key_count - first)
            multiplied(scores, length, shares, pitch, factors, ONE)
            # fmt: off
            multiply(values + first * row, word(record, VALUES_COLUMN), row, columns, length,
                     shares, start, start_step, results)
            # fmt: on
            scores += length * pitch
            start, start_step = results, pitch

    @jit
    def attend(record, scratch, image, first, count):
        """Compute the attention of *count* queries of one head.

        Args:
            record: address of the kernel call's operands.
            scratch: address of this thread's scratch memory.
            image: number of the head, counted over all batches.
            first: number of the first query.
            count: number of queries.
        """
        table, turned = scratch + TABLE_AT, scratch + word(record, TURNED_AT)
        x_row, y_row = word(record, X_ROW), word(record, Y_ROW)
        x = operand(record, X, X_BATCH, image) + first * x_row
        y = operand(record, Y, Y_BATCH, image) + first * y_row
        for i in range(width):  # unused columns are copies of the last query
            store_i64(table + 8 * i, x + min(i, count - 1) * x_row)
        turn(table, 0, word(record, DEPTH), turned)
        number = image * word(record, QUERIES) + first
        write_scores(record, scratch, number, count, operand(record, KEYS, KEYS_BATCH, image))
        write_sums(record, scratch)
        write_results(record, scratch, operand(record, VALUES, VALUES_BATCH, image))
        for i in range(width):
            store_i64(table + 8 * i, y + min(i, count - 1) * y_row)
        turn_back(turned, word(record, COLUMNS), table)

    return attend


@jit
def operand(record, slot, batch_slot, image):
    """Return the address of one head's matrix in an operand.

    Args:
        record: address of the kernel call's operands.
        slot: position of the operand's address among them.
        batch_slot: position of the distance between batches; that between heads comes next.
        image: number of the head, counted over all batches.
    """
    heads = word(record, HEADS)
    offset = image // heads * word(record, batch_slot) + image % heads * word(
        record, batch_slot + 1
    )
    return word(record, slot) + offset


@jit
def write_mask_rows(record, table, number, count, width):
    """Write a table of the addresses of the mask's rows; return whether all are the same.

    The last address is repeated, so that the table has *width* addresses.

    Args:
        record: address of the kernel call's operands.
        table: address of the table.
        number: number of the first query, counted over all heads.
        count: number of queries.
        width: number of addresses.
    """
    period, inner = word(record, MASK_ROWS), word(record, MASK_INNER)
    step = word(record, MASK_INNER_STEP)
    left, row, is_same = 0, 0, True
    for i in range(width):
        if i < count:
            if left == 0:
                row = word(record, MASK) + number // period * word(record, MASK_OUTER_STEP)
                row += number % period // inner * word(record, MASK_MIDDLE_STEP)
                row += number % inner * step
                left = inner - number % inner
            else:
                row += step
            left -= 1
            number += 1
        store_i64(table + 8 * i, row)
        is_same &= row == load_i64(table)
    return is_same


attend_wide, attend_narrow = attend_function(WIDE), attend_function(NARROW)
