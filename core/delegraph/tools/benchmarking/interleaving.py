"""Measures runs in turn, so that a disturbance of the machine affects all of them equally.

A block is a series of rounds. In a round each function takes a turn, in a random order, and then a
second turn in the reverse order (A B B A). So a slow drift disturbs all functions alike, and no
periodic disturbance can favour one of them. A turn is a pause, some runs that are not counted, and
some counted runs.
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
from delegraph.tools.progress import Progress, part_of, untold

TimedRun = Callable[[], float]
"""Function that runs once and returns the seconds that the run took."""

Round = tuple[Sequence[float], Sequence[float]]
"""Seconds of each counted run in the two turns that a function has in a round."""

Block = list[Round]
"""The rounds of one function in one block."""

BLOCKS = 12

TURN_SECONDS = 0.005
"""Approximate duration of the counted runs of a turn, in seconds."""

LEAST_RUNS, MOST_RUNS = 5, 50
"""Least and largest number of counted runs in a turn; slow functions have fewer."""

PAUSE = 0.003
"""Seconds of pause before each turn, in which the threads of other functions go to sleep."""

SLOW = 0.02
"""Duration of a run, in seconds, from which on a turn has a single counted run.

An uncounted run comes before the counted one, as in all turns. It brings the function's data into
the caches, which hold the data of other functions.
"""

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
        runs: mapping from a name to a function without arguments.
        seconds: approximate time for all blocks; each block has at least one round.
        blocks: number of blocks; the intervals of ratios are computed from them.
        seed: seed of the order of turns.
        progress: function that is called between the rounds.

    Raises:
        Exception: the exception of the first function that fails.
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
    """Return blocks of the run times of functions that take turns and return their own run time.

    The arguments are those of :func:`interleave`.
    """
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
        times: blocks of the first function.
        others: blocks of the second function.
        statistic: function that computes the figure for a turn; see :func:`effects_of`.
    """
    return ratio(effects_of(times, others, statistic))


def effects_of(
    times: Sequence[Block], others: Sequence[Block], statistic: Statistic = np.min
) -> NDArray[np.float64]:
    """Return the logarithm of the ratio of two functions' times in each block, ``[blocks]``.

    By default the quickest run represents a turn, because other work on the machine can only make a
    run longer. Both functions contribute the same number of runs, because the quickest of more runs
    tends to be quicker.

    Args:
        times: blocks of the first function.
        others: blocks of the second function, which took turns with the first.
        statistic: function that computes the figure for a turn.
    """
    pairs = [_turn_times(one, other, statistic) for one, other in zip(times, others, strict=True)]
    return block_effects([one for one, _ in pairs], [other for _, other in pairs])


def _turn_times(
    block: Block, other: Block, statistic: Statistic
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one figure for each turn of two blocks, as two arrays ``[rounds, 2]``.

    *statistic* computes the figure from the seconds of a turn's runs.
    """
    runs = min(len(block[0][0]), len(other[0][0]))
    one, two = (
        np.array([[statistic(turn[:runs]) for turn in pair] for pair in rounds])
        for rounds in (block, other)
    )
    return one, two


def all_times(blocks: Sequence[Block]) -> NDArray[np.float64]:
    """Return the seconds of all counted runs in *blocks*, ``[runs]``."""
    return np.concatenate([np.asarray(turn) for block in blocks for pair in block for turn in pair])


def round_order(names: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Return the order of turns in a round: *names* in random order, then in its reverse.

    Args:
        names: names of the functions.
        rng: source of random numbers.
    """
    order = [names[i] for i in rng.permutation(len(names))]
    return order + order[::-1]


def stopwatch(run: Callable[[], object]) -> TimedRun:
    """Return a function that calls *run* and returns the time of the call in seconds."""

    def timed() -> float:
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    return timed


class Turns:
    """Measures functions in turn; a function that fails is left out afterwards.

    Attributes:
        failures: mapping from the name of each function that failed to its error.
    """

    def __init__(self, runs: Mapping[str, TimedRun]) -> None:
        self._runs = runs
        self._counts: dict[str, tuple[int, int]] = {}  # uncounted and counted runs of a turn
        self.failures: dict[str, Exception] = {}

    def warm_up(self) -> None:
        """Run each function once and note its run time, before the first block."""
        for name in self._runs:
            self._attempt(self._warm_up, name)

    def block(
        self, seconds: float, rng: np.random.Generator, progress: Progress = untold
    ) -> dict[str, Block]:
        """Measure the functions that have not failed, for about *seconds*, at least one round.

        Args:
            seconds: duration of the measurement.
            rng: source of random numbers.
            progress: function that is told the progress.
        """
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
        """Return both turns of each function that does not fail, measured in the given *order*."""
        turns = [(name, self._attempt(self._turn, name)) for name in order]
        found: dict[str, Round] = {}
        for name in self._left():
            first, second = (turn for whose, turn in turns if whose == name and turn is not None)
            found[name] = (first, second)
        return found

    def _attempt(self, work: Callable[[str], Result], name: str) -> Result | None:
        """Return the result of *work* for the function *name*; None if it fails now or has failed.

        A new failure is stored in :attr:`failures`.
        """
        if name in self.failures:
            return None
        try:
            return work(name)
        except Exception as error:  # noqa: BLE001 - who fails is listed, and the others go on
            self.failures[name] = error
            return None

    def _warm_up(self, name: str) -> None:
        run = self._runs[name]
        times = [run(), run()]  # the first run does postponed work
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
    """Context in which the garbage collector is off, so that it does not delay single runs."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def as_block(progress: Progress, number: int, count: int) -> Progress:
    """Return a progress function for block *number* (from 0) of *count* blocks.

    It reports the progress of all blocks to *progress*.
    """
    part = part_of(progress, number, count)
    return lambda what, done, total: part(f"block {number + 1} of {count}", done, total)
