"""Writes programs as bytes; see ``program_file.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import SLACK, Address, Memory, padded
from delegraph_numba_cpu.kept import program_file as file
from delegraph_numba_cpu.program.program import Program, packed

LEAST_OF_MODEL = 64 << 10
"""Least number of bytes of a constant of the model to which a file refers, instead of a copy."""


JOINED = 256 << 10
"""Largest number of bytes of several constants that are joined into one piece."""


def pieces_of(
    program: Program, key: bytes, shared: dict[bytes, bytes] | None = None
) -> list[memoryview]:
    """Return the content of a file that holds a program, as a list of pieces of bytes.

    The constants are views of the program's memory.

    Args:
        program: the program, with all its constants.
        key: digest of everything that the program depends on, 32 bytes.
        shared: dict to which large constants are added by their SHA-256, in place of the file; None
            to write all constants into the file.
    """
    return [piece.data for piece in _Writer(program, shared).pieces(key)]


def host_tensors(program: Program) -> set[int]:
    """Return the indices of the model's tensors that a program read from a file needs of its host.

    They are the tensors at its border, and large constants of the model.
    """
    memories = {id(memory): memory for row in program.rows for memory in row.memories}.values()
    border = {memory.tensor.index for memory in memories if memory.tensor is not None}
    constants = (constant_of_model(memory) for memory in memories)
    return border | {index for index in constants if index is not None}


def constant_of_model(memory: Memory) -> int | None:
    """Return the index of the model's constant to which a program's file refers for *memory*.

    The result is None if the file has a copy of the memory.
    """
    return memory.model_tensor if memory.size >= LEAST_OF_MODEL else None


class _Writer:
    def __init__(self, program: Program, shared: dict[bytes, bytes] | None) -> None:
        self._program = program
        self._shared = shared
        # Mapping from a constant's name to its sums.
        self._shared_constants: dict[bytes, bytes] = {}
        self._memories: dict[int, Memory] = {}
        self._instructions: dict[Instruction, int] = {}
        for row in program.rows:
            self._add_all(row.instruction, row.words)
        self._number = {identity: i for i, identity in enumerate(self._memories)}
        # Mapping from a memory's number to the place of its constant.
        self._places: dict[int, int] = {}
        self._constants_end = 0

    def _add(self, memory: Memory) -> None:
        """Number a piece of memory in the file, and all memory to which its records point."""
        if id(memory) in self._memories:
            return
        self._memories[id(memory)] = memory
        if memory.instruction is not None:
            for words in memory.records:
                self._add_all(memory.instruction, words)

    def _add_all(self, instruction: Instruction, words: Mapping[str, Any]) -> None:
        """Number the pieces of memory to which the operands of a kernel call or a record point."""
        self._instruction_number(instruction)
        for name in instruction.names:
            if isinstance(words[name], Address):
                self._add(words[name].memory)

    def _instruction_number(self, instruction: Instruction) -> int:
        return self._instructions.setdefault(instruction, len(self._instructions))

    def pieces(self, key: bytes) -> list[NDArray[np.uint8]]:
        """Return the content of the whole file as a list of pieces of bytes.

        Args:
            key: digest of everything that the program depends on, 32 bytes.
        """
        program, memories = self._program, list(self._memories.values())
        records = np.array([self._memory(i, m) for i, m in enumerate(memories)], file.MEMORY)
        rows = [
            (self._instruction_number(row.instruction), len(row.nodes), row.tiles)
            for row in program.rows
        ]
        words = [*self._words_of_rows(), *self._words_of_records(memories)]
        names = "".join(f"{i.family} {i.kernel}\n" for i in self._instructions).encode()
        parts: list[NDArray[Any]] = [
            np.frombuffer(names, np.uint8),
            records,
            np.array(rows, file.ROW),
            np.array([memory for memory, _ in words], "<i4"),
            np.array([value for _, value in words], "<i8"),
            np.array([node for row in program.rows for node in row.nodes], "<i4"),
            np.array(list(self._shared_constants.items()), file.SHARED_CONSTANT),
        ]
        constants = list(joined(self._constants(memories)))
        size = sum(map(len, constants))
        header = np.zeros(1, file.HEADER)
        header[0] = (
            file.MAGIC, file.VERSION, len(names), len(memories), len(rows), len(words),
            len(parts[-2]), len(parts[-1]), size, program.scratch_bytes,
            program.workers, key, file.sums_of(*constants), b"",
        )  # fmt: skip
        pieces = [_padded(part, 8) for part in (header, *parts)]
        structure = _padded(np.concatenate(pieces), file.PAGE)
        start, end = file.digest_place()
        structure[start:end] = np.frombuffer(file.digest_of(structure), np.uint8)
        return [structure, *constants]

    def _memory(self, number: int, memory: Memory) -> tuple[int, int, int, int, int]:
        kind, place = self._kind(number, memory)
        number = -1 if memory.instruction is None else self._instruction_number(memory.instruction)
        return kind, number, memory.size, place, len(memory.records)

    def _kind(self, number: int, memory: Memory) -> tuple[int, int]:
        """Return two numbers for the file: the kind of a piece of memory, and its place.

        The kind decides whether the place is an offset or an index. *number* is that of the memory.
        """
        if memory.is_report:
            return file.REPORT, 0
        if memory.tensor is not None:
            return file.BORDER, memory.tensor.index
        if not memory.is_constant:
            return file.WORKING, self._program.offsets[id(memory)]
        constant = constant_of_model(memory)
        if constant is not None:
            return file.TABLE if memory.is_in_place else file.MODEL, constant
        if memory.records:
            return file.CONSTANT, 0  # the words of this memory are in the file
        if self._shared is not None and memory.size >= file.LEAST_SHARED:
            return file.SHARED, self._share(memory, self._shared)
        place = self._places[number] = self._constants_end
        self._constants_end = padded(place + memory.size + SLACK, file.LINE)
        return file.CONSTANT, place

    def _share(self, memory: Memory, shared: dict[bytes, bytes]) -> int:
        """Put a large constant in *shared*, by SHA-256, instead of the file; return its number."""
        content = np.zeros(padded(memory.size + SLACK, file.PAGE), np.uint8)
        content[: memory.size] = memory.array.reshape(-1).view(np.uint8)
        name = sha256(content.data).digest()
        shared[name] = content.tobytes()
        self._shared_constants.setdefault(name, file.sums_of(content))
        return list(self._shared_constants).index(name)

    def _constants(self, memories: list[Memory]) -> list[NDArray[np.uint8]]:
        """Return the constants and the zeros between them, as arrays of bytes in order."""
        found, end = [], 0
        for number, place in self._places.items():
            array = memories[number].array.reshape(-1).view(np.uint8)
            found += [np.zeros(place - end, np.uint8), array]
            end = place + len(array)
        whole = padded(self._constants_end, file.PAGE)
        return [*found, np.zeros(whole - end, np.uint8)]

    def _words_of_rows(self) -> Iterator[tuple[int, int]]:
        for number, row in enumerate(self._program.rows):
            yield from self._words(row.instruction, row.words, self._program.record(number))

    def _words_of_records(self, memories: list[Memory]) -> Iterator[tuple[int, int]]:
        for memory in memories:
            for words in memory.records:
                assert memory.instruction is not None
                yield from self._words(memory.instruction, words, packed(memory.instruction, words))

    def _words(
        self, instruction: Instruction, words: Mapping[str, Any], numbers: NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """Yield two numbers for each word (operand): a piece of memory, and a value.

        The first is the number of the memory that the word points into, or -1; the second is the
        offset in it, or the word itself. *numbers* are the words as int64, in order,
        used for those that are not addresses.
        """
        for name, number in zip(instruction.names, numbers.tolist(), strict=True):
            word = words[name]
            if isinstance(word, Address):
                yield self._number[id(word.memory)], word.offset
            else:
                yield -1, number


def joined(pieces: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Yield *pieces* with small neighbours joined, as a program has hundreds of small constants.

    Args:
        pieces: arrays of bytes; large arrays are yielded without a copy.
    """
    small: list[NDArray[np.uint8]] = []
    size = 0
    for piece in pieces:
        if size + len(piece) > JOINED and small:
            yield _whole(small)
            small, size = [], 0
        small.append(piece)
        size += len(piece)
    if small:
        yield _whole(small)


def _whole(pieces: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _padded(part: NDArray[Any], unit: int) -> NDArray[np.uint8]:
    raw = part.reshape(-1).view(np.uint8)
    return np.concatenate([raw, np.zeros(-len(raw) % unit, np.uint8)])
