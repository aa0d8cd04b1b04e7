"""What the pool asks of the native code, and when: a library that only writes down its calls."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from delegraph_numba_cpu.instructions import executor as layout
from delegraph_numba_cpu.library.cpu import usable_processors
from delegraph_numba_cpu.program import pool as pool_module
from delegraph_numba_cpu.program.pool import SPIN_FOR_ROW, SPIN_FOR_RUN, Pool

LOOK = 1e-7
"""Seconds that this library takes for a look, at its best."""


class Clock:
    """Time that passes only when something is said to take it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Calls:
    """In the place of a library: keeps the arguments of its calls, which take a second each."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.made: list[tuple[Any, ...]] = []
        self.workers: list[threading.Thread] = []
        self.is_over = threading.Event()
        self._slowness = iter([3, 1, 2] * 10)

    def run_briefly(self, table: int) -> None:
        self._note("run_briefly", table)

    def invoke(self, control: int, table: int, threads: int) -> None:
        self._note("invoke", table, threads)

    def work(self, control: int, unused: int, unused_too: int) -> None:
        self.workers.append(threading.current_thread())
        self.is_over.wait(60)

    def end(self, control: int, unused: int, unused_too: int) -> None:
        self._note("end", control)
        self.is_over.set()

    def look(self, address: int, count: int, unused: int) -> None:
        self.clock.now += next(self._slowness) * LOOK * count

    def _note(self, *call: Any) -> None:
        self.made.append(call)
        self.clock.now += 1.0


@dataclass
class Pacing:
    """An estimate that says what a test wants, and keeps what it is told."""

    is_brief: bool = False
    is_known: bool = True
    takes_workers: bool = True
    runs_until_trial: int = 0
    observed: list[tuple[float, bool]] = field(default_factory=list)

    def observe(self, seconds: float, *, has_workers: bool = False) -> None:
        self.observed.append((seconds, has_workers))


class Asked:
    """A program of *tiles*, whose table is 7."""

    def __init__(self, tiles: int = 8, workers: int = 3, **estimate: bool) -> None:
        self.table, self.tiles, self.workers, self.run_time = 7, tiles, workers, Pacing(**estimate)
        self.header = memoryview(np.zeros(layout.HEADER_WORDS, np.int64))
        self.header[layout.THREADS] = workers


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Calls:
    clock = Clock()
    monkeypatch.setattr(pool_module, "perf_counter", clock)
    return Calls(clock)


@pytest.fixture
def pool(library: Calls) -> Iterator[Pool]:
    made = Pool()
    made.most_threads = 64
    yield made
    made.stop()


def run(pool: Pool, library: Any, program: Any) -> None:
    pool.run(program, library)


@pytest.mark.parametrize(
    ("program", "call"),
    [
        (Asked(workers=4, is_brief=True), ("run_briefly", 7)),
        (Asked(workers=1), ("invoke", 7, 1)),
        (Asked(workers=4, tiles=1), ("invoke", 7, 1)),
        (Asked(workers=4, takes_workers=False), ("invoke", 7, 1)),
        (Asked(workers=2), ("invoke", 7, 2)),
        (Asked(workers=4, tiles=2), ("invoke", 7, 4)),
    ],
)
def test_workers_are_for_programs_with_parts_that_gain_by_them(
    pool: Pool, library: Calls, program: Asked, call: tuple[Any, ...]
) -> None:
    run(pool, library, program)
    assert library.made == [call]
    assert len(pool.crew.threads) == (call[-1] - 1 if call[0] == "invoke" else 0)


def test_a_run_has_no_more_threads_than_the_machine_has_processors(
    library: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    pool = Pool()
    for threads in (usable_processors(), *[usable_processors() + 5] * 2):
        pool.warn_of(threads)
    assert len(caplog.messages) == 1
    assert f"num_threads is {usable_processors() + 5}; a run takes" in caplog.text
    run(pool, library, Asked(workers=usable_processors() + 5))
    assert library.made == [("invoke", 7, usable_processors())]
    pool.stop()


@pytest.mark.parametrize("workers", [1, 3])
def test_the_time_of_a_program_is_told_until_it_is_known(
    pool: Pool, library: Calls, workers: int
) -> None:
    new, known = Asked(workers=workers, is_known=False), Asked(workers=workers)
    cut_short = Asked(workers=workers, is_known=False)
    cut_short.header[layout.IS_CANCELLED] = 1
    run(pool, library, Asked())  # so that there are workers
    for program in (new, known, cut_short):
        run(pool, library, program)
    assert new.run_time.observed == [(pytest.approx(1.0), workers > 1)]
    assert known.run_time.observed == cut_short.run_time.observed == []


def test_workers_never_keep_python_from_ending(pool: Pool, library: Calls) -> None:
    for workers in (3, 5, 2):
        run(pool, library, Asked(workers=workers))
    assert [thread.daemon for thread in pool.crew.threads] == [True] * 4


def test_how_long_to_look_follows_the_fastest_looks(pool: Pool, library: Calls) -> None:
    control = pool.crew.control
    run(pool, library, Asked(workers=2))
    assert control[layout.SPIN_FOR_RUN] == pytest.approx(SPIN_FOR_RUN / LOOK, abs=2)
    assert control[layout.SPIN_FOR_ROW] == pytest.approx(SPIN_FOR_ROW / LOOK, abs=2)
    control[layout.SPIN_FOR_RUN] = 0
    run(pool, library, Asked(workers=4))
    assert control[layout.SPIN_FOR_RUN] == 0  # it is measured once


def test_a_stopped_pool_ends_its_workers_and_hires_no_others(pool: Pool, library: Calls) -> None:
    run(pool, library, Asked(workers=3))
    pool.stop()
    assert library.made[-1] == ("end", pool.crew.control.ctypes.data)
    assert not any(thread.is_alive() for thread in pool.crew.threads)
    run(pool, library, Asked(workers=5))
    assert library.made[-1] == ("invoke", 7, 1)
    assert len(pool.crew.threads) == 2


def test_a_pool_without_workers_has_nobody_to_stop(pool: Pool, library: Calls) -> None:
    run(pool, library, Asked(workers=1))
    pool.stop()
    assert library.made == [("invoke", 7, 1)]


def test_in_a_new_pool_nobody_works_or_calls(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "physical_cores", lambda: 17)
    words = Pool().crew.control.tolist()
    assert words.pop(layout.KEEPS_APART) == (sys.platform == "linux")
    assert words.pop(layout.CORES) == 17
    assert words.pop(layout.TURN) < 0
    assert not any(words)
    assert pool.crew.threads == []


def test_a_pool_hears_of_forks_and_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[dict[str, Any]] = []
    ends: list[Any] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **calls: forks.append(calls), raising=False)
    monkeypatch.setattr(atexit, "register", ends.append)
    pool = Pool()
    crew = pool.crew
    assert pool.crew is crew
    (fork,) = forks
    fork["after_in_child"]()
    assert pool.crew is not crew
    assert ends == [pool.stop]
    monkeypatch.delattr(os, "register_at_fork")  # a system without forks
    assert Pool().stop in ends
    assert len(forks) == 1
