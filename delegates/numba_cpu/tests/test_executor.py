"""The executor: rows in order, tiles once each, whoever takes part."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.pool import Crew, Pool
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.run_time_estimate import RunTimeEstimate


@pytest.fixture
def control() -> Any:
    """The control block of a pool without workers."""
    return Crew().control


@pytest.mark.parametrize("tiles", [1, 2, 7, 64])
def test_every_tile_of_every_row_runs_in_one_thread(
    lib: Library, chain: Callable[..., Any], tiles: int
) -> None:
    copies = chain(tiles=tiles)
    copies.run(7, lambda: lib.run(copies.program.table, 0, 0))


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("tiles", [1, 3, 64])
def test_rows_wait_for_the_row_before(
    lib: Library, pool: Pool, chain: Callable[..., Any], workers: int, tiles: int
) -> None:
    copies = chain(rows=20, tiles=tiles, workers=workers)
    for value in range(1, 200):
        copies.run_in(pool, value)


def test_the_caller_does_all_when_no_worker_comes(
    lib: Library, control: Any, chain: Callable[..., Any]
) -> None:
    copies = chain()
    for value in (1, 2, 3):
        copies.run(value, lambda: lib.invoke(control.ctypes.data, copies.program.table, 4))
    assert copies.program.header[layout.THREADS] == 4
    assert control[layout.EPOCH] == 3
    assert control[layout.TURN] < 0
    assert control[layout.CALLERS] == control[layout.IS_LED] == 0


def test_epochs_and_turns_start_again_after_the_last(
    lib: Library, control: Any, chain: Callable[..., Any]
) -> None:
    control[layout.EPOCH] = 0x7FFFFFFE
    control[layout.TURN] = (-1 << 32) | 0xFFFFFFFC
    copies = chain()
    for value in (1, 2, 3):
        copies.run(value, lambda: lib.invoke(control.ctypes.data, copies.program.table, 2))
    assert control[layout.EPOCH] == 1
    assert control[layout.TURN] == (-1 << 32) | (
        3 * 10 - 4
    )  # begin and end of a run are turns as well


def test_a_worker_that_is_late_for_a_run_looks_at_no_table(
    lib: Library, control: Any, chain: Callable[..., Any]
) -> None:
    copies = chain()
    copies.run(1, lambda: lib.invoke(control.ctypes.data, copies.program.table, 2))
    control[layout.TABLE] = control[layout.ROW] = 8  # where nobody may look
    worker = threading.Thread(target=lib.work, args=(control.ctypes.data, 0, 0))
    worker.start()
    while not control[layout.SLEEPERS]:  # it has found the run complete
        pass
    lib.end(control.ctypes.data, 0, 0)
    worker.join()
    assert control[layout.HIRED] == 1


@pytest.mark.parametrize("tiles", [4, 7, 200])
def test_each_thread_runs_the_same_part_of_each_row(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program], tiles: int
) -> None:
    first, together = (0, tiles // 2), threading.Barrier(2)
    seen: list[tuple[int, int]] = []

    def kernel(tile: int, worker: int) -> None:
        if tile in first:
            together.wait(60)  # until both threads have begun the row
            seen.append((tile, worker))

    pool.run(python_kernel(kernel, rows=5, tiles=tiles), lib)
    assert sorted(seen) == [(first[0], 0)] * 5 + [(first[1], 1)] * 5


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no processors of their own")
def test_a_worker_leaves_a_run_while_it_is_on_the_callers_processor(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    seen: set[int] = set()

    def kernel(tile: int, worker: int) -> None:
        seen.add(worker)
        threading.Event().wait(0.001)  # the worker has the processor meanwhile

    pool.crew.control[layout.KEEPS_APART] = 1
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # the worker inherits it
    try:
        pool.run(python_kernel(kernel, rows=5, tiles=8), lib)
    finally:
        os.sched_setaffinity(0, before)
    assert seen == {0}


def test_a_thread_takes_tiles_of_one_that_does_not_come(
    lib: Library, control: Any, python_kernel: Callable[..., Program]
) -> None:
    seen: list[tuple[int, int]] = []
    program = python_kernel(lambda tile, worker: seen.append((worker, tile)), rows=2, tiles=5)
    lib.invoke(control.ctypes.data, program.table, 3)
    assert seen == [(0, tile) for tile in range(5)] * 2


def test_rows_of_one_tile_are_handed_to_no_other_thread(
    lib: Library, control: Any, python_kernel: Callable[..., Program]
) -> None:
    seen: list[int] = []
    program = python_kernel(lambda tile, worker: seen.append(worker), tiles=(1, 1, 1))
    lib.invoke(control.ctypes.data, program.table, 4)
    assert seen == [0, 0, 0]
    assert control[layout.TURN] & 0xFFFFFFFF == 1  # of the beginning and the end alone


@pytest.mark.parametrize("tiles", [(0, 3, 0, 0, 2, 0), (0, 0), ()])
def test_rows_without_tiles_are_passed_over(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program], tiles: tuple[int, ...]
) -> None:
    seen: list[int] = []
    program = python_kernel(lambda tile, worker: seen.append(tile), tiles=tiles)
    for run in (lambda: lib.run(program.table, 0, 0), lambda: pool.run(program, lib)):
        seen.clear()
        run()
        assert sorted(seen) == sorted(tile for count in tiles for tile in range(count))


# -- cancelling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_a_cancelled_run_leaves_out_what_has_not_begun(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program], workers: int
) -> None:
    word, request = np.zeros(1, np.int32), 1
    seen: list[int] = []

    def kernel(tile: int, worker: int) -> None:
        seen.append(tile)
        if len(seen) == 20:
            word[0] = request

    program = python_kernel(kernel, rows=10, workers=workers)
    program.heed(word)
    pool.run(program, lib)
    assert program.header[layout.IS_CANCELLED]
    assert 20 <= len(seen) < 20 + workers
    word[0] = request = 0
    seen.clear()
    pool.run(program, lib)
    assert not program.header[layout.IS_CANCELLED]
    assert len(seen) == 80


def test_a_cancelled_run_ends_when_the_workers_have_done_their_tiles(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    word = np.zeros(1, np.int32)
    is_in = threading.Event()
    done: list[int] = []

    def kernel(tile: int, worker: int) -> None:
        if worker:
            is_in.set()
            threading.Event().wait(0.05)
            done.append(tile)
        else:
            is_in.wait(60)
            word[0] = 1

    program = python_kernel(kernel, rows=2, tiles=2, workers=2)
    program.heed(word)
    pool.run(program, lib)
    assert len(done) == 1
    assert program.header[layout.IS_CANCELLED]


def test_a_run_that_is_cancelled_at_first_does_nothing(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    word = np.ones(1, np.int32)
    seen: list[int] = []
    program = python_kernel(lambda tile, worker: seen.append(tile))
    program.heed(word)
    for run in (lambda: lib.run(program.table, 0, 0), lambda: pool.run(program, lib)):
        run()
        assert program.header[layout.IS_CANCELLED]
    assert seen == []


def test_how_long_a_cancelled_run_took_says_nothing_of_the_program(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    word = np.ones(1, np.int32)
    program = python_kernel(lambda tile, worker: None)
    program.run_time = RunTimeEstimate()
    program.heed(word)
    for _ in range(10):
        pool.run(program, lib)
    assert not program.run_time.is_known
