"""Passes over rows of float32; each computes new elements of a row, and their sum or maximum."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import (
    F32,
    I32,
    copy_bytes,
    real,
    store_f32,
    word,
)
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.registry import kernel, level
from delegraph_numba_cpu.codegen.vector_ir import Loop, integer, load, splat, store

LANES = level().vector_bytes if level().vector_bytes == 64 else level().vector_bytes // 2
"""Number of elements in a vector of a pass: two registers, or four where there are 32 registers."""

VECTOR = ir.VectorType(F32, LANES)


def row_pass(function, start=None, combine=None):
    """Return an intrinsic that computes the new elements of a row, and their sum or maximum.

    The number of elements is a positive multiple of LANES, padding included.

    Args:
        function: function that computes new elements from old ones and two factors, all of them
            vectors.
        start: start value of the sum or maximum; None if none is computed.
        combine: ``add`` or ``larger``; None if no sum or maximum is computed.

    Returns:
        An intrinsic, called as ``(source, target, rest, results, whole, count, a, b)``, that
        returns the sum or maximum; 0 if none is computed. The first four are addresses; *a* and
        *b* are the factors. The last, padded vector begins at element *whole*: it is read at
        *rest*, and its results are written to *results*. A pass for the maximum writes nothing.
    """

    @intrinsic
    def run(context: Any, source: Any, target: Any, rest: Any, results: Any, whole: Any,
            count: Any, a: Any, b: Any) -> Any:  # fmt: skip
        def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source, target, rest, results, whole, count, a, b = arguments
            factors = [Lanes(builder, splat(builder, number, LANES)) for number in (a, b)]
            loop = Loop(builder, count, LANES)
            total = loop.carried(ir.Constant(VECTOR, [start or 0.0] * LANES))
            is_whole = builder.icmp_signed("<", loop.index, whole)
            place = builder.mul(loop.index, integer(4))

            def address(row: Any, end: Any) -> Any:
                return builder.select(is_whole, builder.add(row, place), end)

            x = Lanes(builder, load(builder, address(source, rest), VECTOR))
            y = function(x, *factors)
            if combine is not larger:
                store(builder, y.value, address(target, results))
            if combine is None:
                loop.close(total)
                return ir.Constant(F32, 0.0)
            following = combine(Lanes(builder, total), y)
            loop.close(following.value)
            return folded(following, combine)

        return types.float32(*[types.int64] * 6, types.float32, types.float32), generate

    return run


def add(x, y):
    """Return the sum of two :class:`Lanes`."""
    return x + y


def larger(x, y):
    """Return the larger elements of two :class:`Lanes`; *y* where one is NaN."""
    return (x > y).choose(x, y)


def folded(x, combine):
    """Return one number: all elements of *x* combined, half with half, again and again.

    *combine* is a function of two :class:`Lanes`, such as :func:`add`.
    """
    builder, count = x.builder, LANES
    while count > 1:
        count //= 2
        low, high = (
            builder.shuffle_vector(
                x.value,
                x.value,
                ir.Constant(ir.VectorType(I32, count), list(range(first, first + count))),
            )
            for first in (0, count)
        )
        x = combine(Lanes(builder, low), Lanes(builder, high))
    return builder.extract_element(x.value, ir.Constant(I32, 0))


def float_kernel(instruction, row, padding):
    """Define the kernel of *instruction* that calls *row* for each row of floats of a tile.

    Args:
        instruction: name of the kernel, and of the operands that it reads.
        row: function ``(source, target, rest, results, whole, count, beta)`` that computes a row of
            *count* elements, padding included. Those from *whole* on are read at the address
            *rest* and written to *results*. *beta* is the instruction's word of this name, if any.
        padding: value of the elements that follow a row whose length is no multiple of LANES.
    """
    source_slot, target_slot, rows_slot, length_slot, tiles_slot, scratch_slot, bytes_slot = (
        instruction.slots("source", "target", "rows", "length", "tiles", "scratch", "scratch_bytes")
    )
    beta_slot = instruction.slots("beta")[0] if "beta" in instruction.names else source_slot

    @kernel(instruction)
    def run(record, tile, worker):
        rows, tiles = word(record, rows_slot), word(record, tiles_slot)
        length = word(record, length_slot)
        size, whole = 4 * length, length - length % LANES
        count, left = (length + LANES - 1) // LANES * LANES, length - whole
        rest = word(record, scratch_slot) + worker * word(record, bytes_slot)
        results = rest + 4 * LANES
        for j in range(left, LANES):
            store_f32(rest + 4 * j, padding)
        for i in range(rows * tile // tiles, rows * (tile + 1) // tiles):
            source = word(record, source_slot) + i * size
            target = word(record, target_slot) + i * size
            copy_bytes(rest, source + 4 * whole, 4 * left)
            row(source, target, rest, results, whole, count, real(record, beta_slot))
            copy_bytes(target + 4 * whole, results, 4 * left)

    return run
