"""Measures the processor in short rounds: multiplications and bytes read per second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph.json_records import JsonRecord
from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.instructions import executor
from delegraph_numba_cpu.instructions import roof as layout
from delegraph_numba_cpu.library.kernel_library import Library, library
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate
from delegraph_numba_cpu.roof.caches import caches

ROUNDS = 12
"""Number of rounds; the best counts, as other processes slow down some of them."""

SECONDS = 0.02
"""Seconds of a round for each kind of product and each level of memory."""

_CALL_SECONDS = 1e-3  # of one measured call, so long that the cost of calling does not count
_MEMORY_BYTES = 32 << 20, 512 << 20


@dataclass(frozen=True, slots=True)
class MemoryRoof(JsonRecord):
    """Rate at which threads read from a level of memory.

    Attributes:
        name: ``L1``, ``L2``, ``L3`` or ``memory``.
        bytes: size of the level for all threads together; None for memory.
        bytes_per_second: bytes that all threads together read in a second.
    """

    name: str
    bytes: int | None
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class ProcessorRoof(JsonRecord):
    """Highest rates of this processor with the kernels of one level.

    Attributes:
        level: name of the level.
        threads: number of threads that were measured together.
        float32: float32 operations per second; a multiply-add is two.
        int8: operations per second of int8 products that are added up in int32. None if the level
            multiplies in matrix registers (AMX), whose rate is not measured.
        memory: the caches and the main memory, the smallest first.
        call_seconds: seconds of a call from Python to native code and back, which is most of the
            time of a small partition.
        rounds: number of rounds; each rate is the best of them.
    """

    level: str
    threads: int
    float32: float = field(metadata={"json_key": "float32_operations_per_second"})
    int8: float | None = field(metadata={"json_key": "int8_operations_per_second"})
    memory: tuple[MemoryRoof, ...]
    call_seconds: float
    rounds: int

    def memory_of(self, size: int) -> MemoryRoof:
        """Return the smallest level of memory that holds *size* bytes."""
        return next(m for m in self.memory if m.bytes is None or size <= m.bytes)


def processor_roof(level: CpuLevel, threads: int) -> ProcessorRoof:
    """Measure how many products and bytes per second this processor can reach with some threads.

    Args:
        level: instruction set that the measuring kernels use, such as ``avx2``.
        threads: number of threads.

    Raises:
        DelegateError: the kernels of the level cannot be compiled.
    """
    return RoofMeasurement(level, threads).roof()


class RoofMeasurement:
    """Measurement of the processor in rounds, so that they can be spread over other work.

    Args:
        level: instruction set that the measuring kernels use, such as ``avx2``.
        threads: number of threads.

    Attributes:
        rounds: number of rounds so far.

    Raises:
        DelegateError: the kernels of the level cannot be compiled.
    """

    def __init__(self, level: CpuLevel, threads: int) -> None:
        kernels = library(level)
        self.rounds = 0
        self._level, self._threads = level, threads
        self._float32 = _Loop(kernels, threads, layout.MULTIPLY_F32)
        self._int8 = None if level.has_tiles else _Loop(kernels, threads, layout.MULTIPLY_INT8)
        self._memory = [
            (name, size, _reading(kernels, threads, read)) for name, size, read in _sizes(threads)
        ]
        self._call = _table()
        self._call_seconds = _seconds(self._call, kernels)
        self._kernels = kernels

    def measure(self) -> None:
        """Measure each rate once more; the best of all rounds counts."""
        for loop in (self._float32, self._int8, *(loop for _, _, loop in self._memory)):
            if loop is not None:
                loop.measure()
        calls = (_seconds(self._call, self._kernels) for _ in range(200))
        self._call_seconds = min(self._call_seconds, *calls)
        self.rounds += 1

    def roof(self) -> ProcessorRoof:
        """Return the best rates of all rounds, of which there are at least :data:`ROUNDS` then."""
        while self.rounds < ROUNDS:
            self.measure()
        return ProcessorRoof(
            self._level.name,
            self._threads,
            self._float32.rate,
            None if self._int8 is None else self._int8.rate,
            tuple(MemoryRoof(name, size, loop.rate) for name, size, loop in self._memory),
            self._call_seconds,
            self.rounds,
        )


def _sizes(threads: int) -> Iterator[tuple[str, int | None, int]]:
    """Yield name and size of each level of memory, and the number of bytes to read from it."""
    found = caches()
    for cache in found:
        size = cache.capacity(threads)
        yield cache.name, size, size // 2
    least, most = _MEMORY_BYTES
    yield "memory", None, min(most, max(least, 2 * found[-1].capacity(threads)))


class _Table(NamedTuple):
    """A table of one kernel call, or an empty table, in the form that the thread pool runs."""

    words: NDArray[np.int64]
    table: int
    header: memoryview
    tiles: int
    workers: int
    run_time: RunTimeEstimate


def _table(*row: int, tiles: int = 1) -> _Table:
    """Return a table of one kernel call, or an empty table, in the form that the thread pool runs.

    *row* is the address of the kernel, the number of tiles (parts of the call), and the address of
    the kernel's operands; nothing for an empty table.
    """
    words = np.zeros(executor.HEADER_WORDS + executor.ROW_WORDS, np.int64)
    words[executor.CANCELLATION] = words.ctypes.data + 8 * executor.NEVER
    if row:
        words[executor.ROWS], words[executor.HEADER_WORDS :] = 1, row
    run_time = RunTimeEstimate()
    run_time.is_known = True
    run_time.is_brief, run_time.takes_workers = not row, bool(row)
    return _Table(words, words.ctypes.data, words.data, tiles, tiles, run_time)


class _Loop:
    """A native loop that only multiplies or only reads, run by all threads to measure a rate.

    Args:
        kernels: library of compiled kernels, which has the loop.
        threads: number of threads.
        kernel: name of the loop.
        source: bytes that the threads read together, in parts; None for a loop that multiplies.
    """

    def __init__(
        self,
        kernels: Library,
        threads: int,
        kernel: str,
        source: NDArray[np.uint8] | None = None,
    ) -> None:
        record = np.zeros(layout.SUMS + layout.RESULT_WORDS * threads, np.int64)
        record[layout.FACTORS : layout.SUMS].view(np.float32)[:] = 1.0
        if source is not None:
            record[[layout.SOURCE, layout.BYTES]] = source.ctypes.data, source.size // threads
        address = kernels.address("roof", kernel)
        self._table = _table(address, threads, record.ctypes.data, tiles=threads)
        self._kernels, self._threads = kernels, threads
        self._record, self._source = record, source  # the table has only their addresses
        self._best = 0.0

    def measure(self) -> None:
        """Run the loop for :data:`SECONDS`; the first time, find out how many rounds a call has."""
        if not self._best:
            self._record[layout.ROUNDS] = 1
            while self._best < _CALL_SECONDS:
                self._record[layout.ROUNDS] *= 2
                self._best = min(_seconds(self._table, self._kernels) for _ in range(2))
        end = perf_counter() + SECONDS
        while perf_counter() < end:
            self._best = min(self._best, _seconds(self._table, self._kernels))

    @property
    def rate(self) -> float:
        """Operations or bytes per second that all threads together reached, at best."""
        rounds = self._threads * self._record[layout.ROUNDS]
        return float(self._record[layout.AMOUNT] * rounds / self._best)


def _reading(kernels: Library, threads: int, size: int) -> _Loop:
    """Return a loop in which all threads together read *size* bytes."""
    part = max(1, size // threads // layout.READ_STEP) * layout.READ_STEP
    buffer = aligned_buffer(part * threads)
    buffer[:] = 1  # pages without values of their own share one
    return _Loop(kernels, threads, layout.READ, buffer)


def _seconds(table: _Table, kernels: Library) -> float:
    start = perf_counter()
    POOL.run(table, kernels)
    return perf_counter() - start
