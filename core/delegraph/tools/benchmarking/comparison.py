"""``compare``: measures whether a set-up is faster than other set-ups, slower, or equally fast."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from delegraph.delegation.html_tables import html_table
from delegraph.errors import ArgumentError, DelegraphError
from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.block_process import (
    BlockRequest,
    BlockTimes,
    block_here,
    block_in_a_process,
)
from delegraph.tools.benchmarking.cautions import busy
from delegraph.tools.benchmarking.handed_on import HandedOn
from delegraph.tools.benchmarking.interleaving import (
    BLOCKS,
    Block,
    all_times,
    as_block,
    effects_of,
    ratio_of,
)
from delegraph.tools.benchmarking.machine import Machine, OtherWork, machine
from delegraph.tools.benchmarking.threads import different_threads, threads_text
from delegraph.tools.benchmarking.verdicts import LEAST_BLOCKS, SAME_WITHIN, Ratio, Verdict, judge
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

SECONDS = 12.0

_ONE, _AGAIN = "one", "again"


DEFINITIONS = {
    "ratio": "time of the one by that of the other: the median over blocks of the median log-ratio "
    "of rounds, the quickest run of each turn; low and high: 95 % of bootstrap resamples of blocks",
    "floor": "how far from 1 the interval of the one by itself reaches",
    "variation": "standard deviation of the log-ratio from block to block, by the quartiles",
    "blocks": "seconds of invoke alone, by block, round, turn and run",
}
"""Mapping from the name of each figure in JSON to its definition."""


@dataclass(frozen=True, slots=True)
class Timed(JsonRecord):
    """Run times of one set-up, measured in turn with other set-ups.

    Attributes:
        name: description of the set-up in one line.
        setup: the set-up, as ``Setup.to_json`` returns it.
        blocks: seconds of each run, by block, round and turn; empty if the set-up failed.
        failure: why the set-up failed; None if it did not.
        verdict: verdict on the tested set-up against this one; None for the tested set-up itself,
            and after a failure.
        handed_on: states, such as KV caches, that each run passes to the next run; None if there
            are none.
        memory: bytes of resident memory that creating the set-up and its first run added to a new
            process, as the median over blocks in which it was created first; None if there are
            none, or if the system does not report memory.
        threads: largest number of threads of a run; None after a failure, or if a delegate chooses
            it and does not report it.
    """

    json_properties: ClassVar = {
        "error": "error",
        "median": "median",
        "tokens_per_second": "tokens_per_second",
    }

    name: str
    setup: Mapping[str, Any]
    blocks: Sequence[Block] = ()
    failure: Exception | None = field(default=None, metadata={"json_key": None})
    verdict: Verdict | None = None
    handed_on: HandedOn | None = None
    memory: int | None = None
    threads: int | None = None

    @property
    def error(self) -> str:
        """Text of the set-up's failure; empty when it did not fail."""
        if self.failure is None or isinstance(self.failure, DelegraphError):
            return str(self.failure or "")
        return f"{type(self.failure).__name__}: {self.failure}"

    @property
    def median(self) -> float | None:
        """Median of all run times in seconds; None after a failure."""
        return float(np.median(all_times(self.blocks))) if self.blocks else None

    @property
    def tokens_per_second(self) -> float | None:
        """Number of tokens per second at the median; None after a failure, or without tokens."""
        if self.handed_on is None or self.median is None:
            return None
        return self.handed_on.per_second(self.median)


@dataclass(frozen=True, slots=True)
class Comparison(JsonRecord):
    """Run times of one set-up and of the set-ups compared with it.

    Attributes:
        one: the tested set-up, which all verdicts are about.
        again: the control: the tested set-up measured a second time, as if it were another.
        others: the set-ups with which it is compared.
        seconds: approximate time for all turns, without the creation of interpreters.
        seed: seed of the order of turns, and of random inputs.
        same_within: the largest difference that counts as equal, as a share.
        processes: whether each block ran in a separate process.
        signature: name of the called signature; None means the whole models.
        machine: the machine on which the figures were measured.
        cautions: reasons why the figures may mislead, in words.
    """

    json_properties: ClassVar = {"control": "control", "definitions": "definitions"}

    definitions: ClassVar = DEFINITIONS
    one: Timed
    again: Timed
    others: tuple[Timed, ...]
    seconds: float
    seed: int
    same_within: float
    processes: bool
    signature: str | None
    machine: Machine
    cautions: tuple[str, ...] = ()

    @property
    def control(self) -> Ratio:
        """Ratio of the set-up's times to a second measurement of the same set-up."""
        return ratio_of(self.one.blocks, self.again.blocks)

    def words_on(self, other: Timed) -> str:
        """Return the verdict against another set-up, with the numbers of threads if they differ.

        The text is empty if there is no verdict.
        """
        if other.verdict is None:
            return ""
        own, its = threads_text(self.one.threads), threads_text(other.threads)
        return str(other.verdict) if own == its else f"{other.verdict}, threads {own} beside {its}"

    def slower_than(self, share: float) -> list[Timed]:
        """Return the set-ups against which this set-up is certainly slower, by more than *share*.

        Args:
            share: smallest difference that counts, as a share: 0.05 means 5 %.
        """
        return [t for t in self.others if t.verdict is not None and t.verdict.is_slower_than(share)]

    def _repr_html_(self) -> str:
        """Return a table of the set-ups with their verdicts, which notebooks display."""
        rows = [
            (t.name, None if t.median is None else 1e3 * t.median, *self._words(t))
            for t in (self.one, *self.others)
        ]
        columns = ("set-up", "median ms", "ratio [95 %]", f"{self.one.name} is")
        return html_table(f"{self.one.name} beside others", columns, rows)

    def _words(self, timed: Timed) -> tuple[str, str]:
        """Return two table texts for a set-up: the ratio of its times, and the verdict.

        A failed set-up has an empty ratio and its error. Both texts are empty if it has neither.
        """
        verdict = timed.verdict
        return ("", timed.error) if verdict is None else (str(verdict.ratio), self.words_on(timed))


@dataclass(slots=True)
class _Course:
    """Results of a comparison so far, by the names that set-ups have in measuring processes."""

    setups: dict[str, Setup]
    blocks: dict[str, list[Block]] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)
    handed_on: dict[str, HandedOn] = field(default_factory=dict)
    memory: dict[str, list[int]] = field(default_factory=dict)
    threads: dict[str, int | None] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)

    def timed(self, name: str, verdict: Verdict | None = None) -> Timed:
        setup = self.setups[name]
        added = [b for n, found in self.memory.items() if self.setups[n] == setup for b in found]
        return Timed(
            str(setup),
            setup.to_json(),
            self.blocks[name],
            verdict=verdict,
            handed_on=self.handed_on.get(name),
            memory=int(np.median(added)) if added else None,
            threads=self.threads.get(name),
        )

    def left(self) -> dict[str, Setup]:
        return {name: setup for name, setup in self.setups.items() if name not in self.failures}

    def take(self, found: BlockTimes) -> None:
        for name, error in found.failures.items():
            if name in (_ONE, _AGAIN):
                raise error
            self.failures[name] = error
        self.handed_on.update(found.handed_on)
        self.threads.update(found.threads)
        self.unused.update({str(self.setups[name]): text for name, text in found.unused.items()})
        for name, added in found.memory.items():
            self.memory.setdefault(name, []).append(added)
        for name, block in found.times.items():
            self.blocks.setdefault(name, []).append(block)


def compare(
    setup: Setup,
    others: Sequence[Setup],
    inputs: InputRequest | None = None,
    *,
    signature: str | None = None,
    blocks: int = BLOCKS,
    seconds: float = SECONDS,
    max_seconds: float | None = None,
    same_within: float = SAME_WITHIN,
    processes: bool = True,
    progress: Progress = untold,
) -> Comparison:
    """Measure whether a set-up is faster than other set-ups, slower, or equally fast.

    All set-ups take turns. The tested one takes two turns; the difference between these is the
    noise floor. A set-up among *others* that fails is listed with its error.

    Args:
        setup: the tested set-up, which all verdicts are about.
        others: the set-ups with which it is compared.
        inputs: values for the inputs of each model; by default random ones as in
            ``benchmark_model``. Their seed also decides the order of turns.
        signature: name of the signature to call; None means the whole model.
        blocks: number of blocks, each with new interpreters; an interval is computed from one
            figure per block.
        seconds: approximate time for all turns, without the creation of interpreters.
        max_seconds: seconds after which no block begins, except the first 5, which a verdict needs;
            None means no limit.
        same_within: the largest difference that counts as equal, as a share.
        processes: whether each block has a separate process. Delegates that are objects work only
            in this process, so they need False; set-ups may then disturb each other.
        progress: function that is called with the state of the work.

    Raises:
        ArgumentError: fewer than 5 blocks, no other set-up, or a delegate is an object although
            *processes* is True.
        DelegraphError: *setup* failed.
    """
    if blocks < LEAST_BLOCKS:
        raise ArgumentError(f"blocks is {blocks}, expected {LEAST_BLOCKS} at least")
    if not others:
        raise ArgumentError("there is no other set-up to compare with")
    if processes:
        _require_names([setup, *others])
    request = inputs or InputRequest()
    names = {str(number): other for number, other in enumerate(others)}
    course = _Course({_ONE: setup, _AGAIN: setup, **names})
    run = block_in_a_process if processes else block_here
    where, others_work, begin = machine(), OtherWork(), time.monotonic()
    if max_seconds is not None:
        seconds = min(seconds, max_seconds)
    for number in range(blocks):
        is_late = max_seconds is not None and time.monotonic() - begin > max_seconds
        if is_late and number >= LEAST_BLOCKS:
            break
        part = BlockRequest(
            course.left(), request, signature, seconds / blocks, (request.seed, number)
        )
        course.take(run(part, as_block(progress, number, blocks)))
        if not course.left().keys() & names.keys():
            break
    seen = busy(others_work.cores(), where)
    others_threads = [course.threads[name] for name in names if name in course.threads]
    unlike = different_threads(course.threads[_ONE], others_threads)
    return Comparison(
        course.timed(_ONE),
        course.timed(_AGAIN),
        tuple(_timed(name, course, same_within) for name in names),
        seconds,
        request.seed,
        same_within,
        processes,
        signature,
        where,
        (*filter(None, (seen, unlike)), *(f"{who}: {text}" for who, text in course.unused.items())),
    )


def _require_names(setups: Sequence[Setup]) -> None:
    for setup in setups:
        for delegate in setup.delegates or ():
            if not isinstance(delegate, str):
                raise ArgumentError(
                    f"the delegate {type(delegate).__name__} is an object, which no other process "
                    "can have: name a plugin or a file, or set processes=False"
                )


def _timed(name: str, course: _Course, same_within: float) -> Timed:
    setup = course.setups[name]
    if name in course.failures:
        return Timed(str(setup), setup.to_json(), failure=course.failures[name])
    one = course.blocks[_ONE]
    effects, control = (effects_of(one, course.blocks[who]) for who in (name, _AGAIN))
    verdict = judge(effects, control, same_within=same_within)
    return course.timed(name, verdict)
