"""Bytes that chains of element-wise operations read and write."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.elementwise import (
    CHAIN,
    ELEMENT_BYTES,
    LARGEST_RANK,
    OPERATIONS,
    RECORD_WORDS,
    SIGNATURES,
    SLOTS,
    SOURCES,
    STEP_WORDS,
    Layout,
    Operation,
    Record,
    Step,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Words = NDArray[np.int64]

TABLES = {
    Operation.SINE: (24 << 8,),
    Operation.LOOKUP: (1 << 8,),
    Operation.LOOKUP_INT16: (2 << 16,),
    Operation.LOOKUP_INT16_IN_8_BIT: (1 << 16,),
    Operation.LOOKUP_PAIR: (1 << 16,),
    Operation.LOOKUP_PAIR_BY_POSITION: (1 << 16, 1 << 16),
}
"""Mapping from an operation to the sizes in bytes of its tables, which are its first parameters."""


@rule(CHAIN)
def chain(row: Touched) -> None:
    row.loops(row["elements"])
    steps, records = _steps(row), _records(row)
    sizes = _slot_sizes(row, steps, records)
    for i, record in enumerate(records):
        row.read(f"source{i}", _source_bytes(row, record))
    row.write("target", row["elements"] * row["target_itemsize"])
    slots = row["slot_count"]
    widest = max(sizes.values())
    row.require(max(sizes) < slots <= SLOTS, "slots are counted")
    # A repeated source is filled in whole vectors, and the last elements are computed as a whole
    # vector. Only these are in registers if one step reads all sources in place.
    in_place = len(steps) == 1 and all(r[Record.LAYOUT] == Layout.DIRECT for r in records)
    length = row.vector_bytes if in_place else max(row["length"], row.vector_bytes)
    longest = length * widest + row.vector_bytes
    row.within("an operand's register", longest, row["register_bytes"])
    row.scratch(8 * SLOTS + slots * row["register_bytes"])


def _steps(row: Touched) -> list[tuple[int, list[int]]]:
    """Return the steps of a chain of element-wise operations: each step's operation and its words.

    The bytes that describe the steps are declared as read.
    """
    count = row["step_count"]
    row.read("steps", 8 * STEP_WORDS * count)
    steps = row.table("steps")[: STEP_WORDS * count].reshape(-1, STEP_WORDS)
    row.require(len(steps) == count > 0, "there are steps")
    found = [(step[Step.OPERATION], step) for step in steps.tolist()]
    for operation, step in found:
        row.require(operation in SIGNATURES, f"operation {operation} exists")
        for i, size in enumerate(TABLES.get(operation, ())):
            start = step[Step.PARAMETER + i]
            row.read("steps", start + size, start)
    return found


def _records(row: Touched) -> list[Words]:
    count = row["source_count"]
    row.require(0 <= count <= SOURCES, "there are so many sources")
    row.read("records", 8 * RECORD_WORDS * count)
    return list(row.table("records")[: RECORD_WORDS * count].reshape(-1, RECORD_WORDS))


def _slot_sizes(
    row: Touched, steps: list[tuple[int, list[int]]], records: list[Words]
) -> dict[int, int]:
    """Return the element size in bytes of each slot that a chain uses, by the slot's number.

    Slots hold the sources, the target and intermediate values.

    An error is raised if an operation would read elements of another size than its own type has.
    """
    sizes = {i: int(record[Record.ITEMSIZE]) for i, record in enumerate(records)}
    for operation, step in steps:
        operands, _, result = SIGNATURES[operation].partition(">")
        for letter, word in zip(operands, (Step.A, Step.B, Step.C), strict=False):
            found, expected = sizes.get(step[word]), ELEMENT_BYTES[letter]
            if found != expected:  # else no text is made
                name = next(name for name, code in OPERATIONS.items() if code == operation)
                what = f"{name} reads {expected} bytes an element of {found}"
                row.require(False, what)
        sizes[step[Step.TARGET]] = ELEMENT_BYTES[result]
    found, expected = sizes.get(len(records)), row["target_itemsize"]
    row.require(found == expected, f"elements of {found} bytes go to a target of {expected}")
    return sizes


def _source_bytes(row: Touched, record: Words) -> int:
    """Return the number of bytes that a chain of element-wise operations reads of one input."""
    layout, itemsize = int(record[Record.LAYOUT]), int(record[Record.ITEMSIZE])
    row.require(Layout.DIRECT <= layout <= Layout.STRIDED, "a source has a layout")
    if layout == Layout.DIRECT:
        return row["elements"] * itemsize
    rank = int(record[Record.RANK])
    row.require(0 < rank <= LARGEST_RANK, "a source has dimensions")
    shape: list[int] = record[Record.SHAPE : Record.SHAPE + rank].tolist()
    strides: list[int] = record[Record.STRIDES : Record.STRIDES + rank].tolist()
    row.require(min(shape) > 0 <= min(strides) and strides[-1] in (0, itemsize), "a source repeats")
    # The outermost index goes on as far as there are elements.
    most = math.prod(shape) if layout == Layout.STRIDED else 0
    row.require(most >= row["elements"] or not strides[0] or rank == 1, "dimensions hold all")
    return sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True)) + itemsize
