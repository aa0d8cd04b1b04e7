"""Output of float32 sums of products from registers: clamping, residual, stores."""

from __future__ import annotations

from typing import Any

from delegraph_numba_cpu.codegen.intrinsics import F32
from delegraph_numba_cpu.codegen.vector_ir import (
    clamp,
    first_lanes,
    integer,
    load,
    masked_load,
    masked_store,
    splat,
    store,
)

LOW, HIGH, SUM_LOW, SUM_HIGH = 0, 8, 16, 24
"""Offsets in *limits*: clamping ranges of the sums, and of the sums with the residual added."""


def write(
    builder: Any,
    sums: list[Any],
    height: int,
    widths: tuple[int, ...],
    out: Any,
    residual: Any,
    pitch: Any,
    pixels: Any,
    columns: Any,
    limits: Any,
) -> None:
    """Clamp the sums, add the residual if there is one, and store the pixels inside the output.

    Pixels after the last one are copies of it, and are stored in the same place.
    """
    sums = clamped(builder, sums, limits, LOW, HIGH)
    last = builder.sub(pixels, integer(1))
    offsets = []
    for m in range(height):
        row = integer(m)
        row = builder.select(builder.icmp_signed("<", row, last), row, last)
        start = 0
        for width in widths:
            offsets.append(builder.add(builder.mul(row, pitch), integer(4 * start)))
            start += width
    whole = builder.icmp_signed(">=", columns, integer(sum(widths)))
    plain = builder.and_(whole, builder.icmp_signed("==", residual, integer(0)))
    with builder.if_else(plain, likely=True) as (yes, no):
        with yes:
            for value, offset in zip(sums, offsets, strict=True):
                store(builder, value, builder.add(out, offset))
        with no:
            masks = _masks(builder, widths, columns)
            has_residual = builder.icmp_signed("!=", residual, integer(0))
            before = builder.block
            with builder.if_then(has_residual):
                added = []
                for i, (value, offset) in enumerate(zip(sums, offsets, strict=True)):
                    mask = masks[i % len(widths)]
                    more = masked_load(builder, builder.add(residual, offset), mask, value.type)
                    added.append(builder.fadd(value, more))
                added = clamped(builder, added, limits, SUM_LOW, SUM_HIGH)
                inside = builder.block
            for i, value in enumerate(sums):
                result = builder.phi(value.type)
                result.add_incoming(value, before)
                result.add_incoming(added[i], inside)
                sums[i] = result
            for i, (value, offset) in enumerate(zip(sums, offsets, strict=True)):
                masked_store(builder, value, builder.add(out, offset), masks[i % len(widths)])


def clamped(builder: Any, sums: list[Any], limits: Any, low: int, high: int) -> list[Any]:
    """Return sums clamped to two floats, at the offsets *low* and *high* in *limits*."""
    lowest = load(builder, builder.add(limits, integer(low)), F32)
    highest = load(builder, builder.add(limits, integer(high)), F32)
    return [
        clamp(
            builder,
            value,
            splat(builder, lowest, value.type.count),
            splat(builder, highest, value.type.count),
        )
        for value in sums
    ]


def _masks(builder: Any, widths: tuple[int, ...], columns: Any) -> list[Any]:
    """Return the mask of each register of a pixel."""
    masks, start = [], 0
    for width in widths:
        masks.append(first_lanes(builder, builder.sub(columns, integer(start)), width))
        start += width
    return masks
