"""Reads programs from files, without trust in their content; see ``program_file.py``.

All counts and offsets are checked before they are used. ``checks.py`` checks the words, and the
rule of a row's kernel checks the row, as when the row was emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import DelegraphError
from delegraph.lazy_dataclass import dataclass
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.bounds.rules import FAMILIES
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import (
    SLACK,
    Address,
    Memory,
    Row,
    constant,
    in_place,
    padded,
    report,
)
from delegraph_numba_cpu.kept import program_file as file
from delegraph_numba_cpu.kept.checks import check_computed_records, check_numbers, check_scratch
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.program import Layout, Program, name_of
from delegraph_numba_cpu.program.working_memory import WorkingMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph import Tensor

_WORD = 8

LEAST = 64 << 10
"""Least number of bytes of a constant that counts toward the limit, as in ``SharedConstants``."""


@dataclass(frozen=True, slots=True)
class Host:
    """The partition that a program in a file computes, and the process that reads the file.

    Attributes:
        tensors: tensors of the subgraph, by index; a host without the graph has those of *border*.
        nodes: indices of the partition's nodes.
        border: indices of the tensors whose memory the host owns.
        outputs: indices of the partition's outputs, a part of *border*.
        workers: number of threads that run the program.
        library: the compiled kernels.
        working_memory: the memory that this program shares with others.
        shared: function that gets the SHA-256 of a constant that several programs share, and
            returns its bytes, 64-byte aligned; None if the constant is missing.
    """

    tensors: Sequence[Tensor] | Mapping[int, Tensor]
    nodes: Sequence[int]
    border: Sequence[int]
    outputs: Sequence[int]
    workers: int
    library: Library
    working_memory: WorkingMemory
    shared: Callable[[bytes], memoryview | None] = lambda _: None


def read(content: memoryview, key: bytes, host: Host) -> Program:
    """Return the program in the content of a file; its constants are views of the content.

    Args:
        content: bytes of the file, 64-byte aligned; they may be mapped.
        key: digest of everything that the program has to be made for, 32 bytes.
        host: the partition and the process that use the program.

    Raises:
        UnfitFile: the file is damaged, foreign, old or forged.
    """
    try:
        return _Reader(content, key, host).program()
    except file.UnfitFile:
        raise
    except Overrun as error:
        raise file.UnfitFile(str(error)) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # The arithmetic of a rule failed.
        raise file.UnfitFile(f"{type(error).__name__}: {error}") from error
    except DelegraphError as error:
        # The program needs more memory than the limit allows.
        raise file.UnfitFile(str(error)) from error


class _Reader:
    def __init__(self, content: memoryview, key: bytes, host: Host) -> None:
        self._host = host
        self._content = np.frombuffer(content, np.uint8)
        address = self._content.__array_interface__["data"][0]
        self._require(address % file.LINE == 0, "it lies at an address that does not suit vectors")
        self._require(len(self._content) >= file.HEADER.itemsize, "it has no header")
        # A copy, so that a checked value stays as it was checked if the file is changed meanwhile.
        self._header = header = self._content[: file.HEADER.itemsize].copy().view(file.HEADER)[0]
        self._require(bytes(header["magic"]) == file.MAGIC.rstrip(b"\0"), "it is another file")
        self._require(int(header["version"]) == file.VERSION, "it has another version")
        self._require(header["key"].tobytes() == key, "it is of another program")
        self._require(int(header["workers"]) == host.workers, "it is for other threads")
        self._parts = dict(self._read_parts())

    @staticmethod
    def _require(is_met: bool, what: str) -> None:
        if not is_met:
            raise file.UnfitFile(what)

    def _read_parts(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield name and content of each table, after checks of sizes and digests."""
        content, place = self._content, file.HEADER.itemsize
        for name, dtype, count in file.parts_of(self._header):
            end = place + dtype.itemsize * count
            self._require(end <= len(content), f"it ends in the {name}")
            yield name, content[place:end].copy().view(dtype)
            place = padded(end, 8)
        start = padded(place, file.PAGE)
        size = int(self._header["constants"])
        self._require(start + size == len(content), "it has another size")
        self._require(size % file.PAGE == 0, "its constants end inside a page")
        found = file.digest_of(content[:start])
        self._require(found == self._header["digest"].tobytes(), "its digest is wrong")
        constants = content[start:]
        self._require(
            file.sums_of(constants) == self._header["sums"].tobytes(), "its constants are damaged"
        )
        yield "constants", constants

    def program(self) -> Program:
        """Return the program in the file, after all checks."""
        host, parts = self._host, self._parts
        names = parts["names"].tobytes().decode("ascii").splitlines()
        self._instructions = [_instruction(name) for name in names]
        self._offsets: dict[int, int] = {}
        self._memories = [self._memory(*record) for record in parts["memories"].tolist()]
        self._kinds, self._values = parts["kinds"].tolist(), parts["values"].tolist()
        self._next_word = 0
        rows = list(self._rows())
        used = self._next_word
        self._read_records()
        self._require(self._next_word == len(self._kinds), "it has more words than rows")
        level = host.library.level
        check_computed_records(rows, self._offsets)
        for row in rows:
            check_numbers(row.instruction, row.words, row.tiles)
            check_scratch(row, self._offsets)
            check_row(row, host.workers, level.vector_bytes)
        size = int(self._header["working"])
        host.working_memory.require(size)
        self._require_constants()
        layout = Layout(size, self._offsets, parts["values"][:used])
        host.library.load(row.instruction.family for row in rows)
        return Program(rows, host.library, host.workers, host.working_memory, layout)

    def _memory(self, kind: int, number: int, size: int, place: int, records: int) -> Memory:
        self._require(size >= 0 <= place and 0 <= records <= len(self._content), "a bad size")
        self._require(
            -1 <= number < len(self._instructions), "an instruction that it does not name"
        )
        self._require((number >= 0) == (records > 0), "records without an instruction")
        memory = self._placed(kind, size, place, is_record=records > 0)
        if records:
            memory.instruction = self._instructions[number]
            memory.records = [{}] * records  # placeholders until the words are read
        return memory

    def _placed(self, kind: int, size: int, place: int, *, is_record: bool) -> Memory:
        """Return the memory that an entry of the file describes, after checks.

        *place* is an offset or an index; the *kind*, a number, decides which.
        """
        if kind == file.REPORT:
            return report()
        if kind == file.WORKING:
            end = place + size + SLACK
            self._require(
                place % file.LINE == 0 and end <= int(self._header["working"]), "a bad place"
            )
            memory = Memory(size)
            self._offsets[id(memory)] = place
            return memory
        if kind == file.CONSTANT:
            return Memory(size) if is_record else self._constant(size, place)
        if kind == file.SHARED:
            return self._shared_constant(size, place)
        tensor = self._tensor(place)
        if kind in (file.MODEL, file.TABLE):
            self._require(tensor.is_constant and tensor.data.nbytes == size, "another constant")
            if kind == file.TABLE:
                self._require(tensor.data.flags.c_contiguous, "a constant with gaps")
                return in_place(tensor)
            memory = constant(np.ascontiguousarray(tensor.data))
            memory.model_tensor = place
            return memory
        self._require(kind == file.BORDER, "an unknown kind of memory")
        self._require(place in self._host.border and not tensor.is_constant, "no border tensor")
        self._require(tensor.bytes == size, "a tensor of another size")
        found = Memory(size, tensor=tensor, name=name_of(tensor))
        found.is_read_only = place not in self._host.outputs and not tensor.is_variable
        return found

    def _constant(self, size: int, place: int) -> Memory:
        constants = self._parts["constants"]
        self._require(
            place % file.LINE == 0 and place + size + SLACK <= len(constants), "a bad place"
        )
        array = constants[place : place + size]
        return Memory(size, array.__array_interface__["data"][0], array=array)

    def _shared_constant(self, size: int, number: int) -> Memory:
        self._require(number < len(self._parts["shared"]), "a constant that it does not name")
        named = self._parts["shared"][number]
        content = self._host.shared(named["name"].tobytes())
        if content is None:
            raise file.UnfitFile("a constant that it shares is missing")
        array = np.frombuffer(content, np.uint8)
        self._require(
            size + SLACK <= len(array) and len(array) % file.PAGE == 0, "a constant of bad size"
        )
        self._require(
            file.sums_of(array) == named["sums"].tobytes(), "a constant that it shares is damaged"
        )
        address = array.__array_interface__["data"][0]
        self._require(address % file.LINE == 0, "a constant at an address that does not suit")
        return Memory(size, address, array=array[:size])

    def _require_constants(self) -> None:
        """Raise an error if copies of constants exceed the interpreter's memory limit."""
        copies = (m for m in self._memories if m.is_constant and not m.is_in_place)
        sizes = (m.size for m in copies if m.size >= LEAST)
        self._host.working_memory.limit.require_copies(sum(sizes), "what kernels keep of constants")

    def _tensor(self, index: int) -> Tensor:
        try:
            return self._host.tensors[index]
        except LookupError:
            raise file.UnfitFile("a tensor that the host has not") from None

    def _rows(self) -> Iterator[Row]:
        nodes, known = self._parts["nodes"].tolist(), set(self._host.nodes)
        self._require(known.issuperset(nodes), "a node that is not in the partition")
        first = 0
        for number, count, tiles in self._parts["rows"].tolist():
            self._require(0 <= number < len(self._instructions) and count >= 0, "a row of nothing")
            own = tuple(nodes[first : first + count])
            first += count
            instruction = self._instructions[number]
            yield Row(instruction, tiles, self._words(instruction), own)

    def _words(self, instruction: Instruction) -> dict[str, Any]:
        """Return the file's next words, by name, as the operands of a kernel call or a record."""
        start = self._next_word
        self._next_word = end = start + len(instruction.names)
        self._require(end <= len(self._kinds), "it has fewer words than rows")
        kinds, values = self._kinds[start:end], self._values[start:end]
        words = dict(zip(instruction.names, values, strict=True))
        for name, kind in zip(instruction.names, kinds, strict=True):
            if kind != -1:
                self._require(0 <= kind < len(self._memories), "a memory that it has not")
                words[name] = Address(self._memories[kind], words[name])
        return words

    def _read_records(self) -> None:
        """Read the words of records, and write the records that are constants."""
        for memory in self._memories:
            if memory.instruction is None:
                continue
            instruction, count = memory.instruction, len(memory.records)
            start = self._next_word
            memory.records = [self._words(instruction) for _ in range(count)]
            for words in memory.records:
                check_numbers(instruction, words, 1)
            if id(memory) in self._offsets:
                continue  # a row writes this record when the program runs
            self._require(
                memory.size == _WORD * len(instruction.names) * count, "a record of other size"
            )
            raw = np.array(self._values[start : self._next_word], np.int64)
            memory.array = raw
            memory.address = raw.__array_interface__["data"][0]
        for memory in self._memories:  # now all addresses are known
            if memory.instruction is not None and memory.array is not None:
                self._write_addresses(memory)

    def _write_addresses(self, memory: Memory) -> None:
        words = (word for record in memory.records for word in record.values())
        for position, word in enumerate(words):
            if isinstance(word, Address):
                self._require(word.memory.is_constant, "a record that points to other memory")
                memory.array[position] = word.address


def _instruction(line: str) -> Instruction:
    """Return the kernel that a line ``family kernel`` names, with the names of its operands."""
    family, _, kernel = line.partition(" ")
    if family in FAMILIES:
        module = import_module(f"delegraph_numba_cpu.instructions.{family}")
        for found in vars(module).values():
            if isinstance(found, Instruction) and (found.family, found.kernel) == (family, kernel):
                return found
    raise file.UnfitFile(f"there is no kernel {line[:100]!r}")
