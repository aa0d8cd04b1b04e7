"""The executor: rows in order, tiles once each, whoever takes part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph.memory import aligned_buffer
from delegraph_numba_cpu.blocks import executor as layout
from delegraph_numba_cpu.kernel_library import Library
from delegraph_numba_cpu.pool import Pool


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
    copies = chain(rows=20, tiles=tiles)
    for value in range(1, 200):
        copies.run(value, lambda: pool.run(copies.program, lib, workers))


def test_the_caller_does_all_when_no_worker_comes(lib: Library, chain: Callable[..., Any]) -> None:
    control = aligned_buffer(8 * layout.CONTROL_WORDS).view(np.int64)
    control[:] = 0
    control[layout.LIMIT] = 4
    copies = chain()
    for value in (1, 2, 3):
        copies.run(value, lambda: lib.invoke(control.ctypes.data, copies.program.table, 0))
    assert control[layout.EPOCH] == 3
    assert control[layout.TABLE] == 0


def test_epochs_start_again_after_the_last(lib: Library, chain: Callable[..., Any]) -> None:
    control = aligned_buffer(8 * layout.CONTROL_WORDS).view(np.int64)
    control[:] = 0
    control[layout.LIMIT] = 1
    control[layout.EPOCH] = 0x7FFFFFFE
    copies = chain()
    for value in (1, 2, 3):
        copies.run(value, lambda: lib.invoke(control.ctypes.data, copies.program.table, 0))
    assert control[layout.EPOCH] == 1


def test_a_worker_of_an_earlier_run_finds_nothing_to_do(
    lib: Library, chain: Callable[..., Any]
) -> None:
    control = aligned_buffer(8 * layout.CONTROL_WORDS).view(np.int64)
    control[:] = 0
    control[layout.LIMIT] = 2
    copies = chain()
    copies.run(1, lambda: lib.invoke(control.ctypes.data, copies.program.table, 0))
    # The worker wakes up late: the run it was called for is over, and its table still there.
    control[layout.TABLE] = copies.program.table
    control[layout.STOP] = 0
    copies.buffers[0].fill(9)
    _work_once(lib, control)
    assert (copies.buffers[-1] == 1).all()


def _work_once(lib: Library, control: Any) -> None:
    """Let a worker serve the present epoch, and end it by another."""
    import threading

    worker = threading.Thread(target=lib.work, args=(control.ctypes.data, 1, 0))
    worker.start()
    while not control[layout.SLEEPERS]:  # it has looked at the table and found the run complete
        pass
    control[layout.STOP] = 1
    nothing = aligned_buffer(8 * layout.HEADER_WORDS).view(np.int64)
    nothing[:] = 0
    lib.invoke(control.ctypes.data, nothing.ctypes.data, 0)
    worker.join()
