"""Builder of a program: the lowering of operators emits rows into it, once shapes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph import DelegateContext, Tensor
from delegraph.errors import DelegateError
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.memory import (
    Address,
    Memory,
    Row,
    as_addresses,
    as_numbers,
    constant,
    in_place,
)
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.guarded_memory import GuardedMemory
from delegraph_numba_cpu.program.program import Program, described, is_guarded, name_of
from delegraph_numba_cpu.program.shared_constants import SharedConstants
from delegraph_numba_cpu.program.working_memory import WorkingMemory

TILE_NANOSECONDS = 600
"""Least duration of a tile: a few times the time that threads need to begin and end a row
together."""

SPARE_TILE_NANOSECONDS = 40_000
"""Least time of a tile if a worker has several tiles.

Each tile reads weights and some rows of images again.
"""

TILES_A_WORKER = 2
"""Number of tiles for each worker in a long row, so that a slow thread can run fewer of them."""


LARGEST_SHARED = 512 << 10
"""Largest scratch memory of a worker that is at one place in all rows; more fits into no cache."""

PAGE = 4096


def aligned(size: int) -> int:
    """Return *size*, in bytes, rounded up to whole cache lines."""
    return (size + 63) & ~63


class WorkerScratch(NamedTuple):
    """Request for scratch memory: given to :meth:`ProgramBuilder.emit` as the value of an operand.

    ``emit`` replaces the operand, such as ``scratch``, by the address of the memory. It adds an
    operand whose name has ``_bytes`` after it: the distance from one thread's memory to the next.

    Attributes:
        size: number of bytes for each thread.
    """

    size: int


class ProgramBuilder:
    """Collects the kernel calls of a program, and the memory that they use.

    Attributes:
        context: the host's context for the subgraph.
        level: instruction set of the processor that the kernels use, such as ``avx2``.
        workers: number of threads that will run the program; each needs scratch memory.
        exact: whether integer results must equal those of LiteRT's kernels.
        nodes: indices of the nodes that are being lowered; kernel calls carry them for reports.
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
        # Tensors from this index on belong to inlined subgraphs.
        self._host_tensors = len(context.tensors)
        self.kernel_library = library
        self.level = library.level
        self.workers = workers
        self.exact = exact
        self.nodes: tuple[int, ...] = ()
        self._rows: list[Row] = []
        self._of_workers: dict[str, Memory] = {}  # scratch memory, by the name of its word
        self._tensors: dict[int, Memory] = {}
        self._tables: dict[int, Memory] = {}
        self._packed = packed
        self._working_memory = working_memory or WorkingMemory()
        self._shared = SharedConstants(self._working_memory.limit)

    def tensor(self, index: int) -> Memory:
        """Return the memory of the tensor whose index is *index*."""
        found = self._tensors.get(index)
        if found is None:
            tensor = self.context.tensors[index]
            if tensor.is_constant:
                found = self._shared.memory_of(tensor, self.constant)
                found.model_tensor = index if index < self._host_tensors else None
            else:
                found = Memory(tensor.bytes)
            found.name = name_of(tensor)
            self._tensors[index] = found
        return found

    def table(self, tensor: Tensor) -> Memory:
        """Return the memory of a tensor from which kernels read single elements or rows.

        This tensor may be at any address, so a large constant stays in the model's memory.
        """
        is_of_host = tensor.is_constant and tensor.index < self._host_tensors
        if not is_of_host or is_guarded() or not tensor.data.flags.c_contiguous:
            return self.tensor(tensor.index)
        if tensor.index not in self._tables:
            found = self._tables[tensor.index] = in_place(tensor)
            found.name = name_of(tensor)
        return self._tables[tensor.index]

    def border(self, index: int) -> None:
        """Declare that the host owns the memory of a tensor, and may move it between runs.

        Args:
            index: index of the tensor, an input or output of the partition.
        """
        tensor = self.context.tensors[index]
        if not tensor.is_constant:
            self._tensors[index] = Memory(tensor.bytes, tensor=tensor, name=name_of(tensor))

    def alias(self, index: int, of: int) -> bool:
        """Make two tensors share one memory, if possible.

        Args:
            index: index of the tensor that gets the memory.
            of: index of the tensor whose memory is shared.

        Returns:
            Whether they share memory. They do not if their sizes differ, or if *index* already has
            memory that is in use. Of two tensors at the border, each keeps its memory.
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
        """Return *size* bytes of scratch memory, 64-byte aligned, with undefined contents.

        Raises:
            OperatorError: the working memory would exceed its limit.
        """
        self._working_memory.require(size)
        return Memory(size)

    def constant(self, array: NDArray[Any], *, is_own: bool = False) -> Memory:
        """Return memory with the values of *array*, which are copied if necessary.

        They are copied if their address is not aligned for vectors. They are also copied if *array*
        is a view of another array, unless *is_own*.

        Args:
            array: the values.
            is_own: whether nothing else uses the memory of *array*.
        """
        array = np.ascontiguousarray(array)
        return _guarded(array) if is_guarded() else constant(array, is_own=is_own)

    def packed(
        self, key: object, pack: Callable[[], NDArray[Any]], *, is_own: bool = False
    ) -> Memory:
        """Return the memory of constants in the order that kernels read; computed only once.

        Args:
            key: identifies the constants: ``constant_key`` of the tensor, and all else that their
                order and values depend on.
            pack: function that computes the constants; called for a new *key* only.
            is_own: whether nothing else uses the memory of the constants; aligned memory is then
                not copied.
        """
        found = self._packed.get(key)
        if found is None:
            keep = partial(self.constant, is_own=is_own)
            found = self._packed[key] = self._shared.memory(pack(), keep)
        found.last = -1  # of the program before, which had other rows
        return found

    def record(self, instruction: Instruction, **words: Any) -> Memory:
        """Return the memory of a record, a constant table of words that a kernel reads.

        Args:
            instruction: description of the record, with the names of its words.
            words: a value for each word, by name: an int, a float, or constants in a
                :class:`Memory`.
        """
        return self.records(instruction, [words])

    def records(self, instruction: Instruction, records: Sequence[Mapping[str, Any]]) -> Memory:
        """Return the memory of several consecutive records, constant tables that a kernel reads.

        Equal records of a partition are stored once.

        Args:
            instruction: description of each record, with the names of its words.
            records: for each record, a value for each word, by name.
        """
        given = tuple(as_addresses(words) for words in records)
        values = np.concatenate([instruction.pack(**as_numbers(words)) for words in given])
        found = self.packed((instruction, values.tobytes()), lambda: values)
        found.instruction, found.records = instruction, given
        return found

    def tiles(self, nanoseconds: float, most: int) -> int:
        """Return the number of tiles (parts for threads) of a kernel call: 1 to *most*.

        It is a multiple of the number of workers if possible, so that all of them finish at once.

        Args:
            nanoseconds: approximate time of the kernel call in one thread.
            most: largest number of tiles.
        """
        if self.workers == 1:
            return 1
        shares = min(int(nanoseconds // TILE_NANOSECONDS), self.workers, most)
        spare = min(int(nanoseconds // SPARE_TILE_NANOSECONDS), TILES_A_WORKER * self.workers, most)
        return max(shares, spare - spare % self.workers, 1)

    def row_tiles(self, wanted: int, most: int) -> int:
        """Return the number of parts into which the rows of an image are divided: 1 to *most*.

        All workers get the same number of parts if possible, or all parts the same number of
        workers. A worker then reads the part of an image that it has written.

        Args:
            wanted: number of tiles of the whole image; the result divides it.
            most: largest number of parts.
        """
        fits = (n for n in range(1, most + 1) if wanted % n == 0)
        equal = (n for n in fits if not (n % self.workers and self.workers % n and wanted - n))
        return max(equal, default=1)

    def emit(
        self,
        instruction: Instruction,
        tiles: int = 1,
        replaceable: tuple[str, ...] = (),
        /,
        **words: Any,
    ) -> None:
        """Add a kernel call to the program, as its next row.

        Args:
            instruction: the kernel that is called, with the names of its operands (words).
            tiles: number of parts. The kernel is called with the number of each part, in any order.
                It reads the number of parts from its operand ``tiles``, if it has one.
            replaceable: names of the operands whose memory the operand ``target`` may take over,
                since the kernel reads each element before it writes to that place.
            words: a value for each operand, by name: an int, a float, a :class:`Memory`, an
                :class:`Address` or a :class:`WorkerScratch`.

        Raises:
            DelegateError: the kernel would access bytes outside of the memory in its operands.
        """
        number = len(self._rows)
        if "tiles" in instruction.names:
            words["tiles"] = tiles
        for name in [name for name, word in words.items() if isinstance(word, WorkerScratch)]:
            words[f"{name}_bytes"] = size = words[name].size
            words[name] = self._worker_scratch(name, size)
        row = Row(instruction, tiles, as_addresses(words), self.nodes, replaceable)
        self._check(row)
        for memory in row.memories:
            memory.first = number if memory.last < 0 else min(memory.first, number)
            memory.last = max(memory.last, number)
        self._rows.append(row)

    def _worker_scratch(self, name: str, size: int) -> Memory:
        """Return the memory for a scratch operand of a kernel call, with *size* bytes per worker.

        If there are several workers, each has the same place in all calls. Otherwise a worker would
        write where another worker wrote in the call before, and fetch each line from that worker's
        cache.
        """
        if self.workers == 1 or size > LARGEST_SHARED or is_guarded():
            return self.scratch(size * self.workers)
        found = self._of_workers.setdefault(name, Memory(0))
        found.size = max(found.size, size * self.workers)
        self._working_memory.require(found.size)
        return found

    def _part_workers(self) -> None:
        """Give each worker's part of the shared scratch memory separate memory pages."""
        for name, memory in self._of_workers.items():
            largest = memory.size // self.workers
            apart = -(-largest // PAGE) * PAGE
            memory.size = (self.workers - 1) * apart + largest
            for row in self._rows:
                if name in row.words and row.words[name] == Address(memory):
                    row.words[f"{name}_bytes"] = apart

    def _check(self, row: Row) -> None:
        try:
            check_row(row, self.workers, self.level.vector_bytes)
        except Overrun as error:
            raise DelegateError(
                f"{described(self.context, row.nodes)}: {error}", phase="prepare"
            ) from error

    def finish(self, kind: type[Program] | None = None) -> Program:
        """Return the finished program; the builder cannot be used afterwards.

        Args:
            kind: class of the program; None for :class:`Program`.
        """
        self._part_workers()
        families = (row.instruction.family for row in self._rows)
        self.kernel_library.load(families, self.context.cache)
        make = Program if kind is None else kind
        return make(self._rows, self.kernel_library, self.workers, self._working_memory)


def _guarded(array: NDArray[Any]) -> Memory:
    """Return a read-only copy of a constant between guard bytes."""
    piece = GuardedMemory(array.nbytes)
    piece.array[:] = array.reshape(-1).view(np.uint8)
    piece.freeze()
    return Memory(array.nbytes, piece.address, array=piece.array)


__all__ = ["Address", "Memory", "ProgramBuilder", "WorkerScratch"]
