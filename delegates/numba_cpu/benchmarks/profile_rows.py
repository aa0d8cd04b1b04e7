"""Prints where a program's time goes: ``python benchmarks/profile_rows.py MODEL [-o exact=false]``.

Every row is run for itself, one after the other as in a real run, many times; the least counts. The
rate of a row is that of all rows that compute the same nodes, beside what the processor can do.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from peak import float32_peak, int8_peak
from rich.console import Console
from runtimes import model_inputs
from tables import print_table

from arithmetic import multiply_adds
from delegraph import Interpreter
from delegraph_numba_cpu.delegate import NumbaCpuDelegate, NumbaCpuKernel
from delegraph_numba_cpu.instructions.executor import (
    CANCELLATION,
    HEADER_WORDS,
    NEVER,
    ROW_WORDS,
    ROWS,
)
from delegraph_numba_cpu.options import NumbaCpuOptions
from delegraph_numba_cpu.program.pool import POOL
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate


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


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row of a program as a program of its own, as far as the pool cares."""

    table: int
    header: memoryview
    tiles: int
    workers: int
    run_time: RunTimeEstimate


@dataclass(frozen=True, slots=True)
class RowTime:
    """How long one row took.

    Attributes:
        kernel: its family and its name.
        tiles: into how many parts it is split.
        nodes: what it computes.
        microseconds: the least of all rounds.
    """

    kernel: str
    tiles: int
    nodes: tuple[int, ...]
    microseconds: float


def row_times(program: Program, kernel: NumbaCpuKernel, rounds: int, workers: int) -> list[RowTime]:
    """Return how long each row of a bound program takes."""
    single = list(_single_rows(program, workers))
    best = np.full(len(single), np.inf)
    library = kernel.kernel_library
    for _ in range(rounds):
        for i, row in enumerate(single):
            start = time.perf_counter()
            POOL.run(row, library)
            best[i] = min(best[i], time.perf_counter() - start)
    empty = _cost_of_a_call(kernel, rounds)
    return [
        RowTime(
            f"{row.block.family}.{row.block.kernel}",
            row.tiles,
            row.nodes,
            max(0.0, float(seconds) - empty) * 1e6,
        )
        for row, seconds in zip(program.rows, best, strict=True)
    ]


def _single_rows(program: Program, workers: int) -> Iterator[OneRow]:
    words = HEADER_WORDS + ROW_WORDS * len(program.rows)
    table = np.ctypeslib.as_array((ctypes.c_int64 * words).from_address(program.table))
    rows = table[HEADER_WORDS:].reshape(-1, ROW_WORDS)
    for row, values in zip(program.rows, rows, strict=True):
        yield _table(values, row.tiles, workers)


def _table(row: Sequence[int], tiles: int, workers: int) -> OneRow:
    """Return a table of one row, or of none."""
    own = np.zeros(HEADER_WORDS + ROW_WORDS, np.int64)
    own[CANCELLATION] = own.ctypes.data + 8 * NEVER
    if len(row):
        own[ROWS], own[HEADER_WORDS:] = 1, row
    return OneRow(own.ctypes.data, own.data, tiles, workers, _known_pace())


def _known_pace() -> RunTimeEstimate:
    """Return that of a program that is not brief, so that rows use the threads they are given."""
    run_time = RunTimeEstimate()
    run_time.observe(1.0)
    return run_time


def _cost_of_a_call(kernel: NumbaCpuKernel, rounds: int) -> float:
    """Return the seconds that running no row at all takes."""
    nothing = _table((), 1, 1)
    best = np.inf
    for _ in range(10 * rounds):
        start = time.perf_counter()
        POOL.run(nothing, kernel.kernel_library)
        best = min(best, time.perf_counter() - start)
    return float(best)


def print_profile(out: Console, kernel: NumbaCpuKernel, times: Sequence[RowTime], cpu: str) -> None:
    """Print the rows of one partition, then the sums by kernel."""
    total = sum(row.microseconds for row in times)
    together = Counter[tuple[int, ...]]()
    by_kernel = Counter[str]()
    for row in times:
        together[row.nodes] += row.microseconds  # type: ignore[assignment]  # a Counter of floats
        by_kernel[row.kernel] += row.microseconds  # type: ignore[assignment]  # likewise
    calls = {call.node.index: call for call in kernel.partition.calls}
    rows = []
    for i, row in enumerate(times):
        members = [calls[node] for node in row.nodes]
        sums = sum(multiply_adds(call) for call in members)
        rate = 2e-3 * sums / together[row.nodes] if together[row.nodes] else 0.0
        is_float = bool(members) and members[0].output().type.name == "FLOAT32"
        peak = float32_peak(cpu) if is_float else int8_peak(cpu)
        rows.append(
            (
                i,
                row.kernel,
                row.tiles,
                f"{row.microseconds:.1f}",
                f"{row.microseconds / total:.1%}",
                f"{rate:.0f}" if sums else "",
                f"{rate / peak:.0%}" if sums and peak else "",
                " ".join(f"{call.node.index}:{call.name}" for call in members),
                "x".join(map(str, members[-1].output().shape)) if members else "",
            )
        )
    right = ("row", "tiles", "µs", "share", "Gop/s", "of peak")
    columns = ("row", "kernel", "tiles", "µs", "share", "Gop/s", "of peak", "nodes", "output")
    print_table(out, columns, rows, right=right)
    out.print()
    sums_rows = [
        (name, f"{us:.1f}", f"{us / total:.1%}", sum(row.kernel == name for row in times))
        for name, us in by_kernel.most_common()
    ]
    print_table(out, ("kernel", "µs", "share", "rows"), sums_rows, right=("µs", "share", "rows"))
    out.print(f"\n  all {len(times)} rows: {total:.1f} µs")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--cpu", default="auto", help="level of instructions")
    parser.add_argument("--inexact", action="store_true", help="exact=false")
    return parser.parse_args()


def main() -> None:
    """Profile every partition of a model."""
    arguments = _arguments()
    options = NumbaCpuOptions(
        exact=not arguments.inexact, num_threads=arguments.threads, cpu=arguments.cpu
    )
    delegate = RecordingDelegate(options)
    interpreter = Interpreter(
        str(arguments.model), experimental_delegates=[delegate], num_threads=arguments.threads
    )
    interpreter.allocate_tensors()
    for details, values in zip(
        interpreter.get_input_details(), model_inputs(arguments.model), strict=True
    ):
        interpreter.set_tensor(details["index"], values)
    interpreter.invoke()
    out = Console(width=None if Console().is_terminal else 160, highlight=False, markup=False)
    out.print(str(interpreter.placement))
    for kernel in delegate.kernels:
        if kernel.program is not None:
            out.print()
            times = row_times(kernel.program, kernel, arguments.rounds, arguments.threads)
            print_profile(out, kernel, times, arguments.cpu)


if __name__ == "__main__":
    main()
