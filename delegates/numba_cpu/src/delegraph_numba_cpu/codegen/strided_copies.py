"""Copies of short lines at equal distances; each copied byte is xored with one number."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import I8, fill_bytes, jit
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    first_lanes,
    load,
    masked_load,
    masked_store,
    splat,
    store,
)

HAS_MASKS = level().vector_bytes == 64
"""Whether one instruction can load or store any part of a register."""

i64 = types.int64


def _copier(unit, is_masked=False):
    """Return an intrinsic that copies pieces of *unit* bytes at equal distances.

    It is called with the arguments of :func:`copy_strided`. If *is_masked*, it copies only the
    first *size* bytes of each piece; otherwise *size* is unused.
    """
    kind = ir.VectorType(I8, unit)

    @intrinsic
    def copy(context, source, source_step, target, target_step, count, size, flip):
        def generate(lowering, builder, signature, arguments):
            source, source_step, target, target_step, count, size, flip = arguments
            bits = splat(builder, builder.trunc(flip, I8), unit)
            lanes = first_lanes(builder, size, unit) if is_masked else None
            loop = Loop(builder, count)
            piece, place = loop.carried(source), loop.carried(target)
            if lanes is None:
                store(builder, builder.xor(load(builder, piece, kind), bits), place)
            else:
                value = masked_load(builder, piece, lanes, kind)
                masked_store(builder, builder.xor(value, bits), place, lanes)
            loop.close(builder.add(piece, source_step), builder.add(place, target_step))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 7), generate

    return copy


_copy_64, _copy_16, _copy_8, _copy_4, _copy_1 = map(_copier, (64, 16, 8, 4, 1))
_copy_first = _copier(64, is_masked=True)


@intrinsic
def _copy_part(context, source, target, size, first, last, around, flip):
    """Write up to 64 bytes of a line: copies for bytes *first* to *last*, *around* for the others.

    For the arguments see :func:`copy_part`; a *size* above 64 counts as 64.
    """

    def generate(lowering, builder, signature, arguments):
        source, target, size, first, last, around, flip = arguments
        kind = ir.VectorType(I8, 64)
        bits, others = (splat(builder, builder.trunc(x, I8), 64) for x in (flip, around))
        before, until = (first_lanes(builder, x, 64) for x in (first, last))
        inside = builder.and_(until, builder.not_(before))
        value = builder.xor(masked_load(builder, source, inside, kind), bits)
        found = builder.select(inside, value, others)
        masked_store(builder, found, target, first_lanes(builder, size, 64))
        return lowering.get_dummy_value()

    return types.void(*[i64] * 7), generate


@jit
def copy_part(source, target, size, first, last, around, flip):
    """Write a line of *size* bytes: copies for bytes *first* to *last*, *around* for the others.

    Args:
        source: address at which byte 0 of the line would be; only bytes *first* to *last* are read.
        target: address of byte 0 of the result; no byte beyond the line is written.
        size: number of bytes of the line.
        first: number of the first copied byte.
        last: number of the byte after the last copied one.
        around: value of all other bytes.
        flip: number that copied bytes are xored with.
    """
    if HAS_MASKS:
        for k in range(0, size, 64):
            _copy_part(source + k, target + k, size - k, first - k, last - k, around, flip)
    else:
        fill_bytes(target, around, first)
        copy_strided(source + first, 0, target + first, 0, 1, last - first, flip)
        fill_bytes(target + last, around, size - last)


@jit
def copy_strided(source, source_step, target, target_step, count, size, flip):
    """Copy lines at equal distances, each byte xored with the same number.

    No byte between the lines is written.

    Args:
        source: address of the first line.
        source_step: bytes from one line to the next.
        target: address to which the first line is copied.
        target_step: bytes from one copied line to the next.
        count: number of lines.
        size: number of bytes of a line.
        flip: number that bytes are xored with.
    """
    if count <= 0:
        return
    if HAS_MASKS:
        for k in range(0, size, 64):
            if size - k >= 64:
                _copy_64(source + k, source_step, target + k, target_step, count, 64, flip)
            else:
                left = size - k
                _copy_first(source + k, source_step, target + k, target_step, count, left, flip)
    else:
        copy_overlapping(source, source_step, target, target_step, count, size, flip)


@jit
def copy_overlapping(source, source_step, target, target_step, count, size, flip):
    """Copy lines like :func:`copy_strided`, but in pieces of one size.

    The last two pieces of a line may overlap.
    """
    unit = 64 if size >= 64 else 16 if size >= 16 else 8 if size >= 8 else 4 if size >= 4 else 1
    for offset in range(0, size, unit):
        k = min(offset, size - unit)
        piece, place = source + k, target + k
        if unit == 64:
            _copy_64(piece, source_step, place, target_step, count, unit, flip)
        elif unit == 16:
            _copy_16(piece, source_step, place, target_step, count, unit, flip)
        elif unit == 8:
            _copy_8(piece, source_step, place, target_step, count, unit, flip)
        elif unit == 4:
            _copy_4(piece, source_step, place, target_step, count, unit, flip)
        else:
            _copy_1(piece, source_step, place, target_step, count, unit, flip)
