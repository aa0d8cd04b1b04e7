"""Judges mutants: runs the tests that reach a mutant in a forked child, up to the first failure.

A session of pytest collects once. A mutant inside a function is judged by a fork of that session,
which costs milliseconds; a mutant of what runs at import by a process that imports anew.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest
from _pytest.runner import runtestprotocol
from coverage import Coverage

from mutation.mutants import Mutant
from mutation.patching import MutantFinder, patch

OPTIONS = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--hypothesis-profile=mutants"]

MEMORY = 8 << 30
"""Bytes of addresses that a judged mutant may take beyond those of its parent."""


class Verdict(NamedTuple):
    """The verdict on a mutant.

    Attributes:
        outcome: ``killed``, ``survived``, or ``unreached`` when no test runs its line.
        by: the test that failed; ``timeout``, ``crash``; empty when it survived.
        tests: how many were to judge it.
        seconds: that it took.
    """

    outcome: str
    by: str
    tests: int
    seconds: float


@dataclass
class Reach:
    """The lines that each test runs, measured once without mutants.

    Attributes:
        seconds: of each test that passes, by its id, in order of collection.
        lines: the tests that run a line, by file and line.
        at_import: lines that run before any test does, by file.
        failing: tests that fail without any mutant; they judge nothing.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    at_import: dict[str, set[int]] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)

    def tests_of(self, mutant: Mutant) -> set[str]:
        """Return the tests that run the changed lines; all tests for lines that run at import."""
        if self.runs_at_import(mutant):
            return set(self.seconds)  # no line tells who looks at a constant or at a field
        lines = self.lines.get(str(mutant.module.path), {})
        return {test for line in mutant.lines for test in lines.get(line, ())} & set(self.seconds)

    def runs_at_import(self, mutant: Mutant) -> bool:
        """Whether the changed lines run when the module is imported."""
        early = self.at_import.get(str(mutant.module.path), set())
        return not mutant.is_late or not early.isdisjoint(mutant.lines)


@dataclass
class Bench:
    """Chooses the tests that judge a mutant, and their order.

    Attributes:
        budget: seconds that the tests of one mutant may take when none fails.
        patience: seconds that they may always take; above that, five times what they take without
            a mutant.
    """

    reach: Reach
    budget: float
    patience: float
    kills: dict[tuple[str, str], int] = field(default_factory=dict)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return test ids: first those that killed the module's other mutants, then quick files."""
        reached = self.reach.tests_of(mutant)
        ordered = [test for test in self.reach.seconds if test in reached]
        home = mutant.module.path.stem
        of_file: dict[str, float] = {}
        for test in ordered:
            file = test.partition("::")[0]
            of_file[file] = of_file.get(file, 0.0) + self.reach.seconds[test]

        def rank(test: str) -> tuple[int, bool, float]:
            file = test.partition("::")[0]
            kills = self.kills.get((mutant.module.name, test), 0)
            return -kills, home not in Path(file).stem, of_file[file]

        return list(self._within_budget(sorted(ordered, key=rank)))

    def _within_budget(self, tests: list[str]) -> Iterator[str]:
        left = self.budget
        for test in tests:
            if self.reach.seconds[test] <= left:
                left -= self.reach.seconds[test]
                yield test

    def limit(self, tests: Sequence[str]) -> float:
        """Return the seconds after which a mutant counts as hanging."""
        return self.patience + 5.0 * sum(self.reach.seconds[test] for test in tests)

    def note(self, mutant: Mutant, verdict: Verdict) -> None:
        """Record which test kills the mutant."""
        if verdict.outcome == "killed" and verdict.by in self.reach.seconds:
            key = mutant.module.name, verdict.by
            self.kills[key] = self.kills.get(key, 0) + 1


class Session:
    """Pytest plugin that passes the collected tests on instead of running them."""

    def __init__(self, use: Callable[[Sequence[pytest.Item]], Any]) -> None:
        self._use = use
        self.result: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called by pytest when all tests are collected; True ends the loop."""
        self.result = self._use(session.items)
        return True


def collected(paths: Iterable[str], use: Callable[[Sequence[pytest.Item]], Any]) -> Any:
    """Return the result of *use* for the tests at *paths*; None if they cannot be collected."""
    hypothesis.settings.register_profile(
        "mutants",
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # nobody reads the failure
        derandomize=True,
        database=None,
        deadline=None,
    )
    session = Session(use)
    here = f"--rootdir={Path.cwd()}"  # so that names of tests begin with paths that are found
    pytest.main([*OPTIONS, here, *paths], plugins=[session])
    return session.result


def first_failure(items: Sequence[pytest.Item]) -> str:
    """Run the tests up to the first failure, and return its id; empty if all pass."""
    for item, following in zip(items, [*items[1:], None], strict=False):
        if not _passes(item, following):
            return item.nodeid
    return ""


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    reports = runtestprotocol(item, log=False, nextitem=following)
    return not any(report.failed for report in reports)


def measured(items: Sequence[pytest.Item], files: Sequence[str]) -> Reach:
    """Run all tests without a mutant, and return the lines of *files* that each test runs."""
    reach = Reach()
    coverage = Coverage(data_file=None, include=files, config_file=False)
    coverage.start()
    for item, following in zip(items, [*items[1:], None], strict=False):
        coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        if _passes(item, following):
            reach.seconds[item.nodeid] = time.perf_counter() - start
        else:
            reach.failing.append(item.nodeid)
    coverage.stop()
    data = coverage.get_data()
    reach.lines = {file: data.contexts_by_lineno(file) for file in files}
    return reach


def judge_patched(
    mutant: Mutant, tests: Sequence[str], items: dict[str, pytest.Item], functions: Any
) -> str | None:
    """Return the test that fails on *mutant*; None if it cannot be patched into functions."""
    if not patch(mutant, functions):
        return None
    limit_memory()
    silence()
    return first_failure([items[test] for test in tests])


def judge_imported(mutant: Mutant, tests: Sequence[str]) -> str:
    """Return the test that fails when *mutant* is imported; call it where the module is not yet."""
    try:
        MutantFinder(mutant).install()
    except SyntaxError:
        return "import"
    return judge_fresh(tests)


def judge_fresh(tests: Sequence[str]) -> str:
    """Return the test that fails in a process that has not imported the project yet."""
    limit_memory()
    silence()
    files = dict.fromkeys(test.partition("::")[0] for test in tests)

    def chosen(items: Sequence[pytest.Item]) -> str:
        by_id = {item.nodeid: item for item in items}
        if not by_id.keys() >= set(tests):  # the changed code takes part in the names of tests
            return first_failure(items)
        return first_failure([by_id[test] for test in tests])

    failed = collected(files, chosen)
    return "import" if failed is None else failed


def silence() -> None:
    """Discard all output of this process, because a mutant may print thousands of lines."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def limit_memory() -> None:
    """Limit the memory, so that a mutant without bound fails and the machine does not."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
