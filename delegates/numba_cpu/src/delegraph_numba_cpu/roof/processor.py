"""Measures the processor: multiplications and bytes read per second, in under a second."""

from __future__ import annotations

from dataclasses import dataclass
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
from delegraph_numba_cpu.roof.caches import Cache, caches

SECONDS = 0.07
"""Seconds of each measurement; there is one for each kind of product and level of memory."""

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
        int8: operations per second of int8 products that are added up in int32. None for matrix
            registers, which are not measured.
        memory: the levels of memory, the smallest first.
        call_seconds: seconds of a call from Python to native code and back, as for brief programs.
    """

    level: str
    threads: int
    float32: float
    int8: float | None
    memory: tuple[MemoryRoof, ...]
    call_seconds: float

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
    loops = _Loops(library(level), threads)
    return ProcessorRoof(
        level.name,
        threads,
        loops.rate(layout.MULTIPLY_F32),
        None if level.has_tiles else loops.rate(layout.MULTIPLY_INT8),
        tuple(_memory(loops, caches())),
        loops.call_seconds(),
    )


def _memory(loops: _Loops, found: tuple[Cache, ...]) -> list[MemoryRoof]:
    threads, levels = loops.threads, []
    for cache in found:
        size = cache.capacity(threads)
        levels.append(MemoryRoof(cache.name, size, loops.read_rate(size // 2)))
    least, most = _MEMORY_BYTES
    size = min(most, max(least, 2 * found[-1].capacity(threads)))
    return [*levels, MemoryRoof("memory", None, loops.read_rate(size))]


class _Table(NamedTuple):
    """A table of one row, or of none, in the form that the thread pool runs."""

    words: NDArray[np.int64]
    table: int
    header: memoryview
    tiles: int
    workers: int
    run_time: RunTimeEstimate


def _table(*row: int, tiles: int = 1) -> _Table:
    """Return a table of one kernel call, or an empty table, in the form that the thread pool runs.

    Args:
        row: address of the kernel, number of tiles, and address of the kernel's operands; nothing
            for an empty table.
        tiles: number of tiles, parts of the call.
    """
    words = np.zeros(executor.HEADER_WORDS + executor.ROW_WORDS, np.int64)
    words[executor.CANCELLATION] = words.ctypes.data + 8 * executor.NEVER
    if row:
        words[executor.ROWS], words[executor.HEADER_WORDS :] = 1, row
    run_time = RunTimeEstimate()
    run_time.is_known = True
    run_time.is_brief, run_time.takes_workers = not row, bool(row)
    return _Table(words, words.ctypes.data, words.data, tiles, tiles, run_time)


class _Loops:
    """Small native loops that only multiply or only read, run by all threads to measure rates.

    Args:
        kernels: library of compiled kernels, which has the loops.
        threads: number of threads.
    """

    def __init__(self, kernels: Library, threads: int) -> None:
        self.threads = threads
        self._kernels = kernels
        self._record = np.zeros(layout.SUMS + layout.RESULT_WORDS * threads, np.int64)
        self._record[layout.FACTORS : layout.SUMS].view(np.float32)[:] = 1.0

    def rate(self, kernel: str) -> float:
        """Return the operations or bytes per second that all threads together reach in a loop.

        Args:
            kernel: name of the loop.
        """
        address = self._kernels.address("roof", kernel)
        table = _table(address, self.threads, self._record.ctypes.data, tiles=self.threads)
        self._record[layout.ROUNDS], seconds = 1, 0.0
        while seconds < _CALL_SECONDS:
            self._record[layout.ROUNDS] *= 2
            seconds = min(self._seconds(table) for _ in range(2))
        end, best = perf_counter() + SECONDS, seconds
        while perf_counter() < end:
            best = min(best, self._seconds(table))
        rounds = self.threads * self._record[layout.ROUNDS]
        return float(self._record[layout.AMOUNT] * rounds / best)

    def read_rate(self, size: int) -> float:
        """Return the bytes per second at which all threads together read *size* bytes, in parts."""
        part = max(1, size // self.threads // layout.READ_STEP) * layout.READ_STEP
        buffer = aligned_buffer(part * self.threads)
        buffer[:] = 1  # pages without values of their own share one
        self._record[layout.SOURCE], self._record[layout.BYTES] = buffer.ctypes.data, part
        return self.rate(layout.READ)

    def call_seconds(self) -> float:
        """Return the seconds of a native call that runs no row."""
        nothing = _table()
        return min(self._seconds(nothing) for _ in range(200))

    def _seconds(self, table: _Table) -> float:
        start = perf_counter()
        POOL.run(table, self._kernels)
        return perf_counter() - start
