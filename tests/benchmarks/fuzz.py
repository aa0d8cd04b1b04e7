"""Damage copies of the corpus's models, load and run each, and report how that ended.

    python tests/benchmarks/fuzz.py --count 20000 --jobs 2
    python tests/benchmarks/fuzz.py --count 2000 --stage parse

Each copy runs in a process of its own, so that a crash, a hang and the highest memory are seen. A
copy may end in a ``ModelError`` or run; anything else is a failure and is listed with the number
by which ``--only NUMBER`` repeats it. Exit status 0 when there is none.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # forked children must not inherit threads

import argparse
import json
import resource
import select
import signal
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import delegraph
from delegraph.errors import MalformedModelError, ModelError
from delegraph.graph import parse_model
from delegraph.testing import one_op_model, tensor
from support.corpus import CORPUS, corpus_file, corpus_rows
from support.mutations import mutated, structure

SLOW = 0.02
"""Seconds of the official reference kernels; models that take longer are only allocated."""


@dataclass(frozen=True)
class Target:
    """A model to damage: its bytes, where its structure is, and how far to take it."""

    name: str
    content: bytes
    positions: np.ndarray
    invoke: bool

    def damaged(self, seed: int, number: int) -> bytes:
        """Return the copy with that *number*."""
        return mutated(self.content, self.positions, np.random.default_rng([seed, number]))


@dataclass(frozen=True)
class Ending:
    """How one copy ended.

    Attributes:
        number: of the copy.
        target: name of the model.
        outcome: ``ran``, an exception's type, ``crash`` or ``hang``.
        message: of the exception.
        seconds: processor time, which other programs on the machine do not change.
        megabytes: highest resident memory of the process.
        is_failure: whether no damaged file may end like this.
    """

    number: int
    target: str
    outcome: str
    message: str
    seconds: float
    megabytes: float
    is_failure: bool


class Child:
    """A process that loads and runs one copy and reports through a pipe."""

    def __init__(self, number: int, target: Target, seed: int, stage: str) -> None:
        self.number, self.target = number, target
        reader, writer = os.pipe()
        self.start = time.perf_counter()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            self._run(writer, seed, stage)
        os.close(writer)
        self.pipe = reader

    def _run(self, writer: int, seed: int, stage: str) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stderr = sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        outcome, message, is_failure, start = "ran", "", False, time.process_time()
        try:
            run(self.target.damaged(seed, self.number), stage, self.target.invoke)
        except BaseException as error:  # noqa: BLE001 - every kind of ending is reported
            outcome, message = type(error).__name__, str(error)[:300]
            is_failure = not isinstance(error, ModelError) or not message
        ending = {
            "outcome": outcome,
            "message": message,
            "seconds": time.process_time() - start,
            "is_failure": is_failure,
        }
        os.write(writer, json.dumps(ending).encode())
        os._exit(0)

    def collect(self, timed_out: bool) -> Ending:
        """Wait for the process, killing it when it *timed_out*, and return how it ended."""
        if timed_out:
            os.kill(self.pid, signal.SIGKILL)
        report = os.read(self.pipe, 65536)
        os.close(self.pipe)
        _, status, usage = os.wait4(self.pid, 0)
        ending = {
            "outcome": "hang" if timed_out else f"crash (signal {os.WTERMSIG(status)})",
            "message": "",
            "seconds": usage.ru_utime + usage.ru_stime,
            "is_failure": True,
        }
        if report:
            ending = json.loads(report)
        return Ending(self.number, self.target.name, megabytes=usage.ru_maxrss / 1024, **ending)


def run(content: bytes, stage: str, invoke: bool) -> None:
    """Take a model as far as *stage*, and to invoke only if *invoke*."""
    if stage == "parse":
        parse_model(content)
        return
    warnings.simplefilter("ignore")
    with delegraph.Interpreter(model_content=content) as interpreter:
        interpreter.allocate_tensors()
        if invoke and stage == "invoke":
            interpreter.invoke()


@lru_cache(maxsize=1)  # what this process holds, its children start with
def load_target(name: str, milliseconds: float) -> Target | None:
    """Return a model to damage; None when it cannot be read even undamaged."""
    content = corpus_file(name).read_bytes()
    try:
        return Target(name, content, structure(content), milliseconds < SLOW * 1000)
    except MalformedModelError:
        return None


def corpus_models() -> list[tuple[str, float]]:
    """Return name and reference milliseconds of every model; copy i is of model i modulo N."""
    return [(row["name"], (row.get("time_ms") or {}).get("ref") or 0) for row in corpus_rows()]


def repeat(number: int, seed: int, stage: str) -> None:
    """Run one copy in this process, so that its traceback shows and a debugger can be used."""
    models = corpus_models()
    target = load_target(*models[number % len(models)])
    if target is None:
        print(f"copy {number}: the model cannot be read undamaged")
        return
    print(f"copy {number} of {target.name}")
    run(target.damaged(seed, number), stage, target.invoke)


def fuzz(count: int, seed: int, jobs: int, stage: str, timeout: float) -> list[Ending]:
    """Run *count* copies, *jobs* at a time."""
    models = corpus_models()
    waiting = sorted(range(count), key=lambda number: (number % len(models), number), reverse=True)
    running: dict[int, Child] = {}
    endings: list[Ending] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            number = waiting.pop()
            target = load_target(*models[number % len(models)])
            if target is not None:
                child = Child(number, target, seed, stage)
                running[child.pipe] = child
        ready, _, _ = select.select(list(running), [], [], 0.2)
        late = [p for p, c in running.items() if time.perf_counter() - c.start > timeout]
        for pipe in dict.fromkeys([*ready, *late]):
            endings.append(running.pop(pipe).collect(timed_out=pipe not in ready))
            if len(endings) % 1000 == 0:
                print(f"{len(endings)} copies", flush=True)
    return endings


def report(endings: list[Ending], max_seconds: float, max_megabytes: float) -> bool:
    """Print counts, the slowest, the largest and every failure; return whether all is well."""
    for outcome, count in Counter(e.outcome for e in endings).most_common():
        print(f"{count:7}  {outcome}")
    slowest = max(endings, key=lambda e: e.seconds)
    largest = max(endings, key=lambda e: e.megabytes)
    print(f"slowest: {slowest.seconds:.2f} s, copy {slowest.number} of {slowest.target}")
    print(f"largest: {largest.megabytes:.0f} MB, copy {largest.number} of {largest.target}")
    failures = [e for e in endings if e.is_failure or e.seconds > max_seconds
                or e.megabytes > max_megabytes]  # fmt: skip
    for e in failures[:50]:
        print(f"copy {e.number} of {e.target}: {e.outcome}, {e.seconds:.2f} s, "
              f"{e.megabytes:.0f} MB: {e.message}")  # fmt: skip
    print(f"fuzz: {len(endings)} copies, {len(failures)} failures")
    return not failures


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="copies to make")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--stage", choices=["parse", "allocate", "invoke"], default="invoke")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds until a copy hangs")
    parser.add_argument("--max-seconds", type=float, default=2.0)
    parser.add_argument("--max-megabytes", type=float, default=500.0)
    parser.add_argument("--only", type=int, help="repeat the copy with this number")
    given = parser.parse_args()
    if not corpus_rows():
        print(f"there is no corpus in {CORPUS}")
        return 2
    if given.only is not None:
        repeat(given.only, given.seed, given.stage)
        return 0
    run(one_op_model("ADD", [tensor((1,))] * 2, [tensor((1,))]), "invoke", True)  # import kernels
    endings = fuzz(given.count, given.seed, given.jobs, given.stage, given.timeout)
    return 0 if report(endings, given.max_seconds, given.max_megabytes) else 1


if __name__ == "__main__":
    sys.exit(main())
