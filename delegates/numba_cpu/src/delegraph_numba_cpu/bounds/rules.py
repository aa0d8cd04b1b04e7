"""The bounds check: verifies that a kernel call accesses only bytes of its own memory.

Each kernel has a *rule*, a function that declares the bytes that a call reads and writes, and the
steps of its loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph_numba_cpu.bounds.words import Overrun, addresses_of, check_words
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import SLACK, Address, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 1 << 12
"""Number of loop steps that every call may have, even if its memory is small."""


def steps(*counts: int) -> int:
    """Return an upper bound of the steps of nested loops: the product of the loops' steps.

    A loop of 0 steps counts as one step, because the loops around it still run.

    Args:
        counts: number of steps of each loop; a negative one counts as 0.

    >>> steps(4, 3, 0)
    12
    """
    found = 1
    for count in counts:
        if count > 1:  # in less time than by a generator
            found *= count
    return found


class Touched:
    """A kernel call whose accesses are being checked: its words, and the bytes declared so far.

    The rule of the kernel calls :meth:`read` and :meth:`write` to declare the bytes that the kernel
    accesses. These raise an error for bytes outside of the call's memory. The rule calls
    :meth:`loops` for the kernel's loops. An object of this class may also stand for a record, which
    is a table of words that the kernel reads.

    Args:
        instruction: the kernel, with the names of its words.
        words: value of each word, by name.
        tiles: number of parts into which the call is split.
        workers: number of threads that may run the call.
        vector_bytes: size of the kernel's vector registers in bytes.

    Attributes:
        tiles, workers, vector_bytes: see the arguments.
        kernel: name of the kernel.
        has_loops: whether the rule has declared the kernel's loops.
    """

    def __init__(
        self,
        instruction: Instruction,
        words: Mapping[str, Any],
        tiles: int,
        workers: int,
        vector_bytes: int,
    ) -> None:
        check_words(instruction, words)
        self.kernel, self.tiles = instruction.kernel, tiles
        self.workers, self.vector_bytes = workers, vector_bytes
        self.has_loops = False
        self._words = words
        self._addresses = addresses_of(instruction)
        self._unseen = {name for name, word in words.items() if isinstance(word, Address)}

    def __getitem__(self, name: str) -> int:
        """Return the value of the word *name*, a 64-bit integer operand of the call."""
        return int(self._words[name])

    @property
    def numbers(self) -> dict[str, Any]:
        """The words that are plain numbers, not addresses, by name."""
        return {name: self._words[name] for name in self._words.keys() - self._addresses}

    def is_constant(self, name: str) -> bool:
        """Whether the address in word *name* points into a constant."""
        found: bool = self._words[name].memory.is_constant
        return found

    def address(self, name: str) -> Address:
        """Return the address in word *name*: a piece of memory and an offset in it."""
        found: Address = self._words[name]
        return found

    def has(self, name: str) -> bool:
        """Whether the word *name* holds an address; the word of an absent optional operand is 0."""
        return isinstance(self._words[name], Address)

    def read(self, name: str, stop: int, start: int = 0) -> None:
        """Declare that the kernel reads bytes *start* to *stop* from the address in word *name*.

        Raises:
            Overrun: some bytes are neither in the memory nor in the readable bytes after it.
        """
        memory = self._words[name].memory
        room = 0 if memory.tensor is not None or memory.is_constant else SLACK
        self._touch(name, start, stop, memory.size + room, "reads")

    def write(self, name: str, stop: int, start: int = 0) -> None:
        """Declare that the kernel writes, and may read, bytes *start* to *stop* from the address.

        Bytes are counted from the address in word *name*.

        Raises:
            Overrun: some bytes are outside the memory, or it is a constant or an input.
        """
        memory = self._words[name].memory
        if memory.is_constant and stop > start:
            raise Overrun(f"{self.kernel!r} writes to {memory.name}, a constant, by {name!r}")
        if memory.is_read_only and stop > start:
            raise Overrun(f"{self.kernel!r} writes to {memory.name}, an input, by {name!r}")
        self._touch(name, start, stop, memory.size, "writes")

    def scratch(self, stop: int, prefix: str = "") -> None:
        """Declare the number of bytes that each thread accesses in its part of the scratch memory.

        Args:
            stop: number of bytes from the start of a thread's part.
            prefix: text with which the names of the words for this scratch memory begin.

        Raises:
            Overrun: a thread's part is smaller.
        """
        each = self[f"{prefix}scratch_bytes"]
        self.within("a worker's scratch memory", stop, each)
        self.write(f"{prefix}scratch", (self.workers - 1) * each + stop)

    def loops(self, *counts: int) -> None:
        """Declare the number of steps of each of some nested loops of the kernel.

        Each step reads or writes at least one byte that no other step accesses. So there are at
        most as many steps as the call has bytes of memory. Offsets of 0 and empty rows touch no new
        bytes, so :meth:`read` and :meth:`write` alone do not bound the number of steps.

        Args:
            counts: number of steps of each loop; see :func:`steps`.

        Raises:
            Overrun: the loops have more steps than the call has bytes.
        """
        self.has_loops = True
        total = steps(*counts)
        if total > FEW:
            words = self._words.values()
            size = sum([word.memory.size for word in words if isinstance(word, Address)])
            self.require(total <= size, f"{total} steps of its loops touch {size} bytes")

    def within(self, what: str, stop: int, limit: int) -> None:
        """Check that *stop* bytes fit into *limit* bytes: 0 <= *stop* <= *limit*.

        Args:
            stop: number of bytes that the kernel uses.
            limit: number of available bytes.
            what: name of the checked memory for the error message.

        Raises:
            Overrun: *stop* is out of range.
        """
        if not 0 <= stop <= limit:
            raise Overrun(f"{self.kernel!r}: {what} takes {stop} bytes of {limit}")

    def require(self, is_met: bool, what: str) -> None:
        """Check a condition that the kernel relies on.

        Args:
            is_met: whether the condition is true.
            what: the condition in words, for the error message.

        Raises:
            Overrun: the condition is false.
        """
        if not is_met:
            raise Overrun(f"{self.kernel!r}: {what}")

    def table(self, name: str) -> NDArray[np.int64]:
        """Return the constant to which the word *name* points, as int64 values.

        Raises:
            Overrun: the word does not point to the start of a constant.
        """
        address = self._words[name]
        array = address.memory.array
        self.require(address.memory.is_constant and not address.offset, f"{name!r} is no constant")
        self._unseen.discard(name)
        numbers: NDArray[np.int64] = array.reshape(-1).view(np.uint8)
        return numbers[: len(numbers) // 8 * 8].view(np.int64)

    def record(self, name: str) -> Touched:
        """Return the words of the record to which the word *name* points, ready to be checked.

        A record is a table of words that the kernel reads. Its bytes are declared as read.

        Raises:
            Overrun: the memory is not a record.
        """
        return self.records(name)[0]

    def records(self, name: str, copies: int = 1, apart: int = 0) -> list[Touched]:
        """Return the words of all records in the memory to which the word *name* points.

        Args:
            name: name of the word.
            copies: number of records that the kernel reads there.
            apart: distance in bytes from one record to the next.

        Raises:
            Overrun: the memory has no record, or the kernel reads between records.
        """
        address = self._words[name]
        instruction, records = address.memory.instruction, address.memory.records
        self.require(bool(records) and not address.offset, f"{name!r} is no record")
        assert instruction is not None
        size = 8 * len(records[0])
        is_stack = apart == size and copies <= len(records)
        self.require(copies == 1 or apart == 0 or is_stack, f"{name!r}: records lie side by side")
        self.read(name, (copies - 1) * apart + size)
        return [
            Touched(instruction, each, self.tiles, self.workers, self.vector_bytes)
            for each in records
        ]

    def finish(self) -> None:
        """Check that the rule has declared at least one access for each address of the call.

        Raises:
            Overrun: an address has no declared access.
        """
        self.require(not self._unseen, f"no rule for the addresses {sorted(self._unseen)}")

    def _touch(self, name: str, start: int, stop: int, size: int, does: str) -> None:
        self._unseen.discard(name)
        address = self._words[name]
        first, last = address.offset + start, address.offset + stop
        if not 0 <= first <= last <= size:
            memory = address.memory
            raise Overrun(
                f"{self.kernel!r} {does} bytes {first} to {last} of {memory.name} by {name!r}; "
                f"it has {memory.size}"
            )


Rule = Callable[[Touched], None]
"""Function that declares all bytes that a kernel call may access, and the steps of its loops."""

RULES: dict[tuple[str, str], Rule] = {}
"""Mapping from family and kernel to the rule; a family's rules are added at its first check."""

FAMILIES = frozenset((
    "arg_min_max", "attention_f32", "batch_matmul_f32", "conv_f32", "conv_hybrid", "conv_int16",
    "conv_int8", "depthwise_conv_f32", "depthwise_conv_int8", "elementwise",
    "inverted_residual_f32", "inverted_residual_int8", "l2_normalization", "lookup", "lstm_f32",
    "lstm_int8", "moves", "pooling", "reductions", "resize", "softmax", "svdf",
))  # fmt: skip
"""Families with rules; each has a module of its name in this package."""


def rule(*instructions: Instruction) -> Callable[[Rule], Rule]:
    """Return a decorator that makes a function the bounds-check rule of some kernels.

    Args:
        instructions: the kernels, each with the names of its words.
    """

    def add(function: Rule) -> Rule:
        for instruction in instructions:
            RULES[instruction.family, instruction.kernel] = function
        return function

    return add


def check_row(row: Row, workers: int, vector_bytes: int) -> None:
    """Check that a kernel call accesses only the memory to which its words point.

    Args:
        row: a kernel call with its words; the sizes of all its memory are known.
        workers: number of threads that may run the call.
        vector_bytes: size of the kernel's vector registers in bytes.

    Raises:
        Overrun: the call accesses other memory, its loops have too many steps, or its kernel has no
            rule.
    """
    if row.instruction.family in FAMILIES:
        # A look into a dict, but for the first.
        import_module(f"{__package__}.{row.instruction.family}")
    found = RULES.get((row.instruction.family, row.instruction.kernel))
    if found is None:
        raise Overrun(f"{row.instruction.kernel!r}: no rule says what it touches")
    touched = Touched(row.instruction, row.words, row.tiles, workers, vector_bytes)
    found(touched)
    touched.finish()
    touched.require(touched.has_loops, "no rule for its loops")
