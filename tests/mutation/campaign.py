"""A campaign: the mutants of a target, judged one after the other, with verdicts kept in a file.

The file grows by a line a verdict, so a campaign may be stopped at any time and goes on where it
was. A verdict holds while the function around its mutant is the same.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from coverage import Coverage

from mutation.child import Ended, in_child
from mutation.judging import (
    Bench,
    Reach,
    Verdict,
    collected,
    judge_fresh,
    judge_imported,
    judge_patched,
    measured,
)
from mutation.mutants import Module, Mutant
from mutation.patching import functions_by_file

Key = tuple[str, str, str]
"""Module, name and digest of a mutant."""


class Verdicts:
    """Verdicts by mutant, kept in a file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[Key, Verdict] = {}
        self.reload()

    def reload(self) -> None:
        """Read the verdicts that other processes have added."""
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                *key, verdict = json.loads(line)
                self._known[tuple(key)] = Verdict(*verdict)

    def of(self, mutant: Mutant) -> Verdict | None:
        """Return the newest verdict of *mutant*, if there is one."""
        return self._known.get(_key(mutant))

    def add(self, mutant: Mutant, verdict: Verdict) -> None:
        """Store a verdict in the file, too."""
        self._known[_key(mutant)] = verdict
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([*_key(mutant), verdict]) + "\n")


def _key(mutant: Mutant) -> Key:
    return mutant.module.name, mutant.name, mutant.digest


def sampled(mutants: Iterable[Mutant], percent: float, seed: int) -> list[Mutant]:
    """Return about *percent* of mutants; larger samples contain smaller ones."""

    def draw(mutant: Mutant) -> float:
        text = f"{seed} {mutant.module.name} {mutant.name}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32 * 100

    return [mutant for mutant in mutants if draw(mutant) < percent]


@dataclass
class Campaign:
    """Judges mutants by tests.

    Attributes:
        tests: paths that pytest collects.
        budget: seconds of tests that a mutant is worth.
        patience: seconds after which a mutant hangs, besides five times those of its tests.
        announce: is called with each mutant and its verdict.
    """

    tests: Sequence[str]
    verdicts: Verdicts
    budget: float
    patience: float
    announce: Callable[[Mutant, Verdict], None]

    def run(self, modules: Sequence[Module], mutants: Sequence[Mutant]) -> list[str]:
        """Judge *mutants*, and return the tests that fail even without a mutant."""
        ended = in_child(partial(self._session, modules, mutants))
        if ended.how != "done":
            raise RuntimeError(f"the session that judges ended by a {ended.how}")
        self.verdicts.reload()
        reach: Reach
        reach, left = ended.result
        bench = Bench(reach, self.budget, self.patience)
        if left:
            self._require_clean(bench, bench.tests(mutants[left[0]]))
        for mutant in (mutants[index] for index in left):
            tests = bench.tests(mutant)
            self._judge(mutant, bench, tests, partial(judge_imported, mutant, tests))
        return reach.failing

    def _require_clean(self, bench: Bench, tests: Sequence[str]) -> None:
        """Raise an error unless the tests pass in a new process without a mutant."""
        ended = in_child(partial(judge_fresh, tests), bench.limit(tests))
        if ended != ("done", ""):
            raise RuntimeError(f"without a mutant, a fresh process ends in {ended}")

    def _session(
        self, modules: Sequence[Module], mutants: Sequence[Mutant]
    ) -> tuple[Reach, list[int]]:
        """Judge mutants within a collected session; return the remaining ones, and the reach."""
        files = [str(module.path) for module in modules]
        at_import = Coverage(data_file=None, include=files, config_file=False)
        at_import.start()

        def judge(items: Sequence[pytest.Item]) -> tuple[Reach, list[int]]:
            for module in modules:
                importlib.import_module(module.name)
            at_import.stop()
            reach: Reach = in_child(partial(measured, items, files)).result
            data = at_import.get_data()
            reach.at_import = {file: set(data.lines(file) or ()) for file in files}
            return reach, self._judge_in_forks(items, mutants, reach)

        judged: tuple[Reach, list[int]] = collected(self.tests, judge)
        return judged

    def _judge_in_forks(
        self, items: Sequence[pytest.Item], mutants: Sequence[Mutant], reach: Reach
    ) -> list[int]:
        bench = Bench(reach, self.budget, self.patience)
        by_id = {item.nodeid: item for item in items}
        functions = functions_by_file()
        gc.freeze()  # a child that collects garbage need not copy what it has from here
        left = []
        for index, mutant in enumerate(mutants):
            tests = bench.tests(mutant)
            live = functions.get(str(mutant.module.path), ())
            work = partial(judge_patched, mutant, tests, by_id, live)
            if reach.runs_at_import(mutant) or not self._judge(mutant, bench, tests, work):
                left.append(index)
        return left

    def _judge(
        self, mutant: Mutant, bench: Bench, tests: Sequence[str], work: Callable[[], str | None]
    ) -> bool:
        """Whether *work* could judge *mutant*."""
        start = time.perf_counter()
        ended = in_child(work, bench.limit(tests)) if tests else Ended("done", "")
        if ended == ("done", None):
            return False
        by = ended.result if ended.how == "done" else ended.how
        outcome = "killed" if by else "survived" if tests else "unreached"
        verdict = Verdict(outcome, by, len(tests), round(time.perf_counter() - start, 2))
        bench.note(mutant, verdict)
        self.verdicts.add(mutant, verdict)
        self.announce(mutant, verdict)
        return True
