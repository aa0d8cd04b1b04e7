"""The worker threads of this process: one pool for every program.

A run with workers goes on in native code, without Python's lock; see ``kernels.executor``. Threads
that wait look for a moment, then sleep, so that an idle pool costs nothing.
"""

from __future__ import annotations

import atexit
import os
import threading
from time import perf_counter
from typing import Protocol

import numpy as np

from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.blocks import executor as layout
from delegraph_numba_cpu.cpu import physical_cores
from delegraph_numba_cpu.kernel_library import Library
from delegraph_numba_cpu.pace import Pace

SPIN_FOR_RUN = 50e-6
"""Seconds for which a worker looks for the next run before it sleeps."""

SPIN_FOR_ROW = 10e-6
"""Seconds for which anyone looks for the end of a row before sleeping."""

NAP = 1_000_000
"""Nanoseconds after which who sleeps at the end of a row looks again, whatever happened."""


class Runnable(Protocol):
    """What a pool runs: a bound program."""

    @property
    def table(self) -> int:
        """Address of the table of rows."""

    @property
    def tiles(self) -> int:
        """Largest number of parts that a row is split into."""

    @property
    def pace(self) -> Pace:
        """How long it takes."""


class Pool:
    """Runs programs, with up to ``workers`` threads, the caller's among them.

    Any number of threads may call :meth:`run` at once. One of them has the workers, and has fewer
    the more callers there are, down to none: callers and workers together are never more than the
    processor has cores, unless one caller alone asked for more. What is over in microseconds is not
    counted.
    """

    def __init__(self) -> None:
        self._start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start)  # threads do not survive a fork
        atexit.register(self.stop)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._callers = 0
        self._asked = 0  # threads that the caller with the workers asked for; 0 when there is none
        self._is_stopped = False
        self._library: Library | None = None  # of the first workers
        self._control = aligned_buffer(8 * layout.CONTROL_WORDS).view(np.int64)
        self._control[:] = 0
        self._control[layout.NAP_NANOSECONDS] = NAP
        self._threads: list[threading.Thread] = []
        self._recent: list[Runnable] = []  # whose tables a delayed worker may still look at

    def run(self, program: Runnable, library: Library, workers: int) -> None:
        """Run a bound program; returns when it is done."""
        pace = program.pace
        if pace.is_brief:
            library.run_briefly(program.table, 0, 0)
            return
        has_workers = self._enter(workers if program.tiles > 1 and pace.takes_workers else 1)
        try:
            start = perf_counter()
            if has_workers:
                self._run_with_workers(program, library, workers)
            else:
                library.run(program.table, 0, 0)
            if not pace.is_known:
                pace.observe(perf_counter() - start, has_workers=has_workers)
        finally:
            self._leave(has_workers)

    def _enter(self, workers: int) -> bool:
        """Count another caller; return whether it has the workers."""
        with self._lock:
            self._callers += 1
            has_workers = workers > 1 and not self._asked and not self._is_stopped
            if has_workers:
                self._asked = workers
            self._limit()
        return has_workers

    def _leave(self, has_workers: bool) -> None:
        with self._lock:
            self._callers -= 1
            if has_workers:
                self._asked = 0
            self._limit()

    def _limit(self) -> None:
        """Let as many workers take part as there is room for beside the callers; lock held."""
        if self._asked:
            room = max(self._asked, physical_cores()) + 1 - self._callers
            self._control[layout.LIMIT] = max(1, min(self._asked, room))

    def _run_with_workers(self, program: Runnable, library: Library, workers: int) -> None:
        if len(self._threads) < workers - 1:
            self._hire(library, workers - 1)
        self._recent.append(program)
        library.invoke(self._control.ctypes.data, program.table, 0)
        if not self._control[layout.ACTIVE]:
            self._recent.clear()

    def _hire(self, library: Library, count: int) -> None:
        """Let there be *count* worker threads, or as many as the system allows."""
        if not self._threads:
            self._library = library
            self._measure_looks(library)
        while len(self._threads) < count:
            number = len(self._threads) + 1
            thread = threading.Thread(
                target=library.work,
                args=(self._control.ctypes.data, number, 0),
                name=f"delegraph-numba-{number}",
                daemon=True,
            )
            # Known before it starts, whatever interrupts: two of one number share scratch memory.
            self._threads.append(thread)
            try:
                thread.start()
            except RuntimeError:
                self._threads.pop()
                return  # nobody waits for a worker that is not there

    def _measure_looks(self, library: Library) -> None:
        """Find out how often to look for how long; processors differ by a factor of ten."""
        address, looks = self._control.ctypes.data, 200
        best = 1.0
        for _ in range(3):
            start = perf_counter()
            library.look(address, looks, 0)
            best = min(best, perf_counter() - start)
        self._control[layout.SPIN_FOR_RUN] = int(SPIN_FOR_RUN / best * looks)
        self._control[layout.SPIN_FOR_ROW] = int(SPIN_FOR_ROW / best * looks)

    def stop(self) -> None:
        """End the workers: Python must not take its things away while they look."""
        with self._lock:
            self._is_stopped = True
            threads = self._threads
            if not threads:
                return
        self._control[layout.STOP] = 1
        if self._library is not None:  # wakes them by a run of nothing
            nothing = aligned_buffer(8 * layout.HEADER_WORDS).view(np.int64)
            nothing[:] = 0
            self._library.invoke(self._control.ctypes.data, nothing.ctypes.data, 0)
        for thread in threads:
            if thread.is_alive():
                thread.join(timeout=1.0)


POOL = Pool()
