"""Packs computed int8 matrices in the order in which micro-kernels read weights."""

from __future__ import annotations

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    jit,
    load_i32,
    load_u8,
    store_i32,
    store_i64,
    word,
)
from delegraph_numba_cpu.instructions import conv_int8 as instructions

SOURCE, WEIGHTS, HEADERS, MATRICES, HEADER, MATRIX, _, DEPTH, OUTPUTS, ZERO, WEIGHT_ZERO, _ = (
    instructions.PACK_STACK.slots(*instructions.PACK_STACK.names)
)
MATRIX_WEIGHTS, MATRIX_HEADERS = instructions.MATRIX.slots("weights", "headers")
MATRIX_BYTES = 8 * len(instructions.MATRIX.names)
HEADER_BYTES = instructions.HEADER_BYTES

sum_of = r.folder(r.INTS, r.plus)


@jit
def pack_group(record, image, group):
    """Pack the weights of up to 64 outputs of a matrix, and write the headers of these outputs.

    The matrix has number *image* in its stack, and the first output is ``64 * group``. For group 0,
    the record of the matrix is written, too. *record* is the address of the kernel call's operands.
    """
    outputs, depth = word(record, OUTPUTS), word(record, DEPTH)
    blocks_of_16, block_bytes = (outputs + 15) // 16, (depth + 3) // 4 * 64
    weights = word(record, WEIGHTS) + image * blocks_of_16 * block_bytes
    headers = word(record, HEADERS) + image * blocks_of_16 * HEADER_BYTES
    if group == 0:
        matrix = word(record, MATRICES) + image * MATRIX_BYTES
        copy_bytes(matrix, word(record, MATRIX), MATRIX_BYTES)
        store_i64(matrix + 8 * MATRIX_WEIGHTS, weights)
        store_i64(matrix + 8 * MATRIX_HEADERS, headers)
    count, first = min(outputs - 64 * group, 64), 4 * group
    headers += first * HEADER_BYTES
    weights += first * block_bytes
    copy_bytes(
        headers, word(record, HEADER) + first * HEADER_BYTES, (count + 15) // 16 * HEADER_BYTES
    )
    source = word(record, SOURCE) + (image * outputs + 64 * group) * depth
    for i in range(count):
        place = i
        if count == 64:  # complete groups are in the order of ``dot_products.zipped``
            place = 16 * (i // 4 % 4) + i // 16 * 4 + i % 4
        pack_row(source, depth, weights + place // 16 * block_bytes + place % 16 * 4)
        bias = headers + place // 16 * HEADER_BYTES + place % 16 * 4
        added = depth * word(record, WEIGHT_ZERO) - sum_signed(source, depth)
        store_i32(bias, load_i32(bias) + word(record, ZERO) * added)
        source += depth


@jit
def pack_row(source, count, target):
    """Store *count* bytes from *source* on as one column of a block of weights, from *target* on.

    A column consists of 32-bit words that are 64 bytes apart. Zeros fill the last word.
    """
    for k in range(0, count - 3, 4):
        store_i32(target, load_i32(source + k))
        target += 64
    last = 0
    for k in range(count % 4):
        last |= load_u8(source + count // 4 * 4 + k) << (8 * k)
    if count % 4:
        store_i32(target, last)


@jit
def sum_signed(source, count):
    """Return the sum of *count* int8 values."""
    zero = r.ints(0)
    total = zero
    for i in range(0, count, r.LANES):
        total = r.add_ints(total, r.widen_signed(source + i, count - i, zero))
    return sum_of(total)
