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
from delegraph_numba_cpu.kernels.depthwise_conv_f32 import filter_rows, row_tile

EXPAND = 8 * INVERTED_RESIDUAL.slots("expand_x")[0]
PROJECT = 8 * INVERTED_RESIDUAL.slots("project_x")[0]
RING_AT, RING_ROWS, ZEROS, RESULT_AT, HAS_ENDS, LAST_AT = INVERTED_RESIDUAL.slots(
    "ring_at", "ring_rows", "zeros", "result_at", "has_ends", "last_at"
)


@kernel(INVERTED_RESIDUAL)
def inverted_residual(record, tile, worker):
    """Compute a tile of expand, depthwise and project convolutions.

    A ring buffer holds the last expanded rows.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    expand, project = record + EXPAND, record + PROJECT
    row, last = row_range(record, tile)
    scratch, project_rows = own_scratch(record, worker), own_scratch(project, worker)
    project_taps = project_rows
    project_rows += word(project, ROWS_AT)
    ring_bytes, has_ends = word(record, RING_ROWS) * word(record, ROW), word(record, HAS_ENDS)
    ring = scratch + word(record, RING_AT)
    result, inner = scratch + word(record, RESULT_AT), scratch
    write_pixels(record, scratch + word(record, ROWS_AT), 0, 1)
    if has_ends:
        width = word(record, OUT_W)
        place = scratch + word(record, ROWS_AT) + 8 * (width - row_tile(width, HEIGHT))
        store_i64(place, word(record, LAST_AT))
        inner += 8 * word(record, CHUNK) * word(record, TAP_ROWS) * word(record, TAP_COLUMNS)
    if word(expand, WEIGHT):
        write_taps(expand, own_scratch(expand, worker))
    write_taps(project, project_taps)
    clear_edges(record, ring)
    image, following = -1, 0
    while row < last:
        count = chunk_rows(record, row, last)
        y = row % word(record, OUT_H) * word(record, STRIDE_H) - word(record, TOP)
        if row // word(record, OUT_H) != image:
            image, following = row // word(record, OUT_H), 0
        end = min(y + (count - 1) * word(record, STRIDE_H) + word(record, SPAN), word(record, IN_H))
        following = max(following, y)
        if following < end:
            fill_ring(record, ring, worker, image * word(record, IN_H), following, end)
            following = end
        zeros = ring + ring_bytes
        write_row_taps(
            record, scratch, ring, word(record, RING_ROWS), word(record, ROW), zeros, y, count
        )
        if has_ends:
            height, size = word(record, IN_H), word(expand, IN_ROW)
            source = word(expand, X) + image * height * size - word(record, LEFT)
            write_row_taps(record, inner, source, height, size, zeros, y, count)
        filter_chunk(record, scratch, inner, result, count)
        write_pixels(project, project_rows, result, count)
        pixels = count * word(project, OUT_W)
        for column in range(0, word(project, COLUMNS), WIDE):
            multiply(project, project_rows, project_taps, pixels, column, row)
        row += count


@jit
def clear_edges(record, ring):
    """Write the zeros beside each row of the ring buffer, and the row of zeros after all rows.

    *record* is the address of the kernel call's operands, and *ring* that of the ring buffer.
    """
    left, size = word(record, LEFT), word(record, ROW)
    right = left + word(record, COPIED)
    for i in range(word(record, RING_ROWS)):
        fill_bytes(ring + i * size, 0, left)
        fill_bytes(ring + i * size + right, 0, size - right)
    fill_bytes(ring + word(record, RING_ROWS) * size, 0, word(record, ZEROS))


@jit
def fill_ring(record, ring, worker, base, first, end):
    """Compute or copy some input rows of the depthwise convolution into the ring buffer.

    Args:
        record: address of the kernel call's operands.
        ring: address of the ring buffer.
        worker: number of this thread.
        base: number of the image's first row, counted over all images.
        first: number of the first row in the image.
        end: number of the row after the last one.
    """
    expand = record + EXPAND
    if word(expand, WEIGHT) == 0:
        for y in range(first, end):
            source = word(expand, X) + (base + y) * word(expand, IN_ROW)
            copy_pixels(expand, source, ring_row(record, ring, y) + word(record, LEFT))
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
            out = ring_row(record, ring, y) + word(record, LEFT)
            multiply_to(expand, rows + (y - first) * room, scratch, width, column, weight, out, 0)


@jit
def copy_pixels(expand, source, target):
    """Copy equal pieces of a row, such as pixels, from *source* to *target*, with another stride.

    *expand* is the address of those operands of the kernel call that describe the copy in place of
    an expanding convolution; they have the sizes and the strides.
    """
    size, pitch, step = word(expand, TAP_BYTES), word(expand, PITCH), word(expand, STRIDE_COLUMN)
    source += word(expand, LEFT)
    for _ in range(word(expand, OUT_W)):
        copy_bytes(target, source, size)
        source += step
        target += pitch


@jit
def ring_row(record, ring, y):
    """Return the address of expanded row *y* in the ring buffer.

    *record* is the address of the kernel call's operands.
    """
    return ring + y % word(record, RING_ROWS) * word(record, ROW)


@jit
def write_row_taps(record, table, first, rows, size, zeros, y, count):
    """Write to *table* the address of each tap of the first pixel of *count* output rows.

    The image is in a ring buffer that begins at *first* and has *rows* rows of *size* bytes. Row
    *i* of the image is row ``i % rows`` of the buffer; rows outside of the image are at *zeros*.

    *record* is the address of the kernel call's operands, and *y* the number of the image row with
    which the first window begins.
    """
    down, columns = word(record, TAP_ROW), word(record, TAP_COLUMNS)
    for _ in range(count):
        for i in range(word(record, TAP_ROWS)):
            source = y + i * down
            if source < 0 or source >= word(record, IN_H):
                address = zeros
            else:
                address = first + source % rows * size
            for _ in range(columns):
                store_i64(table, address)
                table += 8
                address += word(record, TAP_COLUMN)
        y += word(record, STRIDE_H)


@jit
def filter_chunk(record, taps, inner_taps, result, count):
    """Compute some adjacent output rows, a chunk, of the depthwise convolution.

    Args:
        record: address of the kernel call's operands.
        taps: address of tables of the taps' addresses, from :func:`write_row_taps`.
        inner_taps: the same for windows inside the image. These are tables of the input itself if
            the ring buffer holds only the ends of rows.
        result: address of the results.
        count: number of output rows.
    """
    rows, width = taps + word(record, ROWS_AT), word(record, OUT_W)
    room = 8 * word(record, TAP_ROWS) * word(record, TAP_COLUMNS)
    for channel in range(0, word(record, COLUMNS), LANES):
        for i in range(count):
            out = result + i * width * word(record, PITCH)
            at = i * room
            filter_rows(record, rows, taps + at, inner_taps + at, 1, channel, out)
