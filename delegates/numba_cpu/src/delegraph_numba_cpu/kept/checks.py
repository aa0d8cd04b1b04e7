"""Checks of the numbers in a kept program.

The rules of ``bounds`` rely on properties that all rows from a lowering have. A file may hold any
number, so these checks come first: counts and lengths are not negative and not huge, and divisors
and steps of kernels are not 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delegraph_numba_cpu.bounds.words import Overrun
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import Address, Memory, Row

MOST = 1 << 40
"""Largest count or length that a program may contain."""

MOST_TILES = 1 << 20

FREE = frozenset(("multiplier", "value"))
"""Words that may have any value of 64 bits, because they influence only computed values."""

POSITIVE = frozenset(("chunk", "column_tiles", "row_tiles", "step"))
"""Words that must be positive, as kernels divide by them or advance by them."""

SIGNED = frozenset((
    "before_height", "before_width", "bias", "cell_high", "cell_low", "flip", "hidden_multiplier",
    "hidden_shift", "hidden_zero", "high", "input_multiplier", "input_shift", "least_variance",
    "left", "low", "mask", "multiplier_in", "multiplier_out", "norm_multiplier", "norm_shift",
    "out_flip", "peephole_multiplier", "peephole_shift", "projection_multiplier",
    "projection_shift", "projection_zero", "recurrent_multiplier", "recurrent_shift", "shift",
    "shift_in", "shift_out", "subtrahend", "sum_factor", "top", "weight_zero", "zero", "zero_out",
    "zero_point",
))  # fmt: skip
"""Words that may be negative: values, and positions that kernels compare with bounds."""


def check_numbers(instruction: Instruction, words: Mapping[str, Any], tiles: int) -> None:
    """Check that the numbers of a kernel call or a record are in the range that lowering keeps.

    Args:
        instruction: the kernel, or the description of the record, with the names of its words.
        words: value of each word (operand), by name.
        tiles: number of parts into which the call is split.

    Raises:
        Overrun: a number is out of range.
    """
    if not 0 < tiles <= MOST_TILES or words.get("tiles", tiles) != tiles:
        raise Overrun(f"{instruction.kernel!r}: {tiles} tiles")
    for name, word in words.items():
        if isinstance(word, Address):
            continue
        if name in FREE:
            continue
        least = -MOST if name in SIGNED else int(name in POSITIVE)
        if not least <= word < MOST:
            raise Overrun(f"{instruction.kernel!r}: the word {name!r} is {word}")


def check_computed_records(rows: Sequence[Row], offsets: Mapping[int, int]) -> None:
    """Check that records which a kernel computes are complete before another kernel reads them.

    A record is a table of words that a kernel reads, such as addresses. Checks rely on these words,
    so no other memory may overlap a record from when it is written until it is read.

    Args:
        rows: all kernel calls of a program.
        offsets: offset of each block of working memory, by the ``id`` of its :class:`Memory`.

    Raises:
        Overrun: a kernel call may overwrite a record.
    """
    # For a block of working memory: the block, its first and its last row.
    uses: dict[int, tuple[Memory, int, int]] = {}
    writers: dict[int, int] = {}
    for number, row in enumerate(rows):
        for name, word in row.words.items():
            if not isinstance(word, Address) or id(word.memory) not in offsets:
                continue
            identity = id(word.memory)
            first = uses.get(identity, (word.memory, number, number))[1]
            uses[identity] = word.memory, first, number
            if row.instruction.kernel == "pack_stack" and name == "matrices":
                writers.setdefault(identity, number)
    for identity, (memory, first, last) in uses.items():
        if not memory.records:
            continue
        if writers.get(identity) != first:
            raise Overrun("a record in working memory is read before it is written")
        start, end = offsets[identity], offsets[identity] + memory.size
        for other, (else_memory, begun, over) in uses.items():
            place = offsets[other]
            is_apart = place >= end or place + else_memory.size <= start
            if other != identity and not is_apart and begun <= last and over >= first:
                raise Overrun("other values lie where a record is")


def check_scratch(row: Row, offsets: Mapping[int, int]) -> None:
    """Check that no other memory which a kernel call accesses overlaps its scratch memory.

    Kernels keep addresses there, and use them without checks.

    Args:
        row: the kernel call.
        offsets: offset of each block of working memory, by the ``id`` of its :class:`Memory`.

    Raises:
        Overrun: another operand of the call points into the scratch memory.
    """
    if not any(name.endswith("scratch") for name in row.instruction.names):
        return
    words = [(name, w.memory) for name, w in row.words.items() if isinstance(w, Address)]
    own = [(name, memory) for name, memory in words if name.endswith("scratch")]
    for name, memory in own:
        if id(memory) not in offsets:
            raise Overrun(f"{row.instruction.kernel!r}: {name!r} is no working memory")
        start = offsets[id(memory)]
        for other, beside in words:
            place = offsets.get(id(beside), -1)
            is_apart = place < 0 or place >= start + memory.size or place + beside.size <= start
            if other != name and (beside is memory or not is_apart):
                raise Overrun(
                    f"{row.instruction.kernel!r}: {other!r} lies in the memory of {name!r}"
                )
