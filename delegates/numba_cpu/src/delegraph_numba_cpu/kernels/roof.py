"""Loops that only multiply or only read, to measure the highest rates of a processor."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.dot_products import (
    HAS_MADD,
    V16I32,
    dot,
    dot_halves,
    prepare_weights,
)
from delegraph_numba_cpu.codegen.intrinsics import F32, I32, store_i64, word
from delegraph_numba_cpu.codegen.registry import level, named_kernel
from delegraph_numba_cpu.codegen.vector_ir import (
    LANES,
    integer,
    load,
    multiply_add,
    repeated,
    store,
    vector,
)
from delegraph_numba_cpu.instructions import roof as layout

ROUNDS, SOURCE, BYTES, AMOUNT = layout.ROUNDS, layout.SOURCE, layout.BYTES, 8 * layout.AMOUNT
FACTORS, SUMS, RESULT_BYTES = 8 * layout.FACTORS, 8 * layout.SUMS, 8 * layout.RESULT_WORDS

REGISTERS = 24 if level().vector_bytes == 64 or level().machine == "aarch64" else 12
"""Number of vector registers that hold sums, enough to hide the latency of a product."""

DOT_CHAINS = REGISTERS * level().vector_bytes // 64 - HAS_MADD
"""Number of independent sums of 16 int32.

It is one less on levels where weights take four registers.
"""


def _summed(kind: Any, chains: int, step: Any, add: str) -> Any:
    """Return ``loop(rounds, factors, result)``, which adds products to several independent sums.

    Args:
        kind: type of the vector that holds a sum.
        chains: number of sums.
        step: ``(builder, sum, a, b)``, returns the next sum; ``a`` and ``b`` are vectors of
            factors.
        add: name of the builder's method that adds two sums.
    """

    @intrinsic
    def loop(context: Any, rounds: Any, factors: Any, result: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rounds, factors, result = arguments
            a = load(builder, factors, kind)
            b = load(builder, builder.add(factors, integer(64)), kind)
            # Start values differ: LLVM would merge equal sums into one.
            starts = [ir.Constant(kind, [i] * kind.count) for i in range(chains)]

            def body(index: Any, sums: list[Any]) -> list[Any]:
                return [step(builder, each, a, b) for each in sums]

            _, sums = repeated(builder, integer(0), rounds, 1, starts, body)
            total = sums[0]
            for each in sums[1:]:
                total = getattr(builder, add)(total, each)
            store(builder, total, result)
            return target.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return loop


def _add_product(builder: Any, total: Any, a: Any, b: Any) -> Any:
    return multiply_add(builder, a, b, total)


def _add_dot(builder: Any, total: Any, a: Any, b: Any) -> Any:
    """Return *total* plus its dot products with the weights *b*.

    The sum itself is a factor, because a constant product would be computed only once, before the
    loop.
    """
    weights = prepare_weights(builder, b)
    if HAS_MADD:
        return dot_halves(builder, total, (total, total), weights)
    return dot(builder, total, total, weights)


products = _summed(vector(F32, LANES), REGISTERS, _add_product, "fadd")
dots = _summed(V16I32, DOT_CHAINS, _add_dot, "add")


@intrinsic
def read_all(context: Any, source: Any, end: Any, result: Any) -> Any:
    """Add all int32 from the address *source* to *end* to the 64-byte vector at *result*."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, end, result = arguments
        kind = vector(I32, LANES)
        count, size = 64 // (4 * LANES), 4 * LANES
        sums = [load(builder, builder.add(result, integer(size * i)), kind) for i in range(count)]
        zeros = [ir.Constant(kind, [0] * LANES)] * (8 - count if count < 8 else 0)

        def body(address: Any, sums: list[Any]) -> list[Any]:
            for i in range(layout.READ_STEP // size):
                x = load(builder, builder.add(address, integer(size * i)), kind)
                sums[i % len(sums)] = builder.add(sums[i % len(sums)], x)
            return sums

        _, sums = repeated(builder, source, end, layout.READ_STEP, [*sums, *zeros], body)
        for i, each in enumerate(sums[count:]):
            sums[i % count] = builder.add(sums[i % count], each)
        for i, each in enumerate(sums[:count]):
            store(builder, each, builder.add(result, integer(size * i)))
        return target.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@named_kernel("roof", layout.MULTIPLY_F32)
def multiply_f32(record, tile, worker):
    """Multiply and add float32 in registers, ``ROUNDS`` times.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    store_i64(record + AMOUNT, 2 * REGISTERS * LANES)
    products(word(record, ROUNDS), record + FACTORS, record + SUMS + RESULT_BYTES * tile)


@named_kernel("roof", layout.MULTIPLY_INT8)
def multiply_int8(record, tile, worker):
    """Multiply bytes and add their products in registers, ``ROUNDS`` times.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    store_i64(record + AMOUNT, 2 * DOT_CHAINS * 64)
    dots(word(record, ROUNDS), record + FACTORS, record + SUMS + RESULT_BYTES * tile)


@named_kernel("roof", layout.READ)
def read(record, tile, worker):
    """Read the tile's ``BYTES`` bytes ``ROUNDS`` times.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    size = word(record, BYTES)
    store_i64(record + AMOUNT, size)
    source = word(record, SOURCE) + tile * size
    for _ in range(word(record, ROUNDS)):
        read_all(source, source + size, record + SUMS + RESULT_BYTES * tile)
