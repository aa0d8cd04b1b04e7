"""The worker threads of this process: one pool for every program."""

from __future__ import annotations

import os
import threading

import numpy as np

from delegraph.memory.arena import aligned_buffer
from delegraph_numba_cpu.blocks import executor as layout
from delegraph_numba_cpu.library import Library
from delegraph_numba_cpu.program import Program

SPIN = 4000
"""Looks for work before a worker sleeps, some tens of microseconds."""


class Pool:
    """Runs programs, with up to ``workers`` threads, the caller's among them.

    Programs of several interpreters take turns: whoever finds the pool taken runs alone, so there
    are never more busy threads than callers and workers.
    """

    def __init__(self) -> None:
        self._start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start)  # threads do not survive a fork

    def _start(self) -> None:
        self._turn = threading.Lock()
        self._control = aligned_buffer(8 * layout.CONTROL_WORDS).view(np.int64)
        self._control[:] = 0
        self._threads: list[threading.Thread] = []
        self._recent: list[Program] = []  # whose tables a delayed worker may still look at

    def run(self, program: Program, library: Library, workers: int) -> None:
        """Run a bound program; returns when it is done."""
        if min(workers, program.tiles) > 1 and self._turn.acquire(blocking=False):
            try:
                self._run_with_workers(program, library, workers)
            finally:
                self._turn.release()
        else:
            library.run(program.table, 0, 0)

    def _run_with_workers(self, program: Program, library: Library, workers: int) -> None:
        self._hire(library, workers - 1)
        if not self._recent or self._recent[-1] is not program:
            self._recent.append(program)
        library.invoke(self._control.ctypes.data, program.table, workers)
        if len(self._recent) > 1 and not self._control[layout.ACTIVE]:
            del self._recent[:-1]

    def _hire(self, library: Library, count: int) -> None:
        """Let there be at least *count* worker threads."""
        while len(self._threads) < count:
            number = len(self._threads) + 1
            thread = threading.Thread(
                target=library.work,
                args=(self._control.ctypes.data, number, SPIN),
                name=f"delegraph-numba-{number}",
                daemon=True,
            )
            thread.start()
            self._threads.append(thread)


POOL = Pool()
