"""A program that runs row by row, with guard bytes around its memory; see ``README.md``.

The program is slow, and reports which row has written before or after which tensor.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from delegraph import Tensor
from delegraph.errors import DelegateError
from delegraph_numba_cpu.instructions.memory import SLACK, Memory, Row
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.guarded_memory import MARK, GuardedMemory
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program, check_handed_over
from delegraph_numba_cpu.program.working_memory import WorkingMemory

logger = logging.getLogger(__name__)


class GuardedProgram(Program):
    """Program that runs one kernel call at a time, in separate memory between guard bytes.

    The memory is checked after each call. Values of the host are copied to this memory before a
    run, and back afterwards.
    """

    is_guarded = True

    def __init__(
        self,
        rows: list[Row],
        library: Library,
        workers: int,
        working_memory: WorkingMemory | None = None,
    ) -> None:
        self._border: list[tuple[Memory, Tensor]] = []
        self._pieces: dict[int, GuardedMemory] = {}
        for row in rows:
            for memory in row.memories:
                self._guard(memory)
        super().__init__(rows, library, workers, working_memory)
        self._single = [Program([row], library, workers) for row in rows]
        for program in self._single:
            program.run_time.observe(1.0)  # a known time above the limit: it takes workers

    def _guard(self, memory: Memory) -> None:
        """Allocate a guarded block and make it the permanent place of *memory*."""
        if memory.is_constant or memory.is_report:
            return
        piece = GuardedMemory(memory.size, 0 if memory.tensor is not None else SLACK)
        if memory.tensor is not None:
            self._border.append((memory, memory.tensor))
        self._pieces[id(memory)] = piece
        memory.tensor, memory.array, memory.address = None, piece.array, piece.address

    def heed(self, word: NDArray[np.int32]) -> None:
        """Make *word* the cancellation word: runs stop at the next tile once it is not 0.

        The word has the shape ``[1]``.
        """
        super().heed(word)
        for program in self._single:
            program.heed(word)

    def record(self, number: int) -> NDArray[np.int64]:
        """Return the operands of kernel call *number*, which its kernel may have altered."""
        return self._single[number].record(0)

    def run(self, pool: Pool, library: Library) -> bool:
        """Run the program one kernel call at a time; return whether all calls have run.

        Args:
            pool: worker threads; they run one call at a time, and memory is checked after each.
            library: the compiled kernels.

        Raises:
            DelegateError: a call has written outside of its memory, or a tensor's memory has
                another size than the program expects.
        """
        self._copy_in()
        for row, program in zip(self.rows, self._single, strict=True):
            logger.debug("%s for nodes %s", row.instruction.kernel, row.nodes)
            if not program.run(pool, library):
                return False
            self._check(row)
        for memory, tensor in self._border:
            given = _bytes_of(tensor)
            if not np.array_equal(given[: memory.size], memory.array):
                given[: memory.size] = memory.array
        return True

    def _copy_in(self) -> None:
        """Copy the host's values into guarded memory, and fill all other memory with marks."""
        for piece in self._pieces.values():
            piece.array[:] = MARK
        for memory, tensor in self._border:
            check_handed_over(memory, tensor.data)
            memory.array[:] = _bytes_of(tensor)[: memory.size]

    def _check(self, row: Row) -> None:
        for memory in row.memories:
            piece = self._pieces.get(id(memory))
            where = piece.overrun() if piece is not None else ""
            if piece is not None and where:
                piece.mend()
                raise DelegateError(
                    f"nodes {list(row.nodes)}: {row.instruction.kernel!r} has written {where} "
                    f"{memory.name}, which has {memory.size} bytes",
                    phase="eval",
                )


def _bytes_of(tensor: Tensor) -> NDArray[np.uint8]:
    flat: NDArray[np.uint8] = tensor.data.reshape(-1).view(np.uint8)
    return flat
