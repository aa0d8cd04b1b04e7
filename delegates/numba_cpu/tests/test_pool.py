"""The pool: right answers from several threads, forks, exits; sleeping workers, freed memory."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.program.pool import Pool
from delegraph_numba_cpu.program.program import Program
from delegraph_numba_cpu.program.run_time_estimate import (
    BRIEF,
    FIRST_RUNS,
    GAIN,
    LONG,
    ORDER,
    RUNS,
    SHARED_TRIALS,
    SHORT,
    TINY,
    TRIALS,
    RunTimeEstimate,
)

PREPARE = f"""
import sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
from copying_chain import Chain
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.kernel_library import library
from delegraph_numba_cpu.program.pool import POOL

POOL.most_threads = 3

def chain(size=1 << 16):
    made = Chain(library(supported_levels()[0]), 20, size, workers=3)
    return lambda value: made.run_in(POOL, value)
"""


def until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until something is so; False when it does not become so in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def assert_is_idle(pool: Pool) -> None:
    """Assert that nobody calls, and nobody has the workers."""
    control = pool.crew.control
    assert (control[layout.CALLERS], control[layout.IS_LED]) == (0, 0)
    assert control[layout.TURN] < 0


def test_workers_sleep_when_there_is_nothing_to_do(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain(workers=3)
    for value in (1, 2):
        copies.run_in(pool, value)
        assert until(lambda: pool.crew.control[layout.SLEEPERS] == 2)
    assert pool.crew.control[layout.WAITERS] == 0


def test_a_program_is_freed_with_its_last_user(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    program = chain().program
    pool.run(program, lib)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None


def test_programs_come_and_go_while_workers_are_late(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    for value in range(300):
        sizes = {"rows": 1 + value % 5, "size": 64 + value, "tiles": 1 + value % 9}
        chain(workers=2 + value % 4, **sizes).run_in(pool, value)


@pytest.mark.parametrize("callers", [2, 4])
def test_callers_in_several_threads_get_right_answers(
    lib: Library, pool: Pool, chain: Callable[..., Any], callers: int
) -> None:
    failures: list[BaseException] = []

    def call(first: int) -> None:
        try:
            copies = chain(size=1 << 14)
            for value in range(first, first + 300):
                copies.run_in(pool, value)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    threads = [threading.Thread(target=call, args=(17 * i,)) for i in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert_is_idle(pool)


def test_one_caller_alone_gets_all_the_threads_it_asks_for(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    meeting = threading.Barrier(6)
    pool.run(python_kernel(lambda tile, worker: meeting.wait(60), tiles=6, workers=6), lib)
    assert_is_idle(pool)


def test_callers_and_workers_are_never_more_than_cores(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    pool.crew.control[layout.CORES] = 4
    pool.run(python_kernel(lambda tile, worker: None, workers=4), lib)  # so that there are workers
    is_in, may_go = threading.Event(), threading.Event()

    def stay(tile: int, worker: int) -> None:
        is_in.set()
        may_go.wait(60)

    other = threading.Thread(target=pool.run, args=(python_kernel(stay, tiles=1, workers=4), lib))
    other.start()
    is_in.wait(60)
    meeting = threading.Barrier(3)
    met: set[int] = set()

    def meet(tile: int, worker: int) -> None:
        met.add(worker)
        if tile < 3:
            meeting.wait(60)

    pool.run(python_kernel(meet, tiles=200, workers=4), lib)
    assert met == {0, 1, 2} or len(met) == 3
    assert 3 not in met
    may_go.set()
    other.join()
    assert_is_idle(pool)


def test_who_calls_while_another_has_the_workers_works_alone(
    lib: Library, pool: Pool, python_kernel: Callable[..., Program]
) -> None:
    seen: set[int] = set()
    beside = python_kernel(lambda tile, worker: seen.add(worker), tiles=50, workers=4)

    def call(tile: int, worker: int) -> None:
        if tile == 0:
            pool.run(beside, lib)

    leading = python_kernel(call, workers=4)
    pool.run(leading, lib)
    assert seen == {0}
    assert (leading.header[layout.THREADS], beside.header[layout.THREADS]) == (4, 1)
    pool.run(beside, lib)
    assert beside.header[layout.THREADS] == 4  # the workers are free again


def test_workers_are_hired_when_more_are_asked_for(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    for workers, hired in ((2, 1), (4, 3), (3, 3)):
        chain(workers=workers).run_in(pool, workers)
        assert len(pool.crew.threads) == hired


def test_a_system_without_threads_is_no_obstacle(
    lib: Library, pool: Pool, chain: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    chain(workers=3).run_in(pool, 5)
    assert pool.crew.threads == []


def test_a_stopped_pool_runs_in_the_callers_thread(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain()
    copies.run_in(pool, 1)
    assert copies.program.header[layout.THREADS] == 2
    pool.stop()
    assert not any(thread.is_alive() for thread in pool.crew.threads)
    copies.run_in(pool, 2)
    assert copies.program.header[layout.THREADS] == 1


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
        "        assert len(POOL.crew.threads) == 2\n"
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


@pytest.mark.parametrize(("may_take_workers", "least"), [(False, BRIEF), (True, TINY)])
def test_what_is_over_quickly_is_learnt_from_the_first_runs(
    may_take_workers: bool, least: float
) -> None:
    run_time = RunTimeEstimate(may_take_workers)
    run_time.observe(5 * least)  # cold
    assert (run_time.is_known, run_time.is_brief) == (False, False)
    run_time.observe(least / 2)
    assert (run_time.is_known, run_time.is_brief) == (True, True)
    slow = RunTimeEstimate()
    slow.observe(2 * LONG)
    assert (slow.is_known, slow.is_brief, slow.takes_workers) == (True, False, True)
    medium = RunTimeEstimate()
    for _ in range(TRIALS):
        assert not medium.is_known
        medium.observe(2 * SHORT)
    assert (medium.is_known, medium.is_brief, medium.takes_workers) == (True, False, True)


def test_one_thread_needs_no_trial_of_workers() -> None:
    run_time = RunTimeEstimate(may_take_workers=False)
    for _ in ORDER:
        assert (run_time.is_known, run_time.takes_workers) == (False, False)
        run_time.observe((BRIEF + SHORT) / 2)
    assert (run_time.is_known, run_time.is_brief, run_time.takes_workers) == (True, False, False)


def test_a_brief_program_stays_brief_after_a_first_run_that_was_interrupted() -> None:
    run_time = RunTimeEstimate(may_take_workers=False)
    run_time.observe(2 * LONG)
    assert not run_time.is_known
    run_time.observe(BRIEF / 2)
    assert (run_time.is_known, run_time.is_brief) == (True, True)


@pytest.mark.parametrize("gains", [False, True])
@pytest.mark.parametrize("alone", [(TINY + BRIEF) / 2, (BRIEF + SHORT) / 2])
def test_short_programs_take_workers_if_they_gain(gains: bool, alone: float) -> None:
    run_time = RunTimeEstimate()
    for _ in range(TRIALS):
        assert not run_time.takes_workers
        run_time.observe(1.4 * alone)  # cold
    run_time.observe(1e-9)  # when there were no workers
    together = alone * GAIN * (0.99 if gains else 1.01)
    for seconds in (20 * together, *[together] * (SHARED_TRIALS - 1)):
        assert (run_time.is_known, run_time.takes_workers) == (False, True)
        run_time.observe(seconds, has_workers=True)
    for _ in range(TRIALS):
        assert (run_time.is_known, run_time.takes_workers) == (False, False)
        run_time.observe(alone)
    is_brief = not gains and alone < BRIEF
    assert (run_time.is_known, run_time.is_brief, run_time.takes_workers) == (True, is_brief, gains)


def test_programs_that_run_alone_are_tried_again_from_time_to_time() -> None:
    run_time, counts = RunTimeEstimate(), []
    for _ in range(3):
        for takes_workers in ORDER:
            assert (run_time.is_known, run_time.takes_workers) == (False, takes_workers)
            run_time.observe((TINY + BRIEF) / 2, has_workers=takes_workers)
        assert (run_time.is_brief, run_time.takes_workers) == (True, False)
        counts.append(run_time.runs_until_trial)
        for _ in range(counts[-1]):
            assert run_time.is_known
            run_time.count_run()
    assert counts == [FIRST_RUNS, RUNS, RUNS]


def test_a_later_trial_finds_that_workers_gain() -> None:
    run_time = RunTimeEstimate()
    for together in (BRIEF, TINY / 2):
        for takes_workers in ORDER:
            run_time.observe(together if takes_workers else TINY * 2, has_workers=takes_workers)
        for _ in range(run_time.runs_until_trial):
            run_time.count_run()
    assert (run_time.is_known, run_time.is_brief, run_time.takes_workers) == (True, False, True)


def test_workers_have_begun_before_the_first_run_with_them(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    chain(workers=2).run_in(pool, 1)
    assert pool.crew.control[layout.HIRED] == 1


def test_a_brief_program_keeps_pythons_lock_and_the_workers_asleep(
    lib: Library, pool: Pool, chain: Callable[..., Any]
) -> None:
    copies = chain(rows=1, size=64, workers=4)
    copies.program.run_time = RunTimeEstimate()
    for value in range(1, 20):
        copies.run_in(pool, value)
    assert copies.program.run_time.is_known
    if copies.program.run_time.is_brief:  # unless something else had the processor all the time
        assert pool.crew.threads == []
