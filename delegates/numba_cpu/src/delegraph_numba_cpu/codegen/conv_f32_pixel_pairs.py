"""Micro-kernel in LLVM IR for half a register of columns: two pixels share a register of sums.

See ``conv_f32_micro_kernels`` for the addresses of pixels and taps.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.conv_f32_output import write
from delegraph_numba_cpu.codegen.intrinsics import F32, I64
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    halves_of,
    hidden_lanes,
    integer,
    joined,
    lanes_of,
    load,
    multiply_add,
    repeated,
    vector,
)

AT_ONCE = 4
"""Number of values of a pixel that are loaded together, because loads are slower than products."""


def pairs_product(height: int, width: int) -> Any:
    """Return an intrinsic that computes *width* columns, half a register, of *height* pixels.

    It is called as ``product(*window, weight, *output)``, with arguments as of ``matrix_product``.
    The height is even. Nothing is prefetched, because few columns have few weights.
    """

    @intrinsic
    def product(
        context: Any,
        rows: Any,
        taps: Any,
        tap_count: Any,
        tap_bytes: Any,
        weight: Any,
        out: Any,
        residual: Any,
        pitch: Any,
        pixels: Any,
        columns: Any,
        limits: Any,
    ) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            rows, taps, tap_count, tap_bytes, weight, *output = arguments
            second = hidden_lanes(builder, 2 * width, width)
            bias = joined(builder, load(builder, weight, vector(F32, width)))
            pixel = [load(builder, builder.add(rows, integer(8 * m)), I64) for m in range(height)]
            first = builder.add(weight, integer(4 * width))
            outer = Loop(builder, tap_count)
            weights = outer.carried(first)
            sums = [outer.carried(bias) for _ in range(height // 2)]
            offset = load(builder, builder.add(taps, builder.shl(outer.index, integer(3))), I64)
            tap = [builder.add(address, offset) for address in pixel]
            many, one = (partial(_added, builder, count, tap, second) for count in (AT_ONCE, 1))
            done, values = repeated(
                builder, integer(0), tap_bytes, 4 * AT_ONCE, [weights, *sums], many
            )
            values = repeated(builder, done, tap_bytes, 4, values, one)[1]
            outer.close(*values)
            results = [half for pair in values[1:] for half in halves_of(builder, pair)]
            write(builder, results, height, (width,), *output)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 11), generate

    return product


def _added(
    builder: Any, count: int, tap: list[Any], second: Any, k: Any, values: list[Any]
) -> list[Any]:
    """Append the products of *count* values of every pixel, from byte *k* of the tap on.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        count: number of values, ``AT_ONCE`` or 1.
        tap: addresses of the tap in each pixel.
        second: mask of the lanes of the second pixel of a pair.
        k: offset of the first value in bytes.
        values: address of the weights, and the sums.

    Returns:
        The next address of the weights, and the sums.
    """
    weights, *sums = values
    lanes = range(second.type.count)
    width = len(lanes) // 2
    loaded = [load(builder, builder.add(at, k), vector(F32, count)) for at in tap]
    copies = [lanes_of(builder, x, x, (lane % count for lane in lanes)) for x in loaded]
    pairs = [builder.select(second, copies[m + 1], copies[m]) for m in range(0, len(tap), 2)]
    for i in range(count):
        factors = joined(builder, load(builder, weights, vector(F32, width)))
        weights = builder.add(weights, integer(4 * width))
        chosen = [lane - lane % count + i for lane in lanes]
        sums = [
            multiply_add(builder, lanes_of(builder, pair, pair, chosen), factors, value)
            for pair, value in zip(pairs, sums, strict=True)
        ]
    return [weights, *sums]
