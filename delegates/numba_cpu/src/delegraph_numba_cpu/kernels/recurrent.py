"""SVDF of integers; see ``blocks/recurrent.py``."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from delegraph_numba_cpu.blocks import recurrent as blocks
from delegraph_numba_cpu.kernels import registers as r
from delegraph_numba_cpu.kernels.fixed_point import scaled, wrapped
from delegraph_numba_cpu.kernels.machine import (
    jit,
    load_i16,
    load_i32,
    store_i16,
    store_u8,
    word,
)
from delegraph_numba_cpu.kernels.registry import kernel

(
    SOURCE, TARGET, STATE, FEATURES, TIMES, BIAS, SUMS, BATCH, INPUTS, UNITS, RANK, WINDOW,
    MULTIPLIER_IN, SHIFT_IN, MULTIPLIER_OUT, SHIFT_OUT, ZERO_OUT, TILES,
) = blocks.SVDF.slots(*blocks.SVDF.names)  # fmt: skip

sum_of = r.folder(r.INTS, r.plus)


@kernel(blocks.SVDF)
def svdf(block, tile, worker):
    """Compute the tile's share of the units of all sequences."""
    units, rank, inputs = word(block, UNITS), word(block, RANK), word(block, INPUTS)
    tasks, tiles = word(block, BATCH) * units, word(block, TILES)
    for task in range(tasks * tile // tiles, tasks * (tile + 1) // tiles):
        sequence, unit = task // units, task % units
        total = load_i32(word(block, BIAS) + 4 * unit) + 0
        for k in range(rank):
            filter = unit * rank + k
            x = word(block, SOURCE) + sequence * inputs
            product = dot_bytes(x, word(block, FEATURES) + filter * inputs, inputs)
            product += load_i32(word(block, SUMS) + 4 * filter)
            latest = scaled(product, word(block, MULTIPLIER_IN), word(block, SHIFT_IN), False)
            latest = min(max(latest, -32768), 32767)
            row = (sequence * units * rank + filter) * word(block, WINDOW) * 2
            total += filtered(block, word(block, STATE) + row, filter, latest)
        total = scaled(wrapped(total), word(block, MULTIPLIER_OUT), word(block, SHIFT_OUT), False)
        total = min(max(total + word(block, ZERO_OUT), -128), 127)
        store_u8(word(block, TARGET) + task, total)


@jit
def dot_bytes(a, b, count):
    """Return the sum of the products of int8."""
    zero = r.ints(0)
    total = zero
    for i in range(0, count, r.LANES):
        x = r.widen_signed(a + i, count - i, zero)
        total = r.add_ints(total, r.multiply_ints(x, r.widen_signed(b + i, count - i, zero)))
    return sum_of(total)


@jit
def filtered(block, state, filter, latest):
    """Move a filter's window on, and return its sum weighted by time."""
    window = word(block, WINDOW)
    times = word(block, TIMES) + filter * window * 2
    total = 0
    for k in range(window - 1):
        value = load_i16(state + 2 * k + 2)
        store_i16(state + 2 * k, value)
        total += value * load_i16(times + 2 * k)
    store_i16(state + 2 * window - 2, latest)
    return total + latest * load_i16(times + 2 * window - 2)
