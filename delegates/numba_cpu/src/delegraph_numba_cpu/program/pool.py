"""The worker threads of this process: one pool for every program.

A run takes place in native code, without the GIL; see ``kernels.executor``. Waiting threads poll
for a moment, then sleep, so that an idle pool costs nothing.

A signal handler may raise between any two Python instructions. So native code counts the callers,
and records which caller has the workers; Python has nothing to undo.
"""

from __future__ import annotations

import atexit
import os
import sys
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Protocol

import numpy as np

from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.library.cpu import physical_cores, usable_processors
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate

if TYPE_CHECKING:
    import threading

    from numpy.typing import NDArray

SPIN_FOR_RUN = 50e-6
"""Seconds for which a worker polls for the next run before it sleeps."""

SPIN_FOR_ROW = 50e-6
"""Seconds for which a thread polls for the next row before it sleeps.

Waking a thread takes about as long, on a virtual machine.
"""


LOOKS_FOR_WORKERS = 100
"""Largest number of times that a caller polls whether its workers have begun."""

_OF_INTERPRETERS = 8
"""Number of threads for each processor to which an interpreter limits its own, with a warning."""


class Runnable(Protocol):
    """Interface of an object that :class:`Pool` runs, such as a bound :class:`Program`."""

    @property
    def table(self) -> int:
        """Address of the program's table of rows (kernel calls), which the executor reads."""

    @property
    def header(self) -> memoryview:
        """Words at the start of the table of rows, such as whether the run was cancelled.

        See ``instructions.executor``.
        """

    @property
    def tiles(self) -> int:
        """Largest number of tiles, parts for threads, of a kernel call in the program."""

    @property
    def workers(self) -> int:
        """Largest number of threads for a run, including the caller's."""

    @property
    def run_time(self) -> RunTimeEstimate:
        """Estimate of the program's run time, from which the number of threads follows."""


class Pool:
    """Runs programs on worker threads and the calling thread.

    Any number of threads may call :meth:`run` at once. Only one caller at a time has the workers,
    and the more callers there are, the fewer workers it gets. Callers and workers together do not
    exceed the processor's cores. Only a single caller may request more, up to one thread for each
    logical processor. A run of a few microseconds takes no workers, and is not counted as a caller.

    Attributes:
        most_threads: largest number of threads for a run. With more threads than processors, all
            would wait after each kernel call for a thread that has no processor.
    """

    def __init__(self) -> None:
        self.most_threads = usable_processors()
        self._told: set[int] = set()
        self._crews: dict[str, Crew] = {}
        if hasattr(os, "register_at_fork"):
            # Threads do not survive a fork. The handler below is not Python code, which could be
            # interrupted.
            os.register_at_fork(after_in_child=self._crews.clear)
        atexit.register(self.stop)

    @property
    def crew(self) -> Crew:
        """Worker threads of this process."""
        return self._crews.get("here") or self._crews.setdefault("here", Crew())

    def run(self, program: Runnable, library: Library) -> None:
        """Run a program until it is finished or cancelled, on as many threads as are worth it.

        Args:
            program: a program whose addresses are up to date.
            library: the compiled kernels that the program calls.
        """
        run_time = program.run_time
        if run_time.runs_until_trial:
            run_time.count_run()
        if run_time.is_brief:
            library.run_briefly(program.table)
            return
        has_parts = program.tiles > 1 and run_time.takes_workers
        workers = min(program.workers, self.most_threads) if has_parts else 1
        if run_time.is_known:
            self.crew.run(program.table, library, workers)
            return
        start = perf_counter()
        self.crew.run(program.table, library, workers)
        if not program.header[layout.IS_CANCELLED]:
            seconds = perf_counter() - start
            run_time.observe(seconds, has_workers=program.header[layout.THREADS] > 1)

    def warn_of(self, threads: int) -> None:
        """Log a warning if the user asked for more threads than a run can have.

        Each number of threads is warned of once. An interpreter has warned of its largest number.

        Args:
            threads: number of threads that the user asked for.
        """
        is_largest = threads == _OF_INTERPRETERS * self.most_threads
        if threads <= self.most_threads or threads in self._told or is_largest:
            return
        import logging  # imported here: few users request so many threads

        self._told.add(threads)
        logging.getLogger(__name__).warning(
            "num_threads is %d; a run takes %d, one for each processor that this process may use",
            threads,
            self.most_threads,
        )

    def stop(self) -> None:
        """Stop the workers before Python frees the memory that they read."""
        self.crew.stop()


class Crew:
    """The worker threads of a process, and the memory by which they and callers communicate.

    Attributes:
        control: the common memory, int64 words; see ``instructions.executor``.
        threads: the workers, and threads that failed to start after an interrupt.
    """

    def __init__(self) -> None:
        self.control = aligned_buffer(8 * layout.CONTROL_WORDS).view(np.int64)
        self.control[:] = 0
        self.control[layout.TURN] = -1
        self.control[layout.CORES] = physical_cores()
        self.control[layout.KEEPS_APART] = sys.platform == "linux"
        self._address = self.control.ctypes.data
        self.threads: list[threading.Thread] = []
        self._hired = 0  # number of workers, as far as this object knows
        self._library: Library | None = None  # the kernels that the first workers use
        self._is_stopped = False

    def run(self, table: int, library: Library, workers: int) -> None:
        """Run a program's table of kernel calls; on this thread alone if the workers are busy.

        Args:
            table: address of the table.
            library: the compiled kernels.
            workers: largest number of threads, including this thread.
        """
        if self._is_stopped:
            workers = 1
        elif self._hired < workers - 1:
            self._hire(library, workers - 1)
        library.invoke(self._address, table, workers)

    def _hire(self, library: Library, count: int) -> None:
        """Start worker threads until there are *count*, or as many as the system allows."""
        import threading  # imported here: a run without workers needs no thread

        if not self.threads:
            self._library = library
            self._measure_looks(library)
        for _ in range(count - sum(thread.is_alive() for thread in self.threads)):
            thread = threading.Thread(
                target=_work, args=(library, self.control), name="delegraph-numba", daemon=True
            )
            self.threads.append(thread)
            try:
                thread.start()
            except RuntimeError:
                self.threads.remove(thread)
                return  # a missing worker is no error: no caller waits for it
        for _ in range(LOOKS_FOR_WORKERS):
            if self.control[layout.HIRED] >= count:
                break
            sleep(SPIN_FOR_RUN)  # gives them Python's lock, without which they cannot begin
        self._hired = count

    def _measure_looks(self, library: Library) -> None:
        """Measure the time of a poll for work, and set how often workers poll before they sleep."""
        address, looks = self._address, 200
        best = 1.0
        for _ in range(3):
            start = perf_counter()
            library.look(address, looks, 0)
            best = min(best, perf_counter() - start)
        self.control[layout.SPIN_FOR_RUN] = int(SPIN_FOR_RUN / best * looks)
        self.control[layout.SPIN_FOR_ROW] = int(SPIN_FOR_ROW / best * looks)

    def stop(self) -> None:
        """Stop the workers; later runs have no workers."""
        self._is_stopped = True
        if self._library is not None:
            self._library.end(self._address, 0, 0)
        for thread in self.threads:
            if thread.is_alive():
                thread.join(timeout=1.0)


def _work(library: Library, control: NDArray[np.int64]) -> None:
    """Run the loop of a worker thread until the pool stops; keep the *control* memory alive."""
    library.work(control.ctypes.data, 0, 0)


POOL = Pool()
