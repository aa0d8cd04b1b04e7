"""The pool: right answers from several threads, forks, exits; sleeping workers, freed memory."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from delegraph_numba_cpu import pool as pool_module
from delegraph_numba_cpu.blocks import executor as layout
from delegraph_numba_cpu.kernel_library import Library
from delegraph_numba_cpu.pace import BRIEF, LONG, SHORT, TRIALS, Pace
from delegraph_numba_cpu.pool import Pool

PREPARE = """
import threading
import numpy as np
from delegraph_numba_cpu.blocks.moves import COPY
from delegraph_numba_cpu.cpu import supported_levels
from delegraph_numba_cpu.kernel_library import library
from delegraph_numba_cpu.pool import POOL
from delegraph_numba_cpu.memory import Address, Memory, Row
from delegraph_numba_cpu.program import Program

lib = library(supported_levels()[0])
lib.load(["moves"])

def chain(rows=20, size=1 << 16):
    buffers = [np.zeros(size, np.uint8) for _ in range(rows + 1)]
    memories = [Memory(size, b.ctypes.data, array=b) for b in buffers]
    table = [
        Row(COPY, 8, dict(source=Address(a), target=Address(b), bytes=size, tiles=8))
        for a, b in zip(memories, memories[1:])
    ]
    program = Program(table, lib)
    program.pace.observe(1.0)

    def run(value):
        buffers[0].fill(value)
        POOL.run(program, lib, 3)
        assert (buffers[-1] == value % 256).all()
    return run
"""


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until something is so; False when it does not become so in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def test_workers_sleep_when_there_is_nothing_to_do(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain()
    copies.run(1, lambda: pool.run(copies.program, lib, 3))
    assert until(lambda: pool._control[layout.SLEEPERS] == 2)
    copies.run(2, lambda: pool.run(copies.program, lib, 3))
    assert until(lambda: pool._control[layout.SLEEPERS] == 2)
    assert pool._control[layout.ACTIVE] == 0


def test_a_program_is_freed_with_its_last_user(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    program = chain().program
    pool.run(program, lib, 2)
    assert until(lambda: pool._control[layout.SLEEPERS] == 1)
    pool.run(program, lib, 2)
    assert until(lambda: pool._control[layout.ACTIVE] == 0)
    pool.run(chain().program, lib, 2)  # who was late then, is no more
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_a_program_is_kept_while_a_late_worker_may_look_at_its_table(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    pool._control[layout.ACTIVE] = 1  # of a worker that is late until it is taken back
    program = chain().program
    kept = weakref.ref(program)
    pool.run(program, lib, 2)
    del program
    gc.collect()
    assert kept() is not None
    assert until(lambda: pool._control[layout.SLEEPERS] == 1)
    pool._control[layout.ACTIVE] = 0

    def is_freed() -> bool:
        pool.run(chain().program, lib, 2)
        gc.collect()
        return kept() is None

    assert until(is_freed)


def test_programs_come_and_go_while_workers_are_late(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    for value in range(300):
        copies = chain(rows=1 + value % 5, size=64 + value, tiles=1 + value % 9)
        copies.run(value, lambda made=copies: pool.run(made.program, lib, 2 + value % 4))  # noqa: B023 - run at once


@pytest.mark.parametrize("callers", [2, 4])
def test_callers_in_several_threads_get_right_answers(
    lib: Library, pool: Pool, chain: Callable[..., Any], callers: int
) -> None:
    failures: list[BaseException] = []

    def call(first: int) -> None:
        try:
            copies = chain(size=1 << 14)
            for value in range(first, first + 300):
                copies.run(value, lambda: pool.run(copies.program, lib, 2))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=call, args=(17 * i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert pool._callers == pool._asked == 0


def test_callers_and_workers_are_never_more_than_cores(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "physical_cores", lambda: 4)

    def limit() -> int:
        return int(pool._control[layout.LIMIT])

    assert pool._enter(4)
    assert limit() == 4
    assert not pool._enter(4)  # works alone
    assert limit() == 3
    assert not pool._enter(1)
    assert limit() == 2
    assert not pool._enter(1)
    assert not pool._enter(1)
    assert limit() == 1  # the caller itself
    pool._leave(False)
    pool._leave(False)
    assert limit() == 2
    pool._leave(True)
    assert pool._enter(4)  # the workers are free again
    assert limit() == 2


def test_callers_are_counted_and_limited_under_one_lock(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "physical_cores", lambda: 4)

    def state() -> tuple[int, int, int]:
        return pool._callers, pool._asked, int(pool._control[layout.LIMIT])

    class Watched:
        """A lock that notes what it finds and what it leaves behind."""

        def __init__(self) -> None:
            self.seen: list[tuple[int, int, int]] = []

        def __enter__(self) -> None:
            self.seen.append(state())

        def __exit__(self, *error: object) -> None:
            self.seen.append(state())

    watched = Watched()
    monkeypatch.setattr(pool, "_lock", watched)
    pool._enter(4)
    pool._enter(4)
    pool._leave(False)
    pool._leave(True)
    assert watched.seen == [
        *[(0, 0, 0), (1, 4, 4)],
        *[(1, 4, 4), (2, 4, 3)],
        *[(2, 4, 3), (1, 4, 4)],
        *[(1, 4, 4), (0, 0, 4)],
    ]


def test_a_run_that_fails_is_not_counted_any_more(
    lib: Library, pool: Pool, chain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = chain().program
    monkeypatch.setattr(program, "pace", Pace())

    def fail(self: Pace, seconds: float, *, has_workers: bool = False) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Pace, "observe", fail)
    with pytest.raises(KeyboardInterrupt):
        pool.run(program, lib, 2)
    assert pool._callers == pool._asked == 0


def test_workers_are_hired_when_more_are_asked_for(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain()
    for workers, hired in ((2, 1), (4, 3), (3, 3)):
        copies.run(workers, lambda: pool.run(copies.program, lib, workers))  # noqa: B023 - run at once
        assert len(pool._threads) == hired


def test_one_caller_alone_gets_all_the_threads_it_asks_for(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "physical_cores", lambda: 2)
    assert pool._enter(6)
    assert pool._control[layout.LIMIT] == 6


def test_a_system_without_threads_is_no_obstacle(
    lib: Library, pool: Pool, chain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    copies = chain()
    copies.run(5, lambda: pool.run(copies.program, lib, 3))
    assert pool._threads == []


def test_a_stopped_pool_runs_in_the_callers_thread(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain()
    copies.run(1, lambda: pool.run(copies.program, lib, 2))
    pool.stop()
    assert not any(thread.is_alive() for thread in pool._threads)
    assert not pool._enter(2)  # nobody has the workers any more
    copies.run(2, lambda: pool.run(copies.program, lib, 2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_workers_of_its_own(fresh_python: Callable[..., str]) -> None:
    source = PREPARE + (
        "import os, warnings\n"
        "warnings.simplefilter('ignore')  # that threads do not survive a fork is the point\n"
        "run = chain()\n"
        "[run(i) for i in range(50)]\n"
        "stop = threading.Event()\n"
        "def others():\n"
        "    mine = chain()\n"
        "    while not stop.is_set(): mine(3)\n"
        "thread = threading.Thread(target=others); thread.start()\n"
        "for _ in range(10):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        [run(i) for i in range(50)]\n"
        "        assert len(POOL._threads) == 2\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    run(9)\n"
        "stop.set(); thread.join(); print('ok')\n"
    )
    assert fresh_python(source) == "ok\n"


def test_python_ends_while_daemons_are_in_native_code(fresh_python: Callable[..., str]) -> None:
    source = PREPARE + (
        "ready = threading.Barrier(3)\n"
        "def forever():\n"
        "    run = chain(size=1 << 20)\n"
        "    run(1); ready.wait()\n"
        "    while True: run(2)\n"
        "[threading.Thread(target=forever, daemon=True).start() for _ in range(2)]\n"
        "ready.wait(); print('ok')\n"
    )
    for _ in range(5):
        assert fresh_python(source) == "ok\n"


def test_what_is_over_quickly_is_learnt_from_the_first_runs() -> None:
    pace = Pace()
    pace.observe(5 * BRIEF)  # cold
    assert (pace.is_known, pace.is_brief) == (False, False)
    pace.observe(BRIEF / 2)
    assert (pace.is_known, pace.is_brief) == (True, True)
    slow = Pace()
    slow.observe(2 * LONG)
    assert (slow.is_known, slow.is_brief, slow.takes_workers) == (True, False, True)
    medium = Pace()
    for _ in range(TRIALS):
        assert not medium.is_known
        medium.observe(2 * SHORT)
    assert (medium.is_known, medium.is_brief, medium.takes_workers) == (True, False, True)


@pytest.mark.parametrize("gains", [False, True])
def test_short_programs_take_workers_if_they_gain(gains: bool) -> None:
    pace = Pace()
    alone = (BRIEF + SHORT) / 2
    for _ in range(TRIALS):
        assert not pace.takes_workers
        pace.observe(alone)
    pace.observe(1e-9)  # when there were no workers
    together = alone / 2 if gains else alone * 1.1
    for seconds in (20 * together, *[together] * TRIALS):
        assert (pace.is_known, pace.takes_workers) == (False, True)
        pace.observe(seconds, has_workers=True)
    assert (pace.is_known, pace.is_brief, pace.takes_workers) == (True, False, gains)


def test_a_brief_program_keeps_pythons_lock_and_the_workers_asleep(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain(rows=1, size=64)
    copies.program.pace = Pace()
    for value in range(1, 20):
        copies.run(value, lambda: pool.run(copies.program, lib, 4))
    assert copies.program.pace.is_known
    if copies.program.pace.is_brief:  # unless something else had the processor all the time
        assert pool._threads == []
