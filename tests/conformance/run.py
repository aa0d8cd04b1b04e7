"""Runs the cases of every operator through Delegraph and the official interpreter.

python tests/conformance/run.py [--op NAME] [--seed N] [--count N]
    [--numerics builtin|reference] [--save-failures DIR] [--write-types FILE]

The last line says how many operators have a case that both run, and how many cases agree. Exit
code 1 when any does not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.accepted_types import accepted_types
from conformance.judging import KERNELS, Judge, Task, Verdict
from delegraph.testing import REGISTERED_OPERATORS, OperatorCase
from delegraph.testing.operator_cases import cases
from delegraph.tools.shrinking import shrunk

SHOWN = 12
"""Failures of an operator that are printed in full."""


@dataclass
class OperatorResult:
    """Results of the cases of one operator."""

    op: str
    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, OperatorCase, Verdict]] = field(default_factory=list)
    apart: Counter[str] = field(default_factory=Counter)
    types: set[tuple[str, ...]] = field(default_factory=set)

    @property
    def total(self) -> int:
        return sum(self.verdicts.values())

    @property
    def is_covered(self) -> bool:
        """Whether both interpreters ran at least one case with equal results."""
        return self.verdicts["same"] > 0


def task_of(case: OperatorCase, numerics: str = "builtin") -> Task:
    return Task(case.model(), case.steps, case.is_random, case.tolerance, numerics, case.differs)


def run_operator(
    op: str, judge: Judge, *, seed: int, count: int, numerics: str = "builtin", every: int = 1
) -> OperatorResult:
    """Return the results of an operator's cases; with *every* > 1, only of one in *every*."""
    result = OperatorResult(op)
    for index, case in islice(enumerate(cases(op, seed=seed, count=count)), 0, None, every):
        verdict = judge(task_of(case, numerics))
        result.verdicts[verdict.kind] += 1
        if verdict.kind == "same":
            result.types.add(case.types())
        if verdict.apart:
            result.apart["refuses" if "alone" in verdict.apart else "differs"] += 1
        if not verdict.passed:
            result.failures.append((index, case, verdict))
    return result


def run_operators(
    ops: list[str], *, seed: int, count: int, numerics: str, jobs: int
) -> Iterator[OperatorResult | BaseException]:
    """Yield the result of each operator when it is ready; *jobs* operators run at a time."""
    waiting: SimpleQueue[str] = SimpleQueue()
    done: SimpleQueue[OperatorResult | BaseException] = SimpleQueue()
    for op in ops:
        waiting.put(op)

    def work() -> None:
        with Judge() as judge:
            while True:
                try:
                    op = waiting.get_nowait()
                except Empty:
                    return
                try:
                    done.put(run_operator(op, judge, seed=seed, count=count, numerics=numerics))
                except BaseException as error:  # noqa: BLE001 - raised in the main thread
                    done.put(error)

    for _ in range(jobs):
        threading.Thread(target=work, daemon=True).start()
    for _ in ops:
        yield done.get()


def save_failure(
    index: int, case: OperatorCase, verdict: Verdict, judge: Judge, numerics: str, folder: Path
) -> None:
    """Write the smallest case that fails in the same way, as a model and its inputs."""

    def fails(other: OperatorCase) -> bool:
        found = judge(task_of(other, numerics))
        return not found.passed and found.kind == verdict.kind

    small = shrunk(case, fails)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{case.op}_{index}"
    stem.with_suffix(".tflite").write_bytes(small.model())
    names = {
        f"step{i}_input{j}": a for i, step in enumerate(small.steps) for j, a in enumerate(step)
    }
    np.savez(stem.with_suffix(".npz"), **names)
    detail = judge(task_of(small, numerics)).detail
    stem.with_suffix(".txt").write_text(f"{small}\n{detail}\n", encoding="utf-8")


def print_failures(result: OperatorResult) -> None:
    for index, case, verdict in result.failures[:SHOWN]:
        print(f"FAIL {result.op}/{index} {verdict.kind}: {verdict.detail}\n     {case}")
    if len(result.failures) > SHOWN:
        print(f"FAIL {result.op}: {len(result.failures) - SHOWN} more")


def show_progress(text: str) -> None:
    """Show *text* on the last line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--op", action="append", choices=REGISTERED_OPERATORS, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0, help="of the random cases")
    parser.add_argument("--count", type=int, default=40, help="random cases of each kind")
    parser.add_argument("--numerics", choices=sorted(KERNELS), default="builtin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write-types", type=Path, metavar="FILE", help="that agree, for docs")
    parser.add_argument("--save-failures", type=Path, metavar="DIR", help="shrunk, as .tflite")
    given = parser.parse_args(arguments)
    ops = given.op or list(REGISTERED_OPERATORS)
    results: list[OperatorResult] = []
    started = time.monotonic()
    saving = Judge()
    for result in run_operators(
        ops, seed=given.seed, count=given.count, numerics=given.numerics, jobs=given.jobs
    ):
        if isinstance(result, BaseException):
            raise result
        results.append(result)
        show_progress("")
        print_failures(result)
        if given.save_failures is not None:
            for index, case, verdict in result.failures[:SHOWN]:
                save_failure(index, case, verdict, saving, given.numerics, given.save_failures)
        show_progress(f"{len(results)} of {len(ops)} operators, {time.monotonic() - started:.0f} s")
    show_progress("")
    if given.write_types is not None:
        taken = {r.op: accepted_types(r.op, r.types) for r in results}
        given.write_types.write_text(
            json.dumps(taken, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
    return summarize(results)


def summarize(results: list[OperatorResult]) -> int:
    """Print a summary of all results, and return the exit code."""
    missing = sorted(result.op for result in results if not result.is_covered)
    if missing:
        print(f"not covered: {' '.join(missing)}")
    apart = sorted(result.op for result in results if result.apart["differs"])
    print(f"builtin and reference kernels differ in: {' '.join(apart)}")
    kinds = sum((result.verdicts for result in results), Counter())
    print("; ".join(f"{kind} {number}" for kind, number in kinds.most_common()))
    failed = sum(len(result.failures) for result in results)
    total = sum(result.total for result in results)
    covered = len(results) - len(missing)
    print(f"ops: covered {covered} of {len(results)}, cases {total - failed}/{total}")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
