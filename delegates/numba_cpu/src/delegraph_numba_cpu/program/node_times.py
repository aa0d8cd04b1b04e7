"""Runs a program node by node to time each node, only for a profile."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from time import perf_counter_ns

from delegraph_numba_cpu.instructions.executor import HEADER_WORDS, IS_CANCELLED
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate

Record = Callable[[tuple[int, ...], int, int], object]
"""Function that gets node indices, the start by ``time.perf_counter_ns()``, and the nanoseconds."""


class TimedProgram:
    """A program that runs in several parts, one for each node or fused group, to time each part.

    The rows work on the memory of the program, so values are the same. Times include a call from
    Python to native code and back for each table.

    Args:
        program: the program, with its cancellation word already set.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._pace = RunTimeEstimate()
        self._pace.is_known = True  # the time of a part of the program says nothing about the whole
        groups = groupby(range(len(program.rows)), key=lambda i: program.rows[i].nodes)
        self._parts = [_Part(program, nodes, [*rows], self._pace) for nodes, rows in groups]

    def run(self, pool: Pool, library: Library, record: Record) -> bool:
        """Run all parts; return False if the run was cancelled or failed, otherwise True.

        Args:
            pool: worker threads that run the parts.
            library: the compiled kernels.
            record: function that gets the node indices, start and duration (in nanoseconds) of each
                part.

        Raises:
            DelegateError: a tensor's memory has another size than the program expects.
        """
        self._program.bind()
        learnt = self._program.run_time
        self._program.header[IS_CANCELLED] = 0
        self._pace.is_brief, self._pace.takes_workers = learnt.is_brief, learnt.takes_workers
        for part in self._parts:
            start = perf_counter_ns()
            pool.run(part, library)
            duration = perf_counter_ns() - start
            if part.header[IS_CANCELLED] or self._program.header[IS_CANCELLED]:
                return False
            record(part.nodes, start, duration)
        return True


class _Part:
    """Consecutive kernel calls of a program, in the form that the thread pool runs."""

    def __init__(
        self, program: Program, nodes: tuple[int, ...], rows: list[int], run_time: RunTimeEstimate
    ) -> None:
        self.nodes = nodes
        self.run_time = run_time
        self.workers = program.workers
        self.tiles = max(program.rows[i].tiles for i in rows)
        self._words = program.table_of(rows[0], rows[-1] + 1)
        self.table = self._words.ctypes.data
        self.header = self._words[:HEADER_WORDS].data
