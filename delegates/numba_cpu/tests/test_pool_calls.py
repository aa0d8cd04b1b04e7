"""What the pool asks of the native code, and when: a library that only writes down its calls."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from delegraph_numba_cpu import pool as pool_module
from delegraph_numba_cpu.blocks import executor as layout
from delegraph_numba_cpu.pool import SPIN_FOR_ROW, SPIN_FOR_RUN, Pool

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
        self.workers: list[tuple[int, bool]] = []
        self._slowness = iter([3, 1, 2] * 10)

    def run_briefly(self, table: int, worker: int, unused: int) -> None:
        self._note("run_briefly", table, worker)

    def run(self, table: int, worker: int, unused: int) -> None:
        self._note("run", table, worker)

    def invoke(self, control: int, table: int, unused: int) -> None:
        self._note("invoke", table)

    def work(self, control: int, worker: int, unused: int) -> None:
        self.workers.append((worker, threading.current_thread().daemon))

    def look(self, address: int, count: int, unused: int) -> None:
        self.clock.now += next(self._slowness) * LOOK * count

    def _note(self, *call: Any) -> None:
        self.made.append(call)
        self.clock.now += 1.0


@dataclass
class Pacing:
    """A pace that says what a test wants, and keeps what it is told."""

    is_brief: bool = False
    is_known: bool = True
    takes_workers: bool = True
    observed: list[tuple[float, bool]] = field(default_factory=list)

    def observe(self, seconds: float, *, has_workers: bool = False) -> None:
        self.observed.append((seconds, has_workers))


class Asked:
    """A program of *tiles*, whose table is 7."""

    def __init__(self, tiles: int = 8, **pace: bool) -> None:
        self.table, self.tiles, self.pace = 7, tiles, Pacing(**pace)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Calls:
    clock = Clock()
    monkeypatch.setattr(pool_module, "perf_counter", clock)
    return Calls(clock)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made._library = None  # whose workers ended by themselves
    made.stop()


def run(pool: Pool, library: Any, program: Any, workers: int) -> None:
    pool.run(program, library, workers)


@pytest.mark.parametrize(
    ("program", "workers", "call"),
    [
        (Asked(is_brief=True), 4, ("run_briefly", 7, 0)),
        (Asked(), 1, ("run", 7, 0)),
        (Asked(tiles=1), 4, ("run", 7, 0)),
        (Asked(takes_workers=False), 4, ("run", 7, 0)),
        (Asked(), 2, ("invoke", 7)),
        (Asked(tiles=2), 4, ("invoke", 7)),
    ],
)
def test_workers_are_for_programs_with_parts_that_gain_by_them(
    pool: Pool, library: Calls, program: Asked, workers: int, call: tuple[Any, ...]
) -> None:
    run(pool, library, program, workers)
    assert library.made == [call]
    assert len(pool._threads) == (workers - 1 if call[0] == "invoke" else 0)
    assert pool._callers == pool._asked == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_the_time_of_a_program_is_told_until_it_is_known(
    pool: Pool, library: Calls, workers: int
) -> None:
    new, known = Asked(is_known=False), Asked()
    run(pool, library, Asked(), 3)  # so that there are workers
    for program in (new, known):
        run(pool, library, program, workers)
    assert new.pace.observed == [(pytest.approx(1.0), workers > 1)]
    assert known.pace.observed == []


def test_workers_are_numbered_from_1_and_never_keep_python_from_ending(
    pool: Pool, library: Calls
) -> None:
    run(pool, library, Asked(), 3)
    run(pool, library, Asked(), 5)
    run(pool, library, Asked(), 2)
    for thread in pool._threads:
        thread.join(10)
    assert sorted(library.workers) == [(1, True), (2, True), (3, True), (4, True)]


def test_an_interrupt_while_workers_start_gives_no_number_twice(
    pool: Pool, library: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(pool, library, Asked(), 4)
    run(pool, library, Asked(), 4)
    for thread in pool._threads:
        thread.join()
    assert sorted(number for number, _ in library.workers) == [1, 2, 3]


def test_how_long_to_look_follows_the_fastest_looks(pool: Pool, library: Calls) -> None:
    run(pool, library, Asked(), 2)
    assert pool._control[layout.SPIN_FOR_RUN] == pytest.approx(SPIN_FOR_RUN / LOOK, abs=2)
    assert pool._control[layout.SPIN_FOR_ROW] == pytest.approx(SPIN_FOR_ROW / LOOK, abs=2)
    pool._control[layout.SPIN_FOR_RUN] = 0
    run(pool, library, Asked(), 4)
    assert pool._control[layout.SPIN_FOR_RUN] == 0  # it is measured once


def test_a_stopped_pool_wakes_its_workers_by_a_run_of_nothing(pool: Pool, library: Calls) -> None:
    tables = []

    def keep(control: int, table: int, unused: int) -> None:
        tables.append((control, list(layout_of(table))))

    run(pool, library, Asked(), 3)
    library.invoke = keep  # type: ignore[method-assign]  # sees the table while it is there
    pool.stop()
    assert pool._control[layout.STOP]
    assert tables == [(pool._control.ctypes.data, [0] * layout.HEADER_WORDS)]
    pool.stop()
    assert not any(thread.is_alive() for thread in pool._threads)
    run(pool, library, Asked(), 3)
    assert library.made == [("invoke", 7), ("run", 7, 0)]


def layout_of(table: int) -> Iterator[int]:
    """The words of a table's header."""
    return iter((ctypes.c_int64 * layout.HEADER_WORDS).from_address(table))


def test_a_pool_without_workers_has_nobody_to_stop(pool: Pool, library: Calls) -> None:
    run(pool, library, Asked(), 1)
    pool.stop()
    assert not pool._control[layout.STOP]
    assert library.made == [("run", 7, 0)]


def test_a_new_pool_has_nobody_and_all_its_words_are_0_but_the_nap(pool: Pool) -> None:
    words = pool._control.tolist()
    assert words.pop(layout.NAP_NANOSECONDS) == pool_module.NAP
    assert not any(words)
    assert (pool._callers, pool._asked, pool._threads) == (0, 0, [])


def test_a_pool_hears_of_forks_and_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[dict[str, Any]] = []
    ends: list[Any] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **calls: forks.append(calls), raising=False)
    monkeypatch.setattr(atexit, "register", ends.append)
    pool = Pool()
    assert forks == [{"after_in_child": pool._start}]
    assert ends == [pool.stop]
    monkeypatch.delattr(os, "register_at_fork")  # a system without forks
    assert Pool().stop in ends
    assert len(forks) == 1
