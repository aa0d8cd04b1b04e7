"""Prints what threads do in each row: ``python benchmarks/thread_times.py MODEL [--threads 2]``.

Each tile notes when it began and ended, and on which thread. So the time that further threads
should save and do not is split into its causes:

- *splitting*: one thread takes longer for the program of several threads than for its own program;
- *sharing*: tiles take longer while others run, as threads share caches, memory or a core;
- *ends*: a thread has done its last tile of a row, and others have not;
- *starts*: a thread has no tile yet, or is between two.

The first line says what the processor allows: how many times as fast so many threads are in loops
that share nothing, one of arithmetic alone, and one that copies what no cache holds.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from delegraph import Interpreter
from delegraph.tools import random_values
from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.library.cpu import level_named
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate
from delegraph_numba_cpu.roof.processor import processor_roof

KEPT_RUNS = 0.2
"""Share of the runs, the fastest ones, that count: the others were disturbed."""

COPIED_BYTES = 32 << 20
"""Number of bytes that each thread copies, to measure how threads share memory."""

TRACER = """
declare i64 @llvm.readcyclecounter()
define i64 @now() {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}
define void @traced(ptr %record, i64 %tile, i64 %worker) {
  %kernel = load ptr, ptr %record
  %block_at = getelementptr i64, ptr %record, i64 1
  %block = load i64, ptr %block_at
  %notes_at = getelementptr i64, ptr %record, i64 2
  %notes = load ptr, ptr %notes_at
  %begin = call i64 @llvm.readcyclecounter()
  call void %kernel(i64 %block, i64 %tile, i64 %worker)
  %end = call i64 @llvm.readcyclecounter()
  %note = getelementptr [8 x i64], ptr %notes, i64 %tile
  store i64 %begin, ptr %note
  %end_at = getelementptr i64, ptr %note, i64 1
  store i64 %end, ptr %end_at
  %worker_at = getelementptr i64, ptr %note, i64 2
  store i64 %worker, ptr %worker_at
  ret void
}
"""
"""A kernel that calls another one, and notes when that began and ended; and the clock for it."""

LINE = 8
"""Number of words of a record or a note: a cache line."""


class Traced:
    """A bound program whose tiles note their times; a pool can run it.

    Attributes:
        first: index of each row's first note, and the number of notes, ``[rows + 1]``.
    """

    def __init__(self, program: Program, tracer: int) -> None:
        self.tiles, self.workers = program.tiles, program.workers
        self.run_time = RunTimeEstimate()
        self.run_time.observe(1.0)  # not brief, so it takes workers
        self._table = program.table_of(0, len(program.rows))
        self.table, self.header = self._table.ctypes.data, self._table.data
        rows = self._table[layout.HEADER_WORDS :].reshape(-1, layout.ROW_WORDS)
        self.first = [0, *np.cumsum(rows[:, 1]).tolist()]
        self._notes = np.zeros((self.first[-1], LINE), np.int64)
        self._records = np.zeros((len(rows), LINE), np.int64)
        for row, record, first in zip(rows, self._records, self.first, strict=False):
            record[:3] = row[0], row[2], self._notes.ctypes.data + self._notes.strides[0] * first
            row[0], row[2] = tracer, record.ctypes.data

    def notes(self, run: Callable[[], None], rounds: int) -> NDArray[np.int64]:
        """Return begin, end and thread of each tile in the fastest runs, ``[runs, tiles, 3]``."""
        found = []
        for _ in range(rounds):
            run()
            found.append(self._notes[:, :3].copy())
        found.sort(key=lambda note: int(note[:, 1].max() - note[:, 0].min()))
        return np.array(found[: max(1, int(KEPT_RUNS * rounds))])


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time of a row went, the mean of several runs.

    Attributes:
        wall: from the end of the row before to the end of the last tile.
        busy: sum of the times of all tiles.
        ends, starts: sum over threads, see the module.
    """

    wall: float
    busy: float
    ends: float
    starts: float


Runs = Callable[[Program, int], list[Spent]]


def spent(notes: NDArray[np.int64], first: Sequence[int], threads: int) -> list[Spent]:
    """Return where the time of each row went, in units of the notes; see :class:`Traced`."""
    found = []
    before = notes[:, :, 0].min(axis=1)
    for start, end in pairwise(first):
        begun, ended, worker = np.moveaxis(notes[:, start:end], 2, 0)
        last = ended.max(axis=1, initial=0)
        last = np.where(last, last, before)  # of a row without tiles
        own = [np.where(worker == i, ended, 0).max(axis=1, initial=0) for i in range(threads)]
        ends = sum(np.where(mine, last - mine, 0) for mine in own)
        wall, busy = last - before, (ended - begun).sum(axis=1)
        starts = threads * wall - busy - ends
        found.append(Spent(*(float(np.mean(part)) for part in (wall, busy, ends, starts))))
        before = last
    return found


def total(rows: Sequence[Spent], name: str) -> float:
    """Return the sum of an attribute of all rows."""
    return float(sum(getattr(row, name) for row in rows))


def gain_of(work: Callable[[int], Any], threads: int) -> float:
    """Return how many times as fast *threads* threads are, each of which calls ``work(thread)``."""
    with ThreadPoolExecutor(threads) as pool:

        def best(count: int) -> float:
            times = []
            for _ in range(20):
                start = time.perf_counter()
                list(pool.map(work, range(count)))
                times.append(time.perf_counter() - start)
            return min(times)

        best(threads)  # starts the threads
        return threads * best(1) / best(threads)


def print_ceilings(out: Console, threads: int, cpu: str) -> None:
    """Print how much threads gain where they share nothing."""
    level = level_named(cpu)
    one, all_threads = (processor_roof(level, count).float32 for count in (1, threads))
    registers = all_threads / one
    memory = [np.zeros(2 * COPIED_BYTES, np.uint8) for _ in range(threads)]
    places = [array.ctypes.data for array in memory]
    copies = gain_of(
        lambda i: ctypes.memmove(places[i], places[i] + COPIED_BYTES, COPIED_BYTES), threads
    )
    out.print(f"{threads} threads: arithmetic {registers:.2f} times, copies {copies:.2f} times")


class RecordingDelegate(NumbaCpuDelegate):
    """The delegate, which remembers its partitions.

    Attributes:
        kernels: the partitions, in the order they were made.
    """

    def __init__(self, options: NumbaCpuOptions) -> None:
        super().__init__(options)
        self.kernels: list[NumbaCpuKernel] = []

    def create_delegate_kernel_interface(self) -> NumbaCpuKernel:
        kernel = NumbaCpuKernel(self)
        self.kernels.append(kernel)
        return kernel


def prepared_kernels(
    model: Path, threads: int, cpu: str
) -> tuple[Interpreter, list[NumbaCpuKernel]]:
    """Return an interpreter that has run once, and the partitions of its model."""
    delegate = RecordingDelegate(NumbaCpuOptions(num_threads=threads, cpu=cpu))
    interpreter = Interpreter(str(model), experimental_delegates=[delegate], num_threads=threads)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    for details in interpreter.get_input_details():
        values = random_values(details, rng)
        interpreter.set_tensor(details["index"], values)
    interpreter.invoke()
    return interpreter, delegate.kernels


def microseconds_of_a_cycle(now: Callable[[], int]) -> float:
    """Return the duration of the unit in which tiles note times."""
    start, first = time.perf_counter(), now()
    time.sleep(0.05)
    last, end = now(), time.perf_counter()
    return 1e6 * (end - start) / (last - first)


def print_partition(
    out: Console, programs: tuple[Program, Program], run: Runs, threads: int, unit: float
) -> None:
    """Print where the time of a partition goes.

    Args:
        out: gets the table.
        programs: of one thread, and of *threads*.
        run: the notes of a program, on one thread or on several.
        threads: number of threads.
        unit: microseconds of the unit of notes.
    """
    alone, together = programs
    own, split = run(alone, 1), run(together, 1)
    found = run(together, threads)
    rows = [
        (
            number,
            f"{row.instruction.family}.{row.instruction.kernel}",
            row.tiles,
            f"{one.busy * unit:.1f}",
            f"{many.wall * unit:.1f}",
            f"{one.busy / many.wall:.2f}" if many.wall else "",
            *(f"{x * unit:.1f}" for x in (many.busy - one.busy, many.ends, many.starts)),
            " ".join(map(str, row.nodes)),
        )
        for number, (row, one, many) in enumerate(zip(together.rows, split, found, strict=True))
    ]
    names = ("row", "kernel", "tiles", "one µs", "all µs", "gain", "sharing", "ends", "starts")
    right = [name for name in names if name != "kernel"]
    print_table(out, (*names, "nodes"), rows, right=right)
    busy = [total(times, "busy") for times in (own, split, found)]
    wall = total(found, "wall")
    lost = {
        "splitting": busy[1] - busy[0],
        "sharing": busy[2] - busy[1],
        "ends": total(found, "ends"),
        "starts": total(found, "starts"),
    }
    shares = ", ".join(f"{name} {time / wall / threads:.1%}" for name, time in lost.items())
    out.print(f"  gain {busy[0] / wall:.2f}: {busy[0] * unit:.0f} µs to {wall * unit:.0f} µs")
    out.print(f"  lost, of the time of {threads} threads: {shares}")


def print_table(
    out: Console, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str]
) -> None:
    """Print rows under bold headings; the columns of *right* are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    out.print(Padding(table, (0, 0, 0, 2), expand=False))


def compiled(text: str, level: CpuLevel) -> llvm.ExecutionEngine:
    """Return the machine code of LLVM's text for a level."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = ",".join(f"+{feature}" for feature in level.needs)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=level.target, features=features, opt=3
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


def main() -> None:
    """Print what threads gain in each partition of a model, and why not more."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--cpu", default="auto", help="level of instructions")
    arguments = parser.parse_args()
    threads, cpu = arguments.threads, arguments.cpu
    out = Console(width=None if Console().is_terminal else 160, highlight=False, markup=False)
    print_ceilings(out, threads, cpu)
    engine = compiled(TRACER, level_named(cpu))
    now = ctypes.CFUNCTYPE(ctypes.c_int64)(engine.get_function_address("now"))
    tracer = engine.get_function_address("traced")
    (_, alone), (_, together) = (
        kept := [prepared_kernels(arguments.model, count, cpu) for count in (1, threads)]
    )

    def run(program: Program, count: int) -> list[Spent]:
        traced, library = Traced(program, tracer), together[0].kernel_library
        if count == 1:
            notes = traced.notes(lambda: library.run(traced.table, 0, 0), arguments.rounds)
        else:
            notes = traced.notes(lambda: POOL.run(traced, library), arguments.rounds)
        return spent(notes, traced.first, count)

    for one, several in zip(alone, together, strict=True):
        if one.program is not None and several.program is not None:
            out.print()
            programs = (one.program, several.program)
            print_partition(out, programs, run, threads, microseconds_of_a_cycle(now))
    del kept  # the interpreters own the memory


if __name__ == "__main__":
    main()
