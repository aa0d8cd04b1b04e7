"""Memory of a program, addresses in it, and rows: the program's kernel calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.executor import HEADER_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph import Tensor

SLACK = 64
"""Number of bytes after every block of a program's memory that kernels may read, but not write."""


def padded(size: int, unit: int) -> int:
    """Return *size* rounded up to a multiple of *unit*."""
    return -(-size // unit) * unit


# These classes are not dataclasses, so that a process that runs a kept program starts sooner.


class Memory:
    """A block of memory that a program reads or writes.

    Attributes:
        size: number of bytes.
        address: address in the process; 0 until it is known. The address of a constant is known
            from the start.
        tensor: the tensor at the border of the partition; None for memory of the program.
        array: object that keeps the memory alive.
        name: name in messages.
        records: if the memory holds records (tables of words that kernels read), the words of each
            record by name; otherwise empty.
        instruction: the instruction that names the words of these records.
        model_tensor: the model's constant whose unchanged values the memory holds, or None.
        is_in_place: whether the memory is the model's own, which may be at any address.
        is_read_only: whether kernel calls must not write the memory, although it is not a constant.
        is_report: whether the memory is the header of the program, in which kernels report
            failures.
        first: number of the first kernel call (row) that uses the memory.
        last: number of the last call that uses it; -1 if none does.
    """

    __slots__ = (
        "address", "array", "first", "instruction", "is_in_place", "is_read_only", "is_report",
        "last", "model_tensor", "name", "records", "size", "tensor",
    )  # fmt: skip

    def __init__(
        self,
        size: int,
        address: int = 0,
        tensor: Tensor | None = None,
        array: Any = None,
        name: str = "memory of the program's own",
        is_report: bool = False,
        is_read_only: bool = False,
    ) -> None:
        self.size = size
        self.address = address
        self.tensor = tensor
        self.array = array
        self.name = name
        self.records: Sequence[Mapping[str, Any]] = ()
        self.instruction: Instruction | None = None
        self.model_tensor: int | None = None
        self.is_in_place = False
        self.is_read_only = is_read_only
        self.first, self.last = 0, -1
        self.is_report = is_report

    def __add__(self, offset: int) -> Address:
        return Address(self, offset)

    @property
    def is_constant(self) -> bool:
        """Whether the memory is a constant, which no kernel call may write."""
        return self.tensor is None and self.array is not None


def aligned_bytes(size: int) -> NDArray[np.uint8]:
    """Return memory for a constant, ``[size], uint8``, with undefined contents."""
    found: NDArray[np.uint8] = aligned_buffer(size + SLACK)[:size]
    return found


def constant(array: NDArray[Any], *, is_own: bool = False) -> Memory:
    """Return memory with the values of a contiguous array.

    Values are copied if their address is not aligned for vectors. They are also copied if the array
    is a part of another that does not belong to the caller.

    Args:
        array: the values.
        is_own: whether the array, or the array of which it is a part, belongs to the caller.
    """
    address: int = array.__array_interface__["data"][0]
    if address % 64 or (array.base is not None and not is_own):
        copy = aligned_bytes(array.nbytes)
        copy[:] = array.reshape(-1).view(np.uint8)
        array, address = copy, copy.__array_interface__["data"][0]
    return Memory(array.nbytes, address, array=array)


def in_place(tensor: Tensor) -> Memory:
    """Return the memory of a constant of the model, without a copy.

    It may be at any address, and bytes after it must not be read.
    """
    data = tensor.data
    found = Memory(data.nbytes, data.__array_interface__["data"][0], array=data)
    found.is_in_place, found.model_tensor = True, tensor.index
    return found


def report() -> Memory:
    """Return the memory in which a kernel call reports failures: the header of its program."""
    return Memory(8 * HEADER_WORDS, name="the program's header", is_report=True)


class Address:
    """Position of a byte in a block of memory.

    Attributes:
        memory: the block.
        offset: number of bytes from its start.
    """

    __slots__ = ("memory", "offset")

    def __init__(self, memory: Memory, offset: int = 0) -> None:
        self.memory = memory
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Address):
            return NotImplemented
        return self.memory is other.memory and self.offset == other.offset

    def __hash__(self) -> int:
        return hash((self.memory, self.offset))

    @property
    def address(self) -> int:
        """Address of the byte in the process; the address of its memory must be known."""
        return self.memory.address + self.offset

    def __add__(self, offset: int) -> Address:
        return Address(self.memory, self.offset + offset)


class Row:
    """A kernel call of a program: a kernel, the values of its words, and the number of tiles.

    Attributes:
        instruction: the kernel, with the names of its words (operands).
        tiles: number of parts into which the call is divided.
        words: the value of each word, by name: a number or an :class:`Address`.
        nodes: indices of the nodes that the call computes, wholly or partly.
        replaceable: words whose memory the word ``target`` may share, since the kernel reads each
            element before it writes to that place.
    """

    __slots__ = ("instruction", "nodes", "replaceable", "tiles", "words")

    def __init__(
        self,
        instruction: Instruction,
        tiles: int,
        words: dict[str, Any],
        nodes: tuple[int, ...] = (),
        replaceable: tuple[str, ...] = (),
    ) -> None:
        self.instruction = instruction
        self.tiles = tiles
        self.words = words
        self.nodes = nodes
        self.replaceable = replaceable

    @property
    def memories(self) -> list[Memory]:
        """Blocks of memory to which the address words of the call point."""
        return [word.memory for word in self.words.values() if isinstance(word, Address)]


def as_addresses(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a call's operands with an :class:`Address` in place of each :class:`Memory`.

    *words* has the value of each operand, by name.
    """
    return {
        name: Address(word) if isinstance(word, Memory) else word for name, word in words.items()
    }


def as_numbers(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's operands with addresses as numbers; all addresses must be known.

    *words* has the value of each operand, by name.
    """
    return {n: word.address if isinstance(word, Address) else word for n, word in words.items()}
