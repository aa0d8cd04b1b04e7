"""Products of bytes in tile registers (AMX): 16 rows with 64 columns at a time.

A tile register has up to 16 rows of 64 bytes. Four registers hold accumulators, and two hold
factors. Two more hold the factors of a last step with less than 64 bytes of a row.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import (
    I8,
    call,
    fill_bytes,
    jit,
    pointer,
    store_i16,
    store_u8,
)
from delegraph_numba_cpu.instructions.conv_int8 import HEADER_BYTES

TILE_ROWS = 16
_SUMS, _A, _B, _LAST_A, _LAST_B = range(4), 4, 5, 6, 7

i64 = types.int64


def _number(value):
    return ir.Constant(I8, value)


def _mover(instruction, tile):
    """Return an intrinsic that loads or stores tile register *tile* by the LLVM *instruction*.

    It is called with the address of the first row, and the bytes from one row to the next.
    """

    @intrinsic
    def move(context, address, row_bytes):
        def generate(lowering, builder, signature, arguments):
            place = pointer(builder, arguments[0], I8)
            operands = [_number(tile), place, arguments[1]]
            call(builder, f"llvm.x86.{instruction}", ir.VoidType(), operands)
            return lowering.get_dummy_value()

        return types.void(i64, i64), generate

    return move


def _dotter(acc, a, b):
    """Return an intrinsic that adds the product of tile registers *a* and *b* to *acc*.

    The arguments are numbers of registers. *a* has unsigned bytes, *b* signed ones, *acc* int32.
    """

    @intrinsic
    def dot(context):
        def generate(lowering, builder, signature, arguments):
            call(builder, "llvm.x86.tdpbusd", ir.VoidType(), [*map(_number, (acc, a, b))])
            return lowering.get_dummy_value()

        return types.void(), generate

    return dot


_loader, _storer = partial(_mover, "tileloadd64"), partial(_mover, "tilestored64")
load_0, load_1, load_2, load_3 = map(_loader, _SUMS)
store_0, store_1, store_2, store_3 = map(_storer, _SUMS)
load_a, load_b, load_last_a, load_last_b = map(_loader, (_A, _B, _LAST_A, _LAST_B))
dot_0, dot_1, dot_2, dot_3 = (_dotter(n, _A, _B) for n in _SUMS)
dot_last_0, dot_last_1, dot_last_2, dot_last_3 = (_dotter(n, _LAST_A, _LAST_B) for n in _SUMS)


@intrinsic
def _configure(context, address):
    """Configure the tile registers by the 64 bytes at *address*."""

    def generate(lowering, builder, signature, arguments):
        place = pointer(builder, arguments[0], I8)
        call(builder, "llvm.x86.ldtilecfg", ir.VoidType(), [place])
        return lowering.get_dummy_value()

    return types.void(i64), generate


@intrinsic
def release_tiles(context):
    """Release the tile registers, so that thread switches need not save them."""

    def generate(lowering, builder, signature, arguments):
        call(builder, "llvm.x86.tilerelease", ir.VoidType(), [])
        return lowering.get_dummy_value()

    return types.void(), generate


@jit
def lay_out_tiles(memory, steps):
    """Configure the tile registers for rows of ``4 * steps`` bytes.

    *memory* is the address of 64 bytes that are overwritten.
    """
    rest = steps % 16
    fill_bytes(memory, 0, 64)
    store_u8(memory, 1)
    for tile in range(8):
        store_i16(memory + 16 + 2 * tile, 64)
        store_u8(memory + 48 + tile, TILE_ROWS)
    if rest:
        store_i16(memory + 16 + 2 * _LAST_A, 4 * rest)
        store_u8(memory + 48 + _LAST_B, rest)
    _configure(memory)


@jit
def multiply_tile_16(a, a_bytes, weights, steps, header, acc):
    """Store ``bias + a @ weights`` of 16 rows and 16 columns at the address *acc*, as int32.

    Rows of *steps* times 4 unsigned bytes begin at *a*, and are *a_bytes* apart. *header* is the
    address of the columns' header, which begins with the bias. Results are ``[16, 16]``.
    """
    load_0(header, 0)
    for step in range(0, steps - 15, 16):
        load_a(a + 4 * step, a_bytes)
        load_b(weights + 64 * step, 64)
        dot_0()
    if steps % 16:
        step = steps - steps % 16
        load_last_a(a + 4 * step, a_bytes)
        load_last_b(weights + 64 * step, 64)
        dot_last_0()
    store_0(acc, 64)


@jit
def multiply_tile(a, a_bytes, weights, block_bytes, steps, header, acc):
    """Store ``bias + a @ weights`` of 16 rows and 4 blocks of 16 columns, int32 ``[16, 64]``.

    Args:
        a: address of rows of unsigned bytes.
        a_bytes: bytes from one row to the next.
        weights: address of the first block.
        block_bytes: bytes from one block to the next.
        steps: number of steps of 4 bytes of a row.
        header: address of the first block's header, which begins with the bias.
        acc: address for results.
    """
    first, second = weights, weights + block_bytes
    third, fourth = second + block_bytes, second + 2 * block_bytes
    load_0(header, 0)  # all rows begin with the same bias
    load_1(header + HEADER_BYTES, 0)
    load_2(header + 2 * HEADER_BYTES, 0)
    load_3(header + 3 * HEADER_BYTES, 0)
    for step in range(0, steps - 15, 16):
        load_a(a + 4 * step, a_bytes)
        at = 64 * step
        load_b(first + at, 64)
        dot_0()
        load_b(second + at, 64)
        dot_1()
        load_b(third + at, 64)
        dot_2()
        load_b(fourth + at, 64)
        dot_3()
    if steps % 16:
        at = 64 * (steps - steps % 16)
        load_last_a(a + at // 16, a_bytes)
        load_last_b(first + at, 64)
        dot_last_0()
        load_last_b(second + at, 64)
        dot_last_1()
        load_last_b(third + at, 64)
        dot_last_2()
        load_last_b(fourth + at, 64)
        dot_last_3()
    store_0(acc, 256)
    store_1(acc + 64, 256)
    store_2(acc + 128, 256)
    store_3(acc + 192, 256)
