"""Uses interpreters for a long time in every way, failures included, and watches what they hold.

python tests/soak/run.py [--hours H] [--seed N] [--threads N] [--json FILE]

Exit code 1 for a wrong answer, an error that should not be, or something that grows. What it does:
docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":  # who imports this keeps their settings
    os.environ.pop("DELEGRAPH_NUMBA_GUARD", None)  # it runs call by call, without threads
sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from delegraph import Interpreter, load_delegate
from delegraph.testing import graph_model, tensor
from soak.acts import IN_MAIN, IN_THREADS, Act, Owned, available_delegates, swallowed
from soak.cache import private_cache, vanish
from soak.subjects import Subject, subjects
from soak.watch import Sample, growth, sample

ROUNDS = 24
"""Samples of a soak, at least; a round lasts a minute at most."""

CACHE_EVERY = 8
"""Rounds; kernels that a damaged cache lacks take a while to compile."""

SHOWN = 10
"""Failures after which a soak ends."""

STUCK = 120
"""Seconds after the end of a round when every thread's stack is printed, and that is all."""


@dataclass
class Soak:
    """Counts of acts and failures so far.

    Attributes:
        acts: how often each act was done.
        failures: what went wrong, in words.
        samples: what the process held after each round.
    """

    acts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def do(self, act: Act, owned: Owned) -> None:
        """Do an act and record the outcome; after a failure, the interpreter is replaced."""
        try:
            act(owned)
        except BaseException as error:  # noqa: BLE001 - noted
            where = f"{act.__name__} on {owned.subject.name}"
            text = "".join(traceback.format_exception(error))
            with self._lock:
                self.failures.append(f"{where}: {type(error).__name__}: {error}\n{text}")
            owned.renew()
        with self._lock:
            self.acts[act.__name__] += 1

    @property
    def is_over(self) -> bool:
        """Whether there were too many failures."""
        return len(self.failures) >= SHOWN

    def work(
        self, owned: Sequence[Owned], chance: Random, acts: Mapping[Act, int], end: float
    ) -> None:
        """Do acts on one thread's interpreter until the time *end*."""
        while time.monotonic() < end and not self.is_over:
            (act,) = chance.choices(list(acts), list(acts.values()))
            self.do(act, chance.choice(owned))

    def round(self, owned: Sequence[Sequence[Owned]], chance: Random, seconds: float) -> None:
        """Run all threads for a while, the main thread on the first subject; take a sample."""
        faulthandler.dump_traceback_later(seconds + STUCK, exit=True)
        end = time.monotonic() + seconds
        chances = [Random(chance.random()) for _ in owned]
        threads = [
            threading.Thread(target=self.work, args=(mine, own, IN_THREADS, end))
            for mine, own in zip(owned[1:], chances, strict=False)
        ]
        for thread in threads:
            thread.start()
        self.work(owned[0], chance, IN_MAIN, end)
        for thread in threads:
            thread.join()
        faulthandler.cancel_dump_traceback_later()
        self.samples.append(sample())


def soak(hours: float, seed: int, threads: int, progress: Progress, cache: Path | None) -> Soak:
    """Run the soak test for some hours; return the counts and samples.

    Args:
        hours: how long.
        seed: of all chance; threads meet differently each time.
        threads: beside the main one.
        progress: shows how far it is.
        cache: folder of a kernel cache that may be damaged; None to leave that out.
    """
    done, chance = Soak(), Random(seed)
    owned = [_owned(subjects(seed + i), chance) for i in range(threads + 1)]
    seconds = hours * 3600
    rounds = max(ROUNDS, round(seconds / 60))
    for name in available_delegates():  # Ctrl-C during an import can leave Python's locks held
        load_delegate(name)
    _start_workers()

    def damaged_cache(_: Owned) -> None:
        if cache is not None:
            vanish(cache, chance)

    task = progress.add_task("soaking", total=rounds)
    for number in range(rounds):
        if number % CACHE_EVERY == 1:
            done.do(damaged_cache, owned[0][0])
        done.round(owned, chance, seconds / rounds)
        acts = sum(done.acts.values())
        text = f"{acts} acts, {done.samples[-1].bytes >> 20} MB, {len(done.failures)} failures"
        progress.update(task, advance=1, description=text)
        progress.refresh()
        if done.is_over:
            break
    return done


def _start_workers() -> None:
    """Let numba_cpu start its threads, so that they do not count as growth."""
    wide = tensor((1 << 20,))
    tensors = {"x": wide, "y": wide}
    model = graph_model([("ADD", "x x", "y")], inputs="x", outputs="y", tensors=tensors)
    names = ["numba_cpu"] if "numba_cpu" in available_delegates() else []
    with Interpreter(model_content=model, delegates=names, num_threads=2) as interpreter:
        interpreter.allocate_tensors()
        for _ in range(20):  # the first ones show that a second thread pays
            interpreter.invoke()


def _owned(found: Sequence[Subject], chance: Random) -> list[Owned]:
    return [Owned(subject, Random(chance.random())) for subject in found]


def report(done: Soak, console: Console) -> list[str]:
    """Print the acts and outcomes; return a list of all problems."""
    table = Table("act", "times")
    for name, count in sorted(done.acts.items()):
        table.add_row(name, str(count))
    console.print(table)
    table = Table("", "first", "middle", "last")
    chosen = [done.samples[0], done.samples[len(done.samples) // 2], done.samples[-1]]
    for name in asdict(chosen[0]):
        table.add_row(name, *(f"{getattr(s, name):,}" for s in chosen))
    console.print(table)
    wrong = [*done.failures, *growth(done.samples)]
    for text in wrong:
        print(text)
    print(f"soak: {sum(done.acts.values())} acts, {len(wrong)} things wrong")
    return wrong


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=3, help="beside the main one")
    parser.add_argument("--no-cache", action="store_true", help="leave the kernel cache alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the report for programs")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = arguments(words)
    sys.unraisablehook = swallowed
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
    logging.getLogger("delegraph").setLevel(logging.ERROR)  # delegates fail on purpose
    sys.setswitchinterval(1e-4)  # threads of Python meet more often
    shown = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder:
        cache = None
        if "numba_cpu" in available_delegates() and not given.no_cache:
            cache = Path(folder)
            private_cache(cache)
        with Progress(auto_refresh=False, console=shown, disable=not shown.is_terminal) as progress:
            done = soak(given.hours, given.seed, given.threads, progress, cache)
    wrong = report(done, Console())
    if given.json is not None:
        content = {"acts": done.acts, "samples": [asdict(s) for s in done.samples], "wrong": wrong}
        given.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
