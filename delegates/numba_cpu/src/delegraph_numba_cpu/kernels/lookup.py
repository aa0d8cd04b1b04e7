"""The kernel of EMBEDDING_LOOKUP in tables of integers: rows of a table, as float32."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit, load_f32, load_i32, word
from delegraph_numba_cpu.codegen.lookup_ir import convert_bytes, convert_nibbles, load_f16
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import lookup as instructions
from delegraph_numba_cpu.kernels.positions import report_position

(
    TABLE, TARGET, POSITIONS, SCALES, TABLE_ROWS, WIDTH, BITS, BLOCK, SCALE_BYTES, ROW_SCALES, ROWS,
    REPORT, WRONG, AMONG, TILES,
) = instructions.LOOK_UP.slots(*instructions.LOOK_UP.names)  # fmt: skip


@kernel(instructions.LOOK_UP)
def look_up(record, tile, worker):
    """Convert the table rows of this tile's positions to float32; report positions out of range.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, tiles, size = word(record, ROWS), word(record, TILES), word(record, TABLE_ROWS)
    for row in range(rows * tile // tiles, rows * (tile + 1) // tiles):
        position = load_i32(word(record, POSITIONS) + 4 * row)
        if 0 <= position < size:
            convert_row(record, position, word(record, TARGET) + 4 * row * word(record, WIDTH))
        else:
            report_position(
                record + 8 * WRONG, record + 8 * AMONG, word(record, REPORT), position, size
            )


@jit
def convert_row(record, position, target):
    """Convert the row at *position* of the table to float32.

    *record* is the address of the kernel call's operands.
    """
    width, bits, length = word(record, WIDTH), word(record, BITS), word(record, BLOCK)
    source = word(record, TABLE) + position * width * bits // 8
    scales = word(record, SCALES) + position * word(record, ROW_SCALES)
    for first in range(0, width, length):
        scale = load_f16(scales) if word(record, SCALE_BYTES) == 2 else load_f32(scales)
        scales += word(record, SCALE_BYTES)
        if bits == 8:
            convert_bytes(source + first, length, scale, target + 4 * first)
        else:
            convert_nibbles(source + first // 2, length, scale, target + 4 * first)
