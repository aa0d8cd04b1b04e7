"""Small squares of elements turned over their diagonal in registers."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.kernels.machine import I32, jit, pointer

SQUARE_BYTES = 16
"""Bytes of a row of a square: the registers that every processor has."""


def _zipped(builder, vectors):
    """Return the vectors of a square, transposed.

    Zipping the first half of the vectors with the second turns the bits of the element number, row
    and column together, by one; after as many times as a column number has bits, rows are columns.
    """
    side = len(vectors)
    low = [i // 2 + side * (i % 2) for i in range(side)]
    halves = [[lane + start for lane in low] for start in (0, side // 2)]
    masks = [ir.Constant(ir.VectorType(I32, side), lanes) for lanes in halves]
    for _ in range(side.bit_length() - 1):
        pairs = zip(vectors[: side // 2], vectors[side // 2 :], strict=True)
        vectors = [builder.shuffle_vector(a, b, mask) for a, b in pairs for mask in masks]
    return vectors


def _turner(unit):
    """Return an intrinsic that transposes a square of elements of *unit* bytes."""
    side = SQUARE_BYTES // unit
    row = ir.VectorType(ir.IntType(8 * unit), side)

    @intrinsic
    def turn(context, source, source_step, target, target_step):
        def generate(lowering, builder, signature, arguments):
            source, source_step, target, target_step = arguments
            vectors = []
            for _ in range(side):
                vectors.append(builder.load(pointer(builder, source, row)))
                vectors[-1].align = 1
                source = builder.add(source, source_step)
            for vector in _zipped(builder, vectors):
                builder.store(vector, pointer(builder, target, row)).align = 1
                target = builder.add(target, target_step)
            return lowering.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    return turn


def transposer(unit, load, store):
    """Return a function that transposes a matrix of elements of *unit* bytes.

    Element (i, j) of the source, at ``source + i * source_step + j * unit``, goes to
    ``target + j * target_step + i * unit``; there are *height* rows i and *width* columns j.
    """
    turn = _turner(unit)
    side = SQUARE_BYTES // unit
    strip = 8 * side  # columns at a time, so that lines of the target stay in the cache

    @jit
    def scalars(source, source_step, target, target_step, height, width):
        for i in range(height):
            for j in range(width):
                value = load(source + i * source_step + j * unit)
                store(target + j * target_step + i * unit, value)

    @jit
    def transpose(source, source_step, target, target_step, height, width):
        whole_height, whole_width = height // side * side, width // side * side
        for first in range(0, whole_width, strip):
            for i in range(0, whole_height, side):
                for j in range(first, min(first + strip, whole_width), side):
                    turn(
                        source + i * source_step + j * unit,
                        source_step,
                        target + j * target_step + i * unit,
                        target_step,
                    )
        scalars(
            source + whole_width * unit,
            source_step,
            target + whole_width * target_step,
            target_step,
            whole_height,
            width - whole_width,
        )
        scalars(
            source + whole_height * source_step,
            source_step,
            target + whole_height * unit,
            target_step,
            height - whole_height,
            width,
        )

    return transpose
