"""Measures runs in turn, so that a disturbance of the machine affects all of them equally.

A block is made of rounds. In a round each takes a turn, in a random order, and then another one in
the reverse order (A B B A): what drifts meanwhile disturbs all alike, and no order that keeps step
with something else on the machine can favour one. A turn is a pause, some runs that do not count,
and some that do.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.benchmarking.verdicts import Ratio, block_effects, ratio
from delegraph.tools.progress import Progress, untold

TimedRun = Callable[[], float]
"""Runs once, and returns the seconds that it took."""

Round = tuple[Sequence[float], Sequence[float]]
"""The seconds of each run of two turns."""

Block = list[Round]
"""The rounds of one that took turns with others."""

BLOCKS = 12

TURN_SECONDS = 0.005
"""How long the runs of a turn that count last, about."""

LEAST_RUNS, MOST_RUNS = 5, 50
"""Runs of a turn that count, at least and at most, unless they are slow."""

PAUSE = 0.003
"""Seconds before each turn, in which the threads of the others go to sleep."""

SLOW = 0.02
"""Seconds of a run that counts alone in its turn. One before it does not, as in all turns: whoever
comes after others finds their data in the caches, and has to fetch its own."""

_LONGEST_WARM_UP = 0.5

Result = TypeVar("Result")

Statistic = Callable[[Sequence[float]], Any]


def interleave(
    runs: Mapping[str, Callable[[], object]],
    seconds: float,
    *,
    blocks: int = BLOCKS,
    seed: int = 0,
    progress: Progress = untold,
) -> dict[str, list[Block]]:
    """Return the times of functions that run in turn in this process.

    >>> times = interleave({"sum": lambda: sum(range(99)), "max": lambda: max(range(99))}, 0.1)
    >>> len(times["sum"]), ratio_of(times["sum"], times["max"]).value > 0
    (12, True)

    Args:
        runs: by name; each is called without arguments.
        seconds: how long it may take all in all, about; each block has one round at least.
        blocks: into how many parts the time is split, for the intervals of ratios.
        seed: of the order of turns.
        progress: is told between the rounds.

    Raises:
        Exception: what the first of *runs* that fails raises.
    """
    return interleave_timed(
        {name: stopwatch(run) for name, run in runs.items()},
        seconds,
        blocks=blocks,
        seed=seed,
        progress=progress,
    )


def interleave_timed(
    runs: Mapping[str, TimedRun],
    seconds: float,
    *,
    blocks: int = BLOCKS,
    seed: int = 0,
    progress: Progress = untold,
) -> dict[str, list[Block]]:
    """Return blocks like :func:`interleave`, for functions that return their own run time."""
    rng = np.random.default_rng(seed)
    turns = Turns(runs)
    turns.warm_up()
    found: dict[str, list[Block]] = {name: [] for name in runs}
    for number in range(blocks):
        times = turns.block(seconds / blocks, rng, as_block(progress, number, blocks))
        for error in turns.failures.values():
            raise error
        for name, block in times.items():
            found[name].append(block)
    return found


def ratio_of(
    times: Sequence[Block], others: Sequence[Block], statistic: Statistic = np.min
) -> Ratio:
    """Return the ratio of the times of two functions that ran in turn.

    Args:
        times: of the one, by block.
        others: of the other.
        statistic: what stands for a turn; see :func:`effects_of`.
    """
    return ratio(effects_of(times, others, statistic))


def effects_of(
    times: Sequence[Block], others: Sequence[Block], statistic: Statistic = np.min
) -> NDArray[np.float64]:
    """Logarithm of the ratio in each block, ``[blocks]``, from which verdicts are made.

    By default the quickest run stands for a turn: other work on the machine only ever makes a run
    longer. Of both turns as many runs count, for more runs have a quicker one among them.

    Args:
        times: of the one, by block.
        others: of the other, which took turns with it.
        statistic: what stands for a turn.
    """
    pairs = [_turn_times(one, other, statistic) for one, other in zip(times, others, strict=True)]
    return block_effects([one for one, _ in pairs], [other for _, other in pairs])


def _turn_times(
    block: Block, other: Block, statistic: Statistic
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one statistic per turn for both sides of a block, ``[rounds, 2]`` each."""
    runs = min(len(block[0][0]), len(other[0][0]))
    one, two = (
        np.array([[statistic(turn[:runs]) for turn in pair] for pair in rounds])
        for rounds in (block, other)
    )
    return one, two


def all_times(blocks: Sequence[Block]) -> NDArray[np.float64]:
    """Return the seconds of all counted runs, ``[runs]``."""
    return np.concatenate([np.asarray(turn) for block in blocks for pair in block for turn in pair])


def round_order(names: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return the order of turns in a round: a random order, followed by its reverse."""
    order = [names[i] for i in rng.permutation(len(names))]
    return order + order[::-1]


def stopwatch(run: Callable[[], object]) -> TimedRun:
    """Return a function that calls *run* and returns its time in seconds."""

    def timed() -> float:
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    return timed


class Turns:
    """Measures runs in turn; a run that fails is left out from then on.

    Attributes:
        failures: the errors of those that failed.
    """

    def __init__(self, runs: Mapping[str, TimedRun]) -> None:
        self._runs = runs
        self._counts: dict[str, tuple[int, int]] = {}  # runs of a turn: that do not count, that do
        self.failures: dict[str, Exception] = {}

    def warm_up(self) -> None:
        """Run each function once and note its time, before the first block."""
        for name in self._runs:
            self._attempt(self._warm_up, name)

    def block(
        self, seconds: float, rng: np.random.Generator, progress: Progress = untold
    ) -> dict[str, Block]:
        """Measure for about *seconds*, at least one round, all runs that have not failed."""
        times: dict[str, Block] = {name: [] for name in self._left()}
        with _no_collector():
            begin, elapsed = time.perf_counter(), 0.0
            while self._left():
                for name, turns in self._round(round_order(self._left(), rng)).items():
                    times[name].append(turns)
                elapsed = time.perf_counter() - begin
                progress("", min(elapsed, seconds), seconds)
                if elapsed >= seconds:
                    break
        return {name: times[name] for name in self._left()}

    def _left(self) -> list[str]:
        return [name for name in self._runs if name not in self.failures]

    def _round(self, order: Sequence[str]) -> dict[str, Round]:
        """Return both turns of each run that does not fail."""
        turns = [(name, self._attempt(self._turn, name)) for name in order]
        found: dict[str, Round] = {}
        for name in self._left():
            first, second = (turn for whose, turn in turns if whose == name and turn is not None)
            found[name] = (first, second)
        return found

    def _attempt(self, work: Callable[[str], Result], name: str) -> Result | None:
        """Call *work* for a run; return None if the run failed before or fails now."""
        if name in self.failures:
            return None
        try:
            return work(name)
        except Exception as error:  # noqa: BLE001 - who fails is listed, and the others go on
            self.failures[name] = error
            return None

    def _warm_up(self, name: str) -> None:
        run = self._runs[name]
        times = [run(), run()]  # the first does what is put off until then
        while len(times) < 5 and sum(times) < _LONGEST_WARM_UP:  # the quickest may be disturbed
            times.append(run())
        quickest = min(times)
        counted = 1
        if quickest < SLOW:
            counted = min(MOST_RUNS, max(LEAST_RUNS, int(TURN_SECONDS / max(quickest, 1e-9))))
        self._counts[name] = (math.ceil(counted / 10), counted)

    def _turn(self, name: str) -> list[float]:
        run, (uncounted, counted) = self._runs[name], self._counts[name]
        time.sleep(PAUSE)
        for _ in range(uncounted):
            run()
        return [run() for _ in range(counted)]


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the garbage collector from coming into single runs."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def as_block(progress: Progress, number: int, count: int) -> Progress:
    """Progress of block *number* of *count*, counted from 0, as part of *progress*."""

    def told(what: str, done: float, total: float | None) -> None:
        share = done / total if total else 0.0
        progress(f"block {number + 1} of {count}", number + share, count)

    return told
