"""A program: a table of rows, which are kernel calls, with the memory that they use.

``builder.py`` makes a program when shapes are known; the package ``kept`` reads one from a file.
Memory inside the program is planned once. The host owns the tensors at its border, and addresses
in the rows are updated when the host moves them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import DelegateError
from delegraph.lazy_dataclass import dataclass
from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.instructions.memory import Address, Memory, Row
from delegraph_numba_cpu.library.cpu import usable_processors
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate
from delegraph_numba_cpu.program.working_memory import WorkingMemory, planned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph import DelegateContext, Tensor

COPY = ("moves", "copy")
"""Family and kernel of copies, named here because kept programs do not import the module of
moves."""

GUARD_VARIABLE = "DELEGRAPH_NUMBA_GUARD"
"""Name of the environment variable that, set to 1, runs kernel calls one by one, between guards."""


def is_guarded() -> bool:
    """Whether programs run between guard bytes, as :data:`GUARD_VARIABLE` requests."""
    return os.environ.get(GUARD_VARIABLE, "") not in ("", "0")


@dataclass(frozen=True, slots=True)
class Layout:
    """Memory layout of a program, and the operands of its kernel calls, as read from a file.

    Attributes:
        scratch_bytes, offsets: see :class:`Program`.
        words: the words of all rows, row by row, int64; values of words that are addresses are
            ignored.
    """

    scratch_bytes: int
    offsets: dict[int, int]
    words: NDArray[np.int64]


class Program:
    """A program: kernel calls (rows) and their memory; :meth:`bind` makes it ready to run.

    Attributes:
        table: address of the table of rows.
        header: words at the start of the table; see ``instructions.executor``.
        rows: the kernel calls, in order.
        workers: number of threads for a run, including the caller's.
        run_time: estimate of the run time, from earlier runs.
        tiles: largest number of parts of a row.
        scratch_bytes: number of bytes of working memory.
        offsets: offset of each block of working memory in bytes, by the ``id`` of its
            :class:`Memory`.
    """

    is_guarded = False
    """Whether rows run between guards, see ``guarded_program.py``."""

    def __init__(
        self,
        rows: list[Row],
        library: Library,
        workers: int,
        working_memory: WorkingMemory | None = None,
        known: Layout | None = None,
    ) -> None:
        """Write the table of *rows*.

        Args:
            rows: the kernel calls; ``library`` has loaded their families.
            library: the compiled kernels.
            workers: number of threads for a run, including the caller's.
            working_memory: memory shared with programs that run before or after this program.
            known: the memory layout, if it is already known; None to plan it.
        """
        memories = {id(m): m for row in rows for m in row.memories}
        self._keep = [m.array for m in memories.values() if m.array is not None]
        self._table = _words(layout.HEADER_WORDS + layout.ROW_WORDS * len(rows))
        self.table = self._table.ctypes.data
        for memory in memories.values():
            if memory.is_report:
                memory.address = self.table
        if known is None:
            self.scratch_bytes, self.offsets = planned(rows)
        else:
            self.scratch_bytes, self.offsets = known.scratch_bytes, known.offsets
        self.rows = tuple(rows)
        self.workers = workers
        self.tiles = max((row.tiles for row in rows), default=1)
        self.run_time = RunTimeEstimate(min(workers, self.tiles, usable_processors()) > 1)
        starts = np.cumsum([0, *(len(row.instruction.names) for row in rows)])
        self._words = _words(int(starts[-1]))
        if known is not None:
            self._words[: len(known.words)] = known.words
        self._table[layout.ROWS] = len(rows)
        self._table[layout.CANCELLATION] = self.table + 8 * layout.NEVER
        self.header = self._table[: layout.HEADER_WORDS].data
        self._starts = starts
        self._moving: dict[int, tuple[Memory, list[tuple[int, int]]]] = {}
        # Pairs of a word's position and the offset in working memory to which it points.
        self._working: list[tuple[int, int]] = []
        self._copies = [
            (number, row.words["source"].memory, row.words["target"].memory)
            for number, row in enumerate(rows)
            if _copies_host_tensor(row)
        ]
        table = self._table[layout.HEADER_WORDS :].reshape(-1, layout.ROW_WORDS)
        for i, row in enumerate(rows):
            start = int(starts[i])
            table[i] = (
                library.address(row.instruction.family, row.instruction.kernel),
                row.tiles,
                self._words.ctypes.data + 8 * start,
            )
            if known is None:
                self._words[start : start + len(row.instruction.names)] = packed(
                    row.instruction, row.words
                )
            self._place(row, start)
        self._working_memory = working_memory or WorkingMemory()
        self._working_memory.reserve(self.scratch_bytes)
        # The working memory to which the words point at present.
        self._buffer: NDArray[np.uint8] | None = None
        # Tensors, and the working memory if there is any, with the arrays to which the words point
        # at present; None before bind().
        self._bound: list[tuple[Tensor | WorkingMemory, Any]] | None = None
        self._word: NDArray[np.int32] | None = None  # the word by which a run is stopped

    @property
    def can_fail(self) -> bool:
        """Whether values of tensors can make a run fail; see ``failures.py``."""
        return any("report" in row.words for row in self.rows)

    def may_share(self, given: int, made: int) -> bool:
        """Whether an output of the partition may share the memory of one of its inputs.

        One kernel call must copy the whole input to the output. No other call may use the input,
        and no earlier call the output. The copy is then left out.

        Args:
            given: index of the input tensor.
            made: index of the output tensor.
        """
        for number, source, target in self._copies:
            if (_index(source), _index(target)) == (given, made):
                users = [n for n, row in enumerate(self.rows) if given in _border(row)]
                earlier = any(made in _border(row) for row in self.rows[:number])
                return users == [number] and not earlier
        return False

    def heed(self, word: NDArray[np.int32]) -> None:
        """Make *word* the cancellation word: runs stop at the next tile once it is not 0.

        The word has the shape ``[1]``.
        """
        self._word = word
        self._table[layout.CANCELLATION] = word.ctypes.data

    def release(self) -> None:
        """Forget the host's arrays whose addresses are in the program, so that they can be freed.

        It is called when another program replaces this program.
        """
        self._bound = None
        for memory, _ in self._moving.values():
            memory.array = None

    def record(self, number: int) -> NDArray[np.int64]:
        """Return the operands of kernel call *number*, which its kernel may have altered."""
        return self._words[self._starts[number] : self._starts[number + 1]]

    def table_of(self, first: int, end: int) -> NDArray[np.int64]:
        """Return a table of kernel calls *first* to *end* - 1, which uses the program's memory."""
        table = _words(layout.HEADER_WORDS + layout.ROW_WORDS * (end - first))
        table[: layout.HEADER_WORDS] = self._table[: layout.HEADER_WORDS]
        table[layout.ROWS] = end - first
        rows = self._table[layout.HEADER_WORDS :].reshape(-1, layout.ROW_WORDS)
        table[layout.HEADER_WORDS :] = rows[first:end].reshape(-1)
        return table

    def _place(self, row: Row, start: int) -> None:
        """Write the addresses among a kernel call's operands, and note those that may change.

        *start* is the position of its first operand among those of all calls.
        """
        for position, name in enumerate(row.instruction.names, start):
            word = row.words[name]
            if not isinstance(word, Address):
                continue
            memory = word.memory
            if id(memory) in self.offsets:
                self._working.append((position, self.offsets[id(memory)] + word.offset))
            elif memory.tensor is not None:
                entry = self._moving.setdefault(id(memory), (memory, []))
                entry[1].append((position, word.offset))
            self._words[position] = word.address

    def run(self, pool: Pool, library: Library) -> bool:
        """Run all kernel calls; return False if the run was cancelled or failed, otherwise True.

        Args:
            pool: worker threads.
            library: the compiled kernels.

        Raises:
            DelegateError: a tensor's memory has another size than the program expects.
        """
        self.bind()
        pool.run(self, library)
        return not self.header[layout.IS_CANCELLED]

    def known_run(
        self,
        pool: Pool,
        library: Library,
        context: Any,
        otherwise: Callable[[], object],
        failed: Callable[[], object],
    ) -> Callable[[], None]:
        """Return a function without arguments that runs the program with the least overhead.

        The function runs the program itself only if no memory has moved since the last run, and the
        run time is known.

        Args:
            pool: the workers.
            library: the compiled kernels.
            context: the subgraph; only its attribute ``is_profiling`` is read.
            otherwise: function that is called instead if the node is profiled, if memory has
                moved, or if the run time is unknown.
            failed: function that is called if not all rows have run.
        """
        table, run_time, header = c_void_p(self.table), self.run_time, self.header
        run_briefly, is_cancelled = library.run_briefly, layout.IS_CANCELLED

        # The loop repeats that of _is_bound(), a call of which takes as long as the loop.
        def run() -> None:
            bound = self._bound
            if bound is None or not run_time.is_known or context.is_profiling:
                otherwise()
                return
            for owner, array in bound:
                if owner.data is not array:
                    otherwise()
                    return
            if run_time.is_brief:
                if run_time.runs_until_trial:
                    run_time.count_run()
                run_briefly(table)
            else:
                pool.run(self, library)
            if header[is_cancelled]:
                failed()

        return run

    def bind(self) -> None:
        """Update the addresses in the kernel calls to the present places of tensors and memory.

        The record of bound addresses is written last, because an interrupt may come in between.

        Raises:
            DelegateError: a tensor's memory has another size than the program expects.
        """
        if not self._is_bound():
            self._bind()

    def _is_bound(self) -> bool:
        """Whether the addresses in the kernel calls match the present memory."""
        bound = self._bound
        if bound is None:
            return False
        for owner, array in bound:  # noqa: SIM110 - quicker than a generator
            if owner.data is not array:
                return False
        return True

    def _bind(self) -> None:
        self._bound = None
        buffer = self._working_memory.data
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
        for number, source, target in self._copies:
            size = 0 if source.address == target.address else source.size
            self._words[self._starts[number] + self.rows[number].instruction.slots("bytes")[0]] = (
                size
            )
        bound = [(m.tensor, m.array) for m, _ in self._moving.values() if m.tensor]
        self._bound = [*bound, (self._working_memory, buffer)] if self._working else [*bound]


def _copies_host_tensor(row: Row) -> bool:
    """Whether a kernel call copies a whole host tensor to another host tensor."""
    if (row.instruction.family, row.instruction.kernel) != COPY:
        return False
    source, target = row.words["source"], row.words["target"]
    if not (isinstance(source, Address) and isinstance(target, Address)):
        return False  # the row is from a damaged file
    size = source.memory.size
    is_whole = source.offset == target.offset == 0 and size == target.memory.size
    has_tensors = _index(source.memory) >= 0 and _index(target.memory) >= 0
    return is_whole and has_tensors and row.words["bytes"] == size


def _index(memory: Memory) -> int:
    """Return the index of the host tensor at *memory*; -1 for the program's own memory."""
    return -1 if memory.tensor is None else memory.tensor.index


def _border(row: Row) -> set[int]:
    """Return the indices of the subgraph's tensors whose memory a kernel call reads or writes.

    -1 stands for memory of the program's own.
    """
    return {_index(memory) for memory in row.memories}


def described(context: DelegateContext, nodes: Sequence[int]) -> str:
    """Return the indices and operators of nodes as text for messages: ``node 3 (ADD), ...``.

    Args:
        context: the subgraph.
        nodes: indices of the nodes.
    """
    names = (context.get_node_and_registration(index)[1].name for index in nodes)
    found = [f"node {index} ({name})" for index, name in zip(nodes, names, strict=True)]
    return ", ".join(found) or "a row of no node"


def packed(instruction: Instruction, words: Mapping[str, Any]) -> NDArray[np.int64]:
    """Return the operands *words* of a kernel call as int64 words, with 0 for addresses.

    *instruction* is the kernel, with the names of its operands in order.
    """
    numbers = {n: 0 if isinstance(word, Address) else word for n, word in words.items()}
    return instruction.pack(**numbers)


def check_handed_over(memory: Memory, array: Any) -> None:
    """Check that the host's *array* for a tensor is contiguous and at least as large as *memory*.

    Raises:
        DelegateError: there is no array, it is too small, or its bytes are not contiguous.
    """
    if array is None:
        raise DelegateError(f"{memory.name} has no memory", phase="eval")
    if array.nbytes < memory.size or array.dtype.hasobject or not array.flags.c_contiguous:
        raise DelegateError(
            f"{memory.name} came with {array.nbytes} bytes of {array.dtype}, "
            f"the program was made for {memory.size}: allocate tensors again",
            phase="eval",
        )


def name_of(tensor: Tensor) -> str:
    """Return a tensor's index and name as text for messages."""
    return f"tensor {tensor.index} {tensor.name!r}"


def _words(count: int) -> NDArray[np.int64]:
    """Return *count* zeros at the start of a cache line."""
    words: NDArray[np.int64] = aligned_buffer(max(count, 1) * 8).view(np.int64)
    words[:] = 0
    return words
