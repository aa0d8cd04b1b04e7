"""A program: a table of rows, which are kernel calls, with their memory addresses.

Operators write a program through :class:`ProgramBuilder`, when shapes are known. Memory inside the
program is planned once; the tensors at its border are where the host has put them, and addresses
follow when the host moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import DelegateContext, Tensor
from delegraph.errors import DelegateError
from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.instructions import Instruction, float_word
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.instructions.memory import (
    SLACK,
    Address,
    Memory,
    Row,
    as_addresses,
    as_numbers,
)
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.guarded_memory import GuardedMemory, is_guarded
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate
from delegraph_numba_cpu.program.shared_constants import SharedConstants
from delegraph_numba_cpu.program.working_memory import WorkingMemory, planned


class ProgramBuilder:
    """Collects rows and memory for a program.

    Attributes:
        context: the host's view of the subgraph.
        level: the instructions that kernels use.
        workers: how many threads will run the program; scratch memory is needed for each.
        exact: whether integer results must be those of the official kernels, bit for bit.
        nodes: indices of the nodes that are being lowered, for those who look at a program.
    """

    def __init__(
        self,
        context: DelegateContext,
        library: Library,
        workers: int,
        exact: bool,
        packed: dict[object, Memory],
        working_memory: WorkingMemory | None = None,
    ) -> None:
        self.context = context
        self.kernel_library = library
        self.level = library.level
        self.workers = workers
        self.exact = exact
        self.nodes: tuple[int, ...] = ()
        self._rows: list[Row] = []
        self._tensors: dict[int, Memory] = {}
        self._packed = packed
        self._working_memory = working_memory or WorkingMemory()
        self._shared = SharedConstants(self._working_memory.limit)

    def tensor(self, index: int) -> Memory:
        """Return the memory of a tensor, inside the partition or at its border."""
        found = self._tensors.get(index)
        if found is None:
            tensor = self.context.tensors[index]
            keep = self._shared.memory_of
            found = keep(tensor, self.constant) if tensor.is_constant else Memory(tensor.bytes)
            found.name = _name(tensor)
            self._tensors[index] = found
        return found

    def border(self, index: int) -> None:
        """Declare that the host owns the memory of a tensor, and may move it."""
        tensor = self.context.tensors[index]
        if not tensor.is_constant:
            self._tensors[index] = Memory(tensor.bytes, tensor=tensor, name=_name(tensor))

    def alias(self, index: int, of: int) -> bool:
        """Give tensor *index* the memory of tensor *of*, or the reverse; return success.

        Returns:
            False when that cannot be, or when *index* is in use already.
        """
        known, other = self._tensors.get(index), self.tensor(of)
        if self.context.tensors[index].bytes != other.size:
            return False
        if known is not None:
            is_free = known.tensor is self.context.tensors[index] and known.last < 0
            if not is_free or other.tensor is not None or other.address:
                return False
            other.tensor, other.name = known.tensor, known.name
        self._tensors[index] = other
        return True

    def scratch(self, size: int) -> Memory:
        """Return scratch memory, 64-byte aligned, with undefined contents.

        Raises:
            OperatorError: the working memory may not be as large.
        """
        self._working_memory.require(size)
        return Memory(size)

    def constant(self, array: NDArray[Any]) -> Memory:
        """Return memory with the values of *array*, copied if its address does not suit vectors."""
        array = np.ascontiguousarray(array)
        if is_guarded():
            return _guarded(array)
        if array.ctypes.data % 64 or array.base is not None:
            copy = aligned_buffer(array.nbytes + SLACK)[: array.nbytes]
            copy[:] = array.reshape(-1).view(np.uint8)
            array = copy
        return Memory(array.nbytes, array.ctypes.data, array=array)

    def packed(self, key: object, pack: Callable[[], NDArray[Any]]) -> Memory:
        """Return constants in the form that kernels read, packed once per partition.

        Args:
            key: what they are: the tensor's ``constant_key`` and all that the form depends on.
            pack: makes them.
        """
        found = self._packed.get(key)
        if found is None:
            found = self._packed[key] = self._shared.memory(pack(), self.constant)
        found.last = -1  # of an earlier program
        return found

    def record(self, key: object, block: Instruction, **words: Any) -> Memory:
        """Return a record of constants for kernels, made once a partition.

        Args:
            key: as of :meth:`packed`.
            block: its words.
            words: a value for each word: an int, a float, or constants in a :class:`Memory`.
        """
        return self.records(key, block, [words])

    def records(
        self, key: object, block: Instruction, records: Sequence[Mapping[str, Any]]
    ) -> Memory:
        """Return the memory of several consecutive records; see :meth:`record` for arguments."""
        given = [as_addresses(words) for words in records]
        numbers = (block.pack(**as_numbers(words)) for words in given)
        found = self.packed(key, lambda: np.concatenate(list(numbers)))
        found.words = given[0]
        return found

    def emit(
        self, block: Instruction, tiles: int = 1, replaceable: tuple[str, ...] = (), /, **words: Any
    ) -> None:
        """Add a row, which is a kernel call, to the program.

        Args:
            block: the kernel and its words.
            tiles: into how many parts it is split; the kernel gets their numbers, in any order,
                and if it has a word ``tiles``, how many there are.
            replaceable: see :class:`Row`.
            words: a value for each word: an int, a float, a :class:`Memory` or an :class:`Address`.

        Raises:
            DelegateError: the kernel would touch what is not in the memory it is given.
        """
        number = len(self._rows)
        if "tiles" in block.names:
            words["tiles"] = tiles
        row = Row(block, tiles, as_addresses(words), self.nodes, replaceable)
        self._check(row)
        for memory in row.memories:
            memory.first = number if memory.last < 0 else min(memory.first, number)
            memory.last = max(memory.last, number)
        self._rows.append(row)

    def _check(self, row: Row) -> None:
        try:
            check_row(row, self.workers, self.level.vector_bytes)
        except Overrun as error:
            raise DelegateError(
                f"{described(self.context, row.nodes)}: {error}", phase="prepare"
            ) from error

    def finish(self, kind: type[Program] | None = None) -> Program:
        """Return the program, of a kind; the builder is of no use afterwards."""
        families = (row.block.family for row in self._rows)
        self.kernel_library.load(families, self.context.cache)
        make = Program if kind is None else kind
        return make(self._rows, self.kernel_library, self.workers, self._working_memory)


class Program:
    """Rows ready to run, once :meth:`bind` has been called.

    Attributes:
        table: address of the table of rows.
        header: the words that the table begins with; see ``instructions.executor``.
        rows: what the rows call, in order.
        workers: number of threads for a run, including the caller's.
        run_time: estimate of the run time, learned from runs.
        tiles: largest number of parts that a row is split into.
        scratch_bytes: working memory that it needs.
    """

    def __init__(
        self,
        rows: list[Row],
        library: Library,
        workers: int,
        working_memory: WorkingMemory | None = None,
    ) -> None:
        memories = {id(m): m for row in rows for m in row.memories}
        self._keep = [m.array for m in memories.values() if m.array is not None]
        self._table = _words(layout.HEADER_WORDS + layout.ROW_WORDS * len(rows))
        self.table = self._table.ctypes.data
        for memory in memories.values():
            if memory.is_report:
                memory.address = self.table
        self.scratch_bytes, self._offsets = planned(rows)
        self.rows = tuple(rows)
        self.workers = workers
        self.run_time = RunTimeEstimate()
        self.tiles = max((row.tiles for row in rows), default=1)
        starts = np.cumsum([0, *(len(row.block.names) for row in rows)])
        self._words = _words(int(starts[-1]))
        self._table[layout.ROWS] = len(rows)
        self._table[layout.CANCELLATION] = self.table + 8 * layout.NEVER
        self.header = self._table[: layout.HEADER_WORDS].data
        self._starts = starts
        self._moving: dict[int, tuple[Memory, list[tuple[int, int]]]] = {}
        self._working: list[tuple[int, int]] = []  # word, offset in working memory
        table = self._table[layout.HEADER_WORDS :].reshape(-1, layout.ROW_WORDS)
        for i, row in enumerate(rows):
            start = int(starts[i])
            table[i] = (
                library.address(row.block.family, row.block.kernel),
                row.tiles,
                self._words.ctypes.data + 8 * start,
            )
            self._fill(row, start)
        self._working_memory = working_memory or WorkingMemory()
        self._working_memory.reserve(self.scratch_bytes)
        self._buffer: NDArray[np.uint8] | None = None  # of working memory, as far as words know
        self._bound: list[tuple[Tensor, Any]] | None = None  # and those of tensors; once bound

    def heed(self, word: NDArray[np.int32]) -> None:
        """From now on, stop a run at the next row once *word*, of shape [1], is not 0."""
        self._keep.append(word)
        self._table[layout.CANCELLATION] = word.ctypes.data

    def block(self, number: int) -> NDArray[np.int64]:
        """Return the words of a row, including changes by its kernel."""
        return self._words[self._starts[number] : self._starts[number + 1]]

    def table_of(self, first: int, end: int) -> NDArray[np.int64]:
        """Return a table of the rows from *first* to before *end*, on the same memory."""
        table = _words(layout.HEADER_WORDS + layout.ROW_WORDS * (end - first))
        table[: layout.HEADER_WORDS] = self._table[: layout.HEADER_WORDS]
        table[layout.ROWS] = end - first
        rows = self._table[layout.HEADER_WORDS :].reshape(-1, layout.ROW_WORDS)
        table[layout.HEADER_WORDS :] = rows[first:end].reshape(-1)
        return table

    def _fill(self, row: Row, start: int) -> None:
        """Write the words of a row, and record the words that depend on a host tensor's address."""
        concrete = {}
        for position, name in enumerate(row.block.names):
            value = row.words[name]
            if isinstance(value, Address):
                memory = value.memory
                if id(memory) in self._offsets:
                    offset = self._offsets[id(memory)] + value.offset
                    self._working.append((start + position, offset))
                elif memory.tensor is not None:
                    entry = self._moving.setdefault(id(memory), (memory, []))
                    entry[1].append((start + position, value.offset))
                value = memory.address + value.offset
            concrete[name] = value
        block = row.block.pack(**concrete)
        self._words[start : start + len(block)] = block

    def run(self, pool: Pool, library: Library) -> bool:
        """Run the rows; return whether all have run, without a cancellation or a failure.

        Raises:
            DelegateError: as of :meth:`bind`.
        """
        self.bind()
        pool.run(self, library)
        return not self.header[layout.IS_CANCELLED]

    def brief_run(self, library: Library) -> Callable[[], bool | None]:
        """Return a function that runs the program by one native call, or returns None.

        The function does nothing and returns None if memory has moved, or if the rows take long or
        an unknown time.
        """
        table, run_time, header = c_void_p(self.table), self.run_time, self.header
        run_briefly = library.run_briefly

        def run() -> bool | None:
            if not (run_time.is_brief and self._is_bound()):
                return None
            run_briefly(table)
            return not header[layout.IS_CANCELLED]

        return run

    def bind(self) -> None:
        """Update the addresses in the rows to the current memory.

        What is noted as bound is noted last: an interrupt may come in between.

        Raises:
            DelegateError: a tensor's memory is not what the program was made for.
        """
        if not self._is_bound():
            self._bind()

    def _is_bound(self) -> bool:
        """Whether the addresses in the rows match the current memory."""
        bound = self._bound
        if bound is None or self._working_memory.buffer is not self._buffer:
            return False
        for tensor, array in bound:  # noqa: SIM110 - quicker than a generator
            if tensor.data is not array:
                return False
        return True

    def _bind(self) -> None:
        self._bound = None
        buffer = self._working_memory.buffer
        if buffer is not self._buffer:
            self._buffer = None
            address = buffer.__array_interface__["data"][0]
            for position, offset in self._working:
                self._words[position] = address + offset
            self._buffer = buffer
        for memory, places in self._moving.values():
            assert memory.tensor is not None
            array = memory.tensor.data
            if array is not memory.array:
                check_handed_over(memory, array)
                memory.array = None
                memory.address = array.__array_interface__["data"][0]
                for position, offset in places:
                    self._words[position] = memory.address + offset
                memory.array = array
        self._bound = [(m.tensor, m.array) for m, _ in self._moving.values() if m.tensor]


def described(context: DelegateContext, nodes: Sequence[int]) -> str:
    """Return the names and indices of nodes, as text for messages."""
    names = (context.get_node_and_registration(index)[1].name for index in nodes)
    found = [f"node {index} ({name})" for index, name in zip(nodes, names, strict=True)]
    return ", ".join(found) or "a row of no node"


def _guarded(array: NDArray[Any]) -> Memory:
    """Return a read-only copy of a constant between guard bytes."""
    piece = GuardedMemory(array.nbytes)
    piece.array[:] = array.reshape(-1).view(np.uint8)
    piece.freeze()
    return Memory(array.nbytes, piece.address, array=piece.array)


def check_handed_over(memory: Memory, array: Any) -> None:
    """Check that an array of the host is contiguous and as large as the rows expect."""
    if array is None:
        raise DelegateError(f"{memory.name} has no memory", phase="eval")
    if array.nbytes < memory.size or array.dtype.hasobject or not array.flags.c_contiguous:
        raise DelegateError(
            f"{memory.name} came with {array.nbytes} bytes of {array.dtype}, "
            f"the program was made for {memory.size}: allocate tensors again",
            phase="eval",
        )


def _name(tensor: Tensor) -> str:
    return f"tensor {tensor.index} {tensor.name!r}"


def _words(count: int) -> NDArray[np.int64]:
    """Return *count* zeros at the start of a cache line."""
    words: NDArray[np.int64] = aligned_buffer(max(count, 1) * 8).view(np.int64)
    words[:] = 0
    return words


__all__ = ["Address", "Memory", "Program", "ProgramBuilder", "float_word"]
