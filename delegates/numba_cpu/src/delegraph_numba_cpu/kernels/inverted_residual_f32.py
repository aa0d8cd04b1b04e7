"""Fused expand, depthwise and project convolutions, by strips; see the instruction."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    fill_bytes,
    jit,
    store_i64,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import LANES
from delegraph_numba_cpu.instructions.inverted_residual_f32 import INVERTED_RESIDUAL
from delegraph_numba_cpu.kernels.conv_f32 import WIDE, multiply, multiply_to
from delegraph_numba_cpu.kernels.conv_f32_windows import (
    CHUNK,
    COLUMNS,
    COPIED,
    HEIGHT,
    IN_H,
    IN_ROW,
    LEFT,
    OUT_H,
    OUT_W,
    PITCH,
    ROW,
    ROWS_AT,
    SPAN,
    STRIDE_COLUMN,
    STRIDE_H,
    STRIDE_ROW,
    TAP_BYTES,
    TAP_COLUMN,
    TAP_COLUMNS,
    TAP_ROW,
    TAP_ROWS,
    TOP,
    WEIGHT,
    X,
    chunk_rows,
    chunk_source,
    own_scratch,
    row_range,
    write_pixels,
    write_taps,
)
from delegraph_numba_cpu.kernels.depthwise_conv_f32 import filter_rows

EXPAND = 8 * INVERTED_RESIDUAL.slots("expand_x")[0]
PROJECT = 8 * INVERTED_RESIDUAL.slots("project_x")[0]
RING, RING_ROWS, ZEROS, RESULT_AT, HAS_ENDS, LAST_AT = INVERTED_RESIDUAL.slots(
    "ring", "ring_rows", "zeros", "result_at", "has_ends", "last_at"
)


@kernel(INVERTED_RESIDUAL)
def inverted_residual(block, tile, worker):
    """Compute a tile of expand, depthwise and project convolutions.

    A ring buffer has expanded rows.
    """
    expand, project = block + EXPAND, block + PROJECT
    row, last = row_range(block, tile)
    scratch, project_rows = own_scratch(block, worker), own_scratch(project, worker)
    project_taps = project_rows
    project_rows += word(project, ROWS_AT)
    ring_bytes, has_ends = word(block, RING_ROWS) * word(block, ROW), word(block, HAS_ENDS)
    ring = word(block, RING) + worker * (ring_bytes + word(block, ZEROS))
    result, inner = scratch + word(block, RESULT_AT), scratch
    write_pixels(block, scratch + word(block, ROWS_AT), 0, 1)
    if has_ends:
        place = scratch + word(block, ROWS_AT) + 8 * (word(block, OUT_W) - HEIGHT)
        store_i64(place, word(block, LAST_AT))
        inner += 8 * word(block, CHUNK) * word(block, TAP_ROWS) * word(block, TAP_COLUMNS)
    if word(expand, WEIGHT):
        write_taps(expand, own_scratch(expand, worker))
    write_taps(project, project_taps)
    clear_edges(block, ring)
    image, following = -1, 0
    while row < last:
        count = chunk_rows(block, row, last)
        y = row % word(block, OUT_H) * word(block, STRIDE_H) - word(block, TOP)
        if row // word(block, OUT_H) != image:
            image, following = row // word(block, OUT_H), 0
        end = min(y + (count - 1) * word(block, STRIDE_H) + word(block, SPAN), word(block, IN_H))
        following = max(following, y)
        if following < end:
            fill_ring(block, ring, worker, image * word(block, IN_H), following, end)
            following = end
        zeros = ring + ring_bytes
        write_row_taps(
            block, scratch, ring, word(block, RING_ROWS), word(block, ROW), zeros, y, count
        )
        if has_ends:
            height, size = word(block, IN_H), word(expand, IN_ROW)
            source = word(expand, X) + image * height * size - word(block, LEFT)
            write_row_taps(block, inner, source, height, size, zeros, y, count)
        filter_chunk(block, scratch, inner, result, count)
        write_pixels(project, project_rows, result, count)
        for column in range(0, word(project, COLUMNS), WIDE):
            multiply(project, project_rows, project_taps, count * word(block, OUT_W), column, row)
        row += count


@jit
def clear_edges(block, ring):
    """Write the zeros beside each row of the ring buffer, and the row of zeros after all rows."""
    left, size = word(block, LEFT), word(block, ROW)
    right = left + word(block, COPIED)
    for i in range(word(block, RING_ROWS)):
        fill_bytes(ring + i * size, 0, left)
        fill_bytes(ring + i * size + right, 0, size - right)
    fill_bytes(ring + word(block, RING_ROWS) * size, 0, word(block, ZEROS))


@jit
def fill_ring(block, ring, worker, base, first, end):
    """Compute or copy expanded rows *first* to *end* into the ring buffer."""
    expand = block + EXPAND
    if word(expand, WEIGHT) == 0:
        for y in range(first, end):
            source = word(expand, X) + (base + y) * word(expand, IN_ROW)
            copy_pixels(expand, source, ring_row(block, ring, y) + word(block, LEFT))
        return
    scratch = own_scratch(expand, worker)
    rows, width = scratch + word(expand, ROWS_AT), word(expand, OUT_W)
    room = 8 * (width + HEIGHT)
    source = chunk_source(expand, scratch, base + first, end - first)
    for y in range(first, end):
        write_pixels(expand, rows + (y - first) * room, source, 1)
        source += word(expand, STRIDE_ROW)
    weight = word(expand, WEIGHT)
    for column in range(0, word(expand, COLUMNS), WIDE):
        for y in range(first, end):
            out = ring_row(block, ring, y) + word(block, LEFT)
            multiply_to(expand, rows + (y - first) * room, scratch, width, column, weight, out, 0)


@jit
def copy_pixels(expand, source, target):
    """Copy equal pieces of a row, such as pixels, to addresses with another stride."""
    size, pitch, step = word(expand, TAP_BYTES), word(expand, PITCH), word(expand, STRIDE_COLUMN)
    source += word(expand, LEFT)
    for _ in range(word(expand, OUT_W)):
        copy_bytes(target, source, size)
        source += step
        target += pitch


@jit
def ring_row(block, ring, y):
    """Return the address of expanded row *y* in the ring buffer."""
    return ring + y % word(block, RING_ROWS) * word(block, ROW)


@jit
def write_row_taps(block, table, first, rows, size, zeros, y, count):
    """Write the address of each tap of each output row's first pixel.

    Row *i* of an image is the row *i* modulo *rows* of those from *first* on, of *size* bytes each.
    """
    down, columns = word(block, TAP_ROW), word(block, TAP_COLUMNS)
    for _ in range(count):
        for i in range(word(block, TAP_ROWS)):
            source = y + i * down
            if source < 0 or source >= word(block, IN_H):
                address = zeros
            else:
                address = first + source % rows * size
            for _ in range(columns):
                store_i64(table, address)
                table += 8
                address += word(block, TAP_COLUMN)
        y += word(block, STRIDE_H)


@jit
def filter_chunk(block, taps, inner_taps, result, count):
    """Compute *count* rows of the depthwise convolution: a chunk."""
    rows, width = taps + word(block, ROWS_AT), word(block, OUT_W)
    room = 8 * word(block, TAP_ROWS) * word(block, TAP_COLUMNS)
    for channel in range(0, word(block, COLUMNS), LANES):
        for i in range(count):
            out = result + i * width * word(block, PITCH)
            at = i * room
            filter_rows(block, rows, taps + at, inner_taps + at, 1, channel, out)
