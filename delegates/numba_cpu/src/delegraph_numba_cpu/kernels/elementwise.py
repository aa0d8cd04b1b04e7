"""Kernel of chains of element-wise operations; ``instructions/elementwise.py`` defines chains."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

# Imported to add its operations.
from delegraph_numba_cpu.codegen import elementwise_int8 as elementwise_int8
from delegraph_numba_cpu.codegen import elementwise_int16 as elementwise_int16
from delegraph_numba_cpu.codegen import elementwise_integer as elementwise_integer
from delegraph_numba_cpu.codegen import elementwise_sin_cos as elementwise_sin_cos
from delegraph_numba_cpu.codegen.elementwise_operations import GRANULE, run_step
from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    fill_bytes,
    jit,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import splat, store
from delegraph_numba_cpu.instructions import elementwise as instructions

(
    STEPS, STEP_COUNT, RECORDS, SOURCE_COUNT, ELEMENTS, LENGTH, SCRATCH, SCRATCH_BYTES,
    REGISTER_BYTES, SLOT_COUNT, TARGET, TARGET_ITEMSIZE, TILES, SOURCE,
) = instructions.CHAIN.slots(
    "steps", "step_count", "records", "source_count", "elements", "length", "scratch",
    "scratch_bytes", "register_bytes", "slot_count", "target", "target_itemsize", "tiles",
    "source0",
)  # fmt: skip

STEP_BYTES = 8 * instructions.STEP_WORDS
RECORD_BYTES = 8 * instructions.RECORD_WORDS
LAYOUT, ITEMSIZE, RANK, SHAPE, STRIDES = (
    getattr(instructions.Record, name)
    for name in ("LAYOUT", "ITEMSIZE", "RANK", "SHAPE", "STRIDES")
)
DIRECT, PERIODIC = instructions.Layout.DIRECT, instructions.Layout.PERIODIC
SLOTS = instructions.SLOTS
SHORT = 64  # number of bytes up to which a loop is faster than a call


@kernel(instructions.CHAIN)
def chain(record, tile, worker):
    """Run all steps of the chain on this tile's share of the elements.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    elements, length, tiles = word(record, ELEMENTS), word(record, LENGTH), word(record, TILES)
    pieces = (elements + length - 1) // length
    slots = word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)
    for slot in range(word(record, SLOT_COUNT)):
        store_i64(slots + 8 * slot, register(record, slots, slot))
    repeat_periodic(record, slots)
    for piece in range(pieces * tile // tiles, pieces * (tile + 1) // tiles):
        start = piece * length
        count = min(length, elements - start)
        bind(record, slots, start, count)
        whole = count - count % GRANULE
        if whole:
            run_steps(record, slots, start, whole)
        if whole < count:
            run_rest(record, slots, start, whole, count - whole)


@jit
def register(record, slots, slot):
    """Return the address of the memory that holds a slot's elements while a piece is computed.

    Args:
        record: address of the kernel call's operands.
        slots: address of the slots.
        slot: number of the slot, which is an operand or a result of steps.
    """
    return slots + 8 * SLOTS + slot * word(record, REGISTER_BYTES)


@jit
def run_steps(record, slots, start, count):
    """Run all steps of the chain on some elements.

    Args:
        record: address of the kernel call's operands.
        slots: address of the slots, which hold the addresses of operands.
        start: number of the first element.
        count: number of elements, a multiple of GRANULE.
    """
    first = word(record, STEPS)
    for i in range(word(record, STEP_COUNT)):
        run_step(first + i * STEP_BYTES, first, slots, start, count)


@jit
def bind(record, slots, start, count):
    """Write to each slot of a source or target the address of its elements from *start* on.

    Strided sources are first copied to their registers.

    *record* is the address of the kernel call's operands.
    """
    for source in range(word(record, SOURCE_COUNT)):
        source_record = word(record, RECORDS) + source * RECORD_BYTES
        base, own = word(record, SOURCE + source), register(record, slots, source)
        layout = word(source_record, LAYOUT)
        if layout == DIRECT:
            store_i64(slots + 8 * source, base + start * word(source_record, ITEMSIZE))
        else:
            store_i64(slots + 8 * source, own)
            if layout != PERIODIC:
                repeat(source_record, base, own, start, count)
    target = word(record, TARGET) + start * word(record, TARGET_ITEMSIZE)
    store_i64(slots + 8 * word(record, SOURCE_COUNT), target)


@jit
def run_rest(record, slots, start, whole, rest):
    """Run all steps on the last elements of a piece, fewer than GRANULE, after copying them.

    Args:
        record: address of the kernel call's operands.
        slots: address of the slots, which hold the addresses of operands.
        start: number of the piece's first element.
        whole: number of the piece's elements that are computed already.
        rest: number of the remaining elements.
    """
    sources = word(record, SOURCE_COUNT)
    for source in range(sources):
        source_record = word(record, RECORDS) + source * RECORD_BYTES
        size, own = word(source_record, ITEMSIZE), register(record, slots, source)
        address = load_i64(slots + 8 * source) + whole * size
        if word(source_record, LAYOUT) == DIRECT:
            copy_bytes(own, address, rest * size)
            address = own
        store_i64(slots + 8 * source, address)
    own, size = register(record, slots, sources), word(record, TARGET_ITEMSIZE)
    store_i64(slots + 8 * sources, own)
    run_steps(record, slots, start + whole, GRANULE)
    copy_bytes(word(record, TARGET) + (start + whole) * size, own, rest * size)


@jit
def repeat_periodic(record, slots):
    """Copy the sources that are the same for every piece to their registers.

    *record* is the address of the kernel call's operands.
    """
    for source in range(word(record, SOURCE_COUNT)):
        source_record = word(record, RECORDS) + source * RECORD_BYTES
        if word(source_record, LAYOUT) == PERIODIC:
            own, base = register(record, slots, source), word(record, SOURCE + source)
            repeat(source_record, base, own, 0, word(record, LENGTH))


@jit
def repeat(source_record, base, target, start, count):
    """Copy elements of a source that is repeated to the target's shape, in the target's order.

    Args:
        source_record: address of the record that describes the source.
        base: address of the source.
        target: address to which elements are copied.
        start: number of the first element, in the target's shape.
        count: number of elements.
    """
    size, last = word(source_record, ITEMSIZE), word(source_record, RANK) - 1
    inner, step = word(source_record, SHAPE + last), word(source_record, STRIDES + last)
    row, column = start // inner, start % inner
    end = target + count * size
    while target < end:
        run = min((inner - column) * size, end - target)
        address, rest = base + column * step, row
        for d in range(last - 1, 0, -1):
            length = word(source_record, SHAPE + d)
            address += (rest % length) * word(source_record, STRIDES + d)
            rest //= length
        if last:
            address += rest * word(source_record, STRIDES)
        if step == 0:
            fill(target, address, run, size)
        elif run <= SHORT:
            copy_short(target, address, run, size)
        else:
            copy_bytes(target, address, run)
        target += run
        row, column = row + 1, 0


@intrinsic
def store_copies(context: Any, target: Any, value: Any) -> Any:
    """Fill GRANULE bytes at the address *target* with copies of the int32 *value*."""

    def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, value = arguments
        store(builder, splat(builder, value, GRANULE // 4), target)
        return lowering.get_dummy_value()

    return types.void(types.int64, types.int32), generate


@jit
def fill(target, source, count, size):
    """Fill *count* bytes at *target* with copies of an element of *size* bytes: 1, 2, 4 or 8.

    *source* is the address of the element. For 4 bytes, the last GRANULE is filled as a whole.
    """
    if size == 4:
        value = load_i32(source)
        for i in range(0, count, GRANULE):  # registers have room after their last element
            store_copies(target + i, value)
    elif size == 1:
        fill_bytes(target, load_i8(source), count)
    elif size == 2:
        half = load_i16(source)
        for i in range(0, count, 2):
            store_i16(target + i, half)
    else:
        double = load_i64(source)
        for i in range(0, count, 8):
            store_i64(target + i, double)


@jit
def copy_short(target, source, count, size):
    """Copy *count* bytes, a few elements of *size* bytes, from one address to another."""
    if size == 4:
        for i in range(0, count, 4):
            store_i32(target + i, load_i32(source + i))
    else:
        for i in range(count):
            store_i8(target + i, load_i8(source + i))
