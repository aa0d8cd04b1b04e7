"""Transposition of small square matrices in registers."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import I32, jit
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import load, store

SQUARE_BYTES = 16
"""Number of bytes of a row of a square, the size of a register on every processor."""


def zipped(builder, vectors, groups):
    """Return *vectors* with *groups* adjacent squares, each square transposed.

    An element's number consists of the bits of its row number and its column number. Zipping the
    first half of the vectors with the second half rotates these bits by one. After as many zips as
    a column number has bits, rows have become columns. Each group of lanes is a separate square,
    because registers shuffle lanes within 16 bytes best.
    """
    side = len(vectors)
    width = side * groups
    low = [i // 2 + width * (i % 2) for i in range(side)]
    masks = [
        _lanes(lane + start + side * group for group in range(groups) for lane in low)
        for start in (0, side // 2)
    ]
    for _ in range(side.bit_length() - 1):
        pairs = zip(vectors[: side // 2], vectors[side // 2 :], strict=True)
        vectors = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return vectors


def _lanes(numbers):
    numbers = list(numbers)
    return ir.Constant(ir.VectorType(I32, len(numbers)), numbers)


def _turner(unit, groups):
    """Return an intrinsic that transposes *groups* adjacent squares, of *unit* bytes each."""
    side = SQUARE_BYTES // unit
    row = ir.VectorType(ir.IntType(8 * unit), side * groups)
    parts = [_lanes(range(side * group, side * (group + 1))) for group in range(groups)]

    @intrinsic
    def turn(context, source, source_step, target, target_step):
        def generate(lowering, builder, signature, arguments):
            source, source_step, target, target_step = arguments
            vectors = []
            for _ in range(side):
                vectors.append(load(builder, source, row))
                source = builder.add(source, source_step)
            turned = zipped(builder, vectors, groups)
            for part in parts:
                for vector in turned:
                    store(builder, builder.shuffle_vector(vector, vector, part), target)
                    target = builder.add(target, target_step)
            return lowering.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    return turn


def transposer(unit, load_one, store_one):
    """Return a function that transposes a matrix, whose elements have *unit* bytes, in memory.

    It is ``transpose(source, source_step, target, target_step, height, width)``. Element (i, j) at
    ``source + i * source_step + j * unit`` goes to ``target + j * target_step + i * unit``. There
    are *height* rows i and *width* columns j. *load_one* and *store_one* are functions that load
    and store one element.
    """
    groups = level().vector_bytes // SQUARE_BYTES
    turn, turn_several = _turner(unit, 1), _turner(unit, groups)
    side = SQUARE_BYTES // unit
    several = side * groups

    @jit
    def scalars(source, source_step, target, target_step, height, width):
        for i in range(height):
            for j in range(width):
                value = load_one(source + i * source_step + j * unit)
                store_one(target + j * target_step + i * unit, value)

    @jit
    def transpose(source, source_step, target, target_step, height, width):
        whole = height // side * side
        j = 0
        while j + side <= width:
            step = several if j + several <= width else side
            a, b = source + j * unit, target + j * target_step
            for _ in range(0, whole, side):
                if step == several:
                    turn_several(a, source_step, b, target_step)
                else:
                    turn(a, source_step, b, target_step)
                a += side * source_step
                b += SQUARE_BYTES
            j += step
        a, b = source + j * unit, target + j * target_step
        scalars(a, source_step, b, target_step, whole, width - j)
        a, b = source + whole * source_step, target + whole * unit
        scalars(a, source_step, b, target_step, height - whole, width)

    return transpose
