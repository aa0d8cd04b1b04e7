"""Attention: products, softmax and products of a few rows at a time."""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import F32, jit, load_f32, real, store_i64, word
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.math_functions import LARGEST
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.row_passes import LANES, folded, larger
from delegraph_numba_cpu.codegen.vector_ir import (
    first_lanes,
    integer,
    load,
    masked_load,
    repeated,
    splat,
    store,
)
from delegraph_numba_cpu.instructions.attention_f32 import ATTENTION
from delegraph_numba_cpu.kernels.conv_f32 import HALF, MIDDLE, NARROW, WIDE, matrix
from delegraph_numba_cpu.kernels.conv_f32_windows import HEIGHT
from delegraph_numba_cpu.kernels.softmax import exponentials, scaled

KIND = ir.VectorType(F32, LANES)

ZERO, ONE = np.float32(0), np.float32(1)

X, KEYS, VALUES, Y, FACTOR, MASK, SCRATCH, SCRATCH_BYTES, PIXELS_AT, SCORES_AT = ATTENTION.slots(
    "x", "keys", "values", "y", "factor", "mask", "scratch", "scratch_bytes", "pixels_at",
    "scores_at",
)  # fmt: skip
BATCHES, HEADS, QUERIES, DEPTH, KEY_COUNT, COLUMNS, X_ROW, Y_ROW, SCORE_ROW, TOGETHER = (
    ATTENTION.slots(
        "batches", "heads", "queries", "depth", "key_count", "columns", "x_row", "y_row",
        "score_row", "together",
    )
)  # fmt: skip
X_BATCH, KEYS_BATCH, VALUES_BATCH, Y_BATCH, BETA, LOW, TILES = ATTENTION.slots(
    "x_batch", "keys_batch", "values_batch", "y_batch", "beta", "low", "tiles"
)
MASK_ROWS, MASK_INNER, MASK_OUTER_STEP, MASK_MIDDLE_STEP, MASK_INNER_STEP, MASK_STEP = (
    ATTENTION.slots(
        "mask_rows", "mask_inner", "mask_outer_step", "mask_middle_step", "mask_inner_step",
        "mask_step",
    )
)  # fmt: skip


def _scores_pass(is_scaled, mask_kind):
    """Return an intrinsic that finishes a row of attention scores and returns the largest score.

    It multiplies the scores by a factor if *is_scaled*. Then it adds a mask: the row at an address
    for the *mask_kind* "row", one number for "value", nothing for "none". Results are limited to
    finite numbers, as those of MUL and ADD are. The last vector is filled with -inf after the last
    score.
    """

    @intrinsic
    def run(context, row, mask, count, factor):
        def generate(lowering, builder, signature, arguments):
            row, mask, count, factor = arguments
            factors = splat(builder, factor, LANES)
            if mask_kind == "value":
                value = splat(builder, load(builder, mask, F32), LANES)

            def finished(index, masked):
                at = builder.mul(index, integer(4))
                x = Lanes(builder, load(builder, builder.add(row, at), KIND))
                if is_scaled:
                    x = (x * Lanes(builder, factors)).at_least(-LARGEST).at_most(LARGEST)
                if mask_kind != "none":
                    added = value if mask_kind == "value" else masked(builder.add(mask, at))
                    x = (x + Lanes(builder, added)).at_least(-LARGEST).at_most(LARGEST)
                return x, builder.add(row, at)

            def whole(index, values):
                x, place = finished(index, lambda at: load(builder, at, KIND))
                if is_scaled or mask_kind != "none":
                    store(builder, x.value, place)
                return [larger(Lanes(builder, values[0]), x).value]

            start = ir.Constant(KIND, [-math.inf] * LANES)
            index, (most,) = repeated(builder, integer(0), count, LANES, [start], whole)
            left = builder.sub(count, index)
            before = builder.block
            with builder.if_then(builder.icmp_signed(">", left, integer(0))):
                lanes = first_lanes(builder, left, LANES)
                x, place = finished(index, lambda at: masked_load(builder, at, lanes, KIND))
                x = Lanes(builder, lanes).choose(x, x.filled(-math.inf))
                store(builder, x.value, place)
                last, inside = larger(Lanes(builder, most), x).value, builder.block
            found = builder.phi(KIND)
            found.add_incoming(most, before)
            found.add_incoming(last, inside)
            return folded(Lanes(builder, found), larger)

        return types.float32(*[types.int64] * 3, types.float32), generate

    return run


plain, scaled_only = _scores_pass(False, "none"), _scores_pass(True, "none")
masked_only, scaled_and_masked = _scores_pass(False, "row"), _scores_pass(True, "row")
plus_value, scaled_plus_value = _scores_pass(False, "value"), _scores_pass(True, "value")


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
    store_i64(scratch, 0)  # the offset of the only tap
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        image, first = unit // blocks, unit % blocks * together
        attend(record, scratch, image, first, min(together, queries - first))


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
    scores, pitch = scratch + word(record, SCORES_AT), word(record, SCORE_ROW)
    x = operand(record, X, X_BATCH, image) + first * word(record, X_ROW)
    keys = operand(record, KEYS, KEYS_BATCH, image)
    values = operand(record, VALUES, VALUES_BATCH, image)
    y, y_row = operand(record, Y, Y_BATCH, image), word(record, Y_ROW)
    y += first * y_row
    depth, key_count, columns = word(record, DEPTH), word(record, KEY_COUNT), word(record, COLUMNS)
    multiply(
        record, scratch, x, word(record, X_ROW), count, keys, depth, key_count, scores, pitch, 1
    )
    for i in range(count):
        share(record, scores + i * pitch, image * word(record, QUERIES) + first + i)
    multiply(record, scratch, scores, pitch, count, values, key_count, columns, y, y_row, 0)


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
def multiply(record, scratch, x, x_row, count, weight, depth, columns, y, y_row, has_room):
    """Write the product of some rows and a packed matrix.

    Args:
        record: address of the kernel call's operands.
        scratch: address of this thread's scratch memory.
        x: address of the first row.
        x_row: bytes from one row to the next.
        count: number of rows.
        weight: address of the packed matrix.
        depth: number of values of a row.
        columns: number of columns of the matrix.
        y: address of the first row of results.
        y_row: bytes from one row of results to the next.
        has_room: whether each result row has room for all columns of the packed blocks, so that no
            store is partial.
    """
    pixels = scratch + word(record, PIXELS_AT)
    for i in range(count + HEIGHT):  # copies of the last row fill a tile of registers
        store_i64(pixels + 8 * i, x + min(i, count - 1) * x_row)
    for column in range(0, columns, WIDE):
        left = columns - column
        if has_room:
            left = whole_columns(left)
        # fmt: off
        matrix(pixels, scratch, 1, 4 * depth, weight + column * 4 * (depth + 1), y + 4 * column, 0,
               y_row, count, left, record + 8 * LOW)
        # fmt: on


@jit
def whole_columns(columns):
    """Return how many columns the register tile has that computes the last *columns* columns."""
    if columns <= NARROW:
        return HALF if columns <= HALF else NARROW
    return MIDDLE if columns <= MIDDLE else WIDE


@jit
def share(record, row, number):
    """Replace a query's row of scores by their softmax, its shares of the values.

    Args:
        record: address of the kernel call's operands.
        row: address of the row of scores.
        number: number of the query, counted over all heads.
    """
    count, beta = word(record, KEY_COUNT), real(record, BETA)
    whole = (count + LANES - 1) // LANES * LANES
    maximum = largest_score(record, row, number, count)
    total = exponentials(row, row, row, row, whole, whole, maximum, beta)
    scaled(row, row, row, row, whole, whole, ONE / total, ZERO)


@jit
def largest_score(record, row, number, count):
    """Scale a query's scores, add its row of the mask, and return the largest score.

    Args:
        record: address of the kernel call's operands.
        row: address of the row of scores.
        number: number of the query, counted over all heads.
        count: number of scores.
    """
    factor = load_f32(word(record, FACTOR)) if word(record, FACTOR) else ONE
    mask = word(record, MASK)
    if mask == 0:
        if word(record, FACTOR):
            return scaled_only(row, mask, count, factor)
        return plain(row, mask, count, factor)
    period, inner = word(record, MASK_ROWS), word(record, MASK_INNER)
    mask += number // period * word(record, MASK_OUTER_STEP)
    mask += number % period // inner * word(record, MASK_MIDDLE_STEP)
    mask += number % inner * word(record, MASK_INNER_STEP)
    if word(record, MASK_STEP) == 0:
        if word(record, FACTOR):
            return scaled_plus_value(row, mask, count, factor)
        return plus_value(row, mask, count, factor)
    if word(record, FACTOR):
        return scaled_and_masked(row, mask, count, factor)
    return masked_only(row, mask, count, factor)
