"""Output of float32 sums of products in registers: clamps, residual, PRELU slopes, stores."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from delegraph_numba_cpu.codegen.intrinsics import F32, I64
from delegraph_numba_cpu.codegen.vector_ir import (
    clamp,
    first_lanes,
    integer,
    load,
    masked_load,
    masked_store,
    merged,
    splat,
    store,
    vector,
)
from delegraph_numba_cpu.instructions.conv_f32 import CONV

LOW, HIGH, SUM_LOW, SUM_HIGH, COLUMNS, RESIDUAL_PITCH, RESIDUAL_COLUMNS, SLOPES = (
    8 * (slot - CONV.slots("low")[0])
    for slot in CONV.slots(
        "low", "high", "sum_low", "sum_high", "columns", "residual_pitch", "residual_columns",
        "slopes",
    )
)  # fmt: skip
"""Offsets in bytes of the output's parameters from the address of the instruction's word
``low``."""


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
    """Append code that finishes a register tile of sums: clamp, residual, slopes, store.

    A register tile may have more rows than there are pixels. Its last rows are then copies of the
    last pixel, and are stored at the same address.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        sums: registers of the tile, row by row.
        height: number of rows of the tile.
        widths: number of lanes of each register of a row.
        out: address of the first pixel's results.
        residual: address of the values that are added to the results; 0 for none.
        pitch: bytes from one pixel's results to the next.
        pixels: number of pixels.
        columns: number of columns that are stored.
        limits: address of the kernel's operand ``low``, with further parameters after it.
    """
    sums = clamped(builder, sums, limits, LOW, HIGH)
    rows = row_numbers(builder, height, pixels)
    starts = [sum(widths[:j]) for j in range(len(widths))]
    whole = builder.icmp_signed(">=", columns, integer(sum(widths)))
    slopes = load(builder, builder.add(limits, integer(SLOPES)), I64)
    bare = builder.icmp_signed("==", builder.or_(residual, slopes), integer(0))
    with builder.if_else(builder.and_(whole, bare), likely=True) as (yes, no):
        with yes:
            store_rows(builder, sums, rows, starts, out, pitch)
        with no:
            sums = _with_residual(builder, sums, rows, starts, widths, residual, columns, limits)
            sums = _with_slopes(builder, sums, starts, widths, slopes, columns, limits)
            with builder.if_else(whole) as (yes, no):
                with yes:  # where registers have no masks, masked stores are slow
                    store_rows(builder, sums, rows, starts, out, pitch)
                with no:
                    masks = _masks(builder, widths, columns)
                    store_rows(builder, sums, rows, starts, out, pitch, masks)


def row_numbers(builder: Any, height: int, pixels: Any) -> list[Any]:
    """Return the number of each row's pixel: 0, 1, ... up to the last pixel, which is repeated.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        height: number of rows of the register tile.
        pixels: number of pixels.
    """
    last = builder.sub(pixels, integer(1))
    numbers = [integer(m) for m in range(height)]
    return [builder.select(builder.icmp_signed("<", m, last), m, last) for m in numbers]


def _place(builder: Any, base: Any, row: Any, pitch: Any, start: int) -> Any:
    """Return the address of column *start* in the results of pixel *row*.

    *base* is the address of pixel 0, and *pitch* the bytes from one pixel to the next.
    """
    return builder.add(base, builder.add(builder.mul(row, pitch), integer(4 * start)))


def store_rows(
    builder: Any,
    values: list[Any],
    rows: list[Any],
    starts: list[int],
    out: Any,
    pitch: Any,
    masks: list[Any] | None = None,
) -> None:
    """Append code that stores all registers of a tile of results.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        values: the registers, row by row.
        rows: number of the pixel of each row.
        starts: first column of each register of a row.
        out: address of the results of pixel 0.
        pitch: bytes from one pixel to the next.
        masks: for each register of a row, the lanes that are stored; None for all.
    """
    for i, value in enumerate(values):
        m, j = divmod(i, len(starts))
        place = _place(builder, out, rows[m], pitch, starts[j])
        if masks is None:
            store(builder, value, place)
        else:
            masked_store(builder, value, place, masks[j])


def _with_residual(
    builder: Any,
    sums: list[Any],
    rows: list[Any],
    starts: list[int],
    widths: tuple[int, ...],
    residual: Any,
    columns: Any,
    limits: Any,
) -> list[Any]:
    """Return *sums* plus the values at the address *residual*, clamped again.

    If the address is 0, the sums are unchanged. *residual* may have fewer columns than the sums;
    the last columns then get no value added. Other arguments are those of :func:`write`;
    *rows* and *starts* are those of :func:`store_rows`.
    """
    before = builder.block
    with builder.if_then(builder.icmp_signed("!=", residual, integer(0))):
        pitch, made, total = (
            load(builder, builder.add(limits, integer(offset)), I64)
            for offset in (RESIDUAL_PITCH, RESIDUAL_COLUMNS, COLUMNS)
        )
        masks = _masks(builder, widths, builder.sub(builder.add(columns, made), total))
        added = []
        for i, value in enumerate(sums):
            m, j = divmod(i, len(starts))
            place = _place(builder, residual, rows[m], pitch, starts[j])
            added.append(builder.fadd(value, masked_load(builder, place, masks[j], value.type)))
        added = clamped(builder, added, limits, SUM_LOW, SUM_HIGH)
        inside = builder.block
    pairs = zip(sums, added, strict=True)
    return [merged(builder, (value, before), (other, inside)) for value, other in pairs]


def _with_slopes(
    builder: Any,
    sums: list[Any],
    starts: list[int],
    widths: tuple[int, ...],
    slopes: Any,
    columns: Any,
    limits: Any,
) -> list[Any]:
    """Return *sums* with negative ones multiplied by their column's slope.

    *slopes* is the address of the slopes of all columns, which are float32. If it is 0, the sums
    are unchanged. Other arguments are those of :func:`write` and :func:`store_rows`.
    """
    before = builder.block
    with builder.if_then(builder.icmp_signed("!=", slopes, integer(0))):
        total = load(builder, builder.add(limits, integer(COLUMNS)), I64)
        first = builder.add(slopes, builder.shl(builder.sub(total, columns), integer(2)))
        masks = _masks(builder, widths, columns)
        factors = [
            masked_load(builder, builder.add(first, integer(4 * start)), mask, vector(F32, width))
            for start, mask, width in zip(starts, masks, widths, strict=True)
        ]
        scaled = []
        for i, value in enumerate(sums):
            positive = builder.fcmp_ordered(">=", value, ir.Constant(value.type, None))
            product = builder.fmul(value, factors[i % len(factors)])
            scaled.append(builder.select(positive, value, product))
        inside = builder.block
    pairs = zip(sums, scaled, strict=True)
    return [merged(builder, (value, before), (other, inside)) for value, other in pairs]


def clamped(builder: Any, sums: list[Any], limits: Any, low: int, high: int) -> list[Any]:
    """Return *sums* clamped between two float32, at offsets *low* and *high* in *limits*."""
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
    """Return a mask for each register of a pixel: the lanes among the first *columns* columns."""
    masks, start = [], 0
    for width in widths:
        masks.append(first_lanes(builder, builder.sub(columns, integer(start)), width))
        start += width
    return masks
