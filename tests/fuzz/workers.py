"""Processes that try copies, one after the other; a new one takes the place of one that dies.

What a worker is at stands in memory that it shares with the campaign: the number of the copy, what
runs, since when, and how many copies ended how. So nothing is lost when it dies.
"""

from __future__ import annotations

import contextlib
import faulthandler
import mmap
import multiprocessing
import os
import re
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.copies import Copy, copy_with_number
from fuzz.judging import Fault
from fuzz.starting_models import StartingModel
from fuzz.targets import OFFICIAL, OURS, OUTCOMES, Ending, Target

CONTEXT = multiprocessing.get_context("fork")
PHASES = ("", OURS, OFFICIAL)
COUNTED = (*OUTCOMES, "delegated")
NUMBER, PHASE, STARTED, FIRST_COUNT = range(4)

PATIENCE = 6
"""Seconds of waiting that a second of processor time may become on a busy machine."""

RENEWED = 20_000
"""Copies after which a process makes room for a new one."""


@dataclass(frozen=True)
class Limits:
    """What a copy may take.

    Attributes:
        seconds: of processor time.
        bytes: of address space, beside what the process has when it starts.
    """

    seconds: int = 10
    bytes: int = 2 << 30


class Board:
    """What a worker is at, in memory shared with the campaign."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 8 * (FIRST_COUNT + len(COUNTED)))
        self.cells = np.frombuffer(self._memory, np.int64)

    def announce(self, phase: str) -> None:
        """Say what runs next."""
        self.cells[PHASE] = PHASES.index(phase)

    def begin(self, number: int) -> None:
        """Say that a copy is begun."""
        self.cells[NUMBER], self.cells[STARTED] = number, time.monotonic_ns()

    def rest(self) -> None:
        """Say that no copy is being tried."""
        self.announce("")
        self.cells[STARTED] = 0

    def end(self, ending: Ending) -> None:
        """Count a copy."""
        self.rest()
        self.count(ending.outcome)
        self.cells[FIRST_COUNT + COUNTED.index("delegated")] += ending.delegated

    def count(self, outcome: str) -> None:
        self.cells[FIRST_COUNT + COUNTED.index(outcome)] += 1

    @property
    def number(self) -> int:
        return int(self.cells[NUMBER])

    @property
    def phase(self) -> str:
        return PHASES[int(self.cells[PHASE])]

    def seconds(self) -> float:
        """Return for how long the copy has been tried; 0 for none."""
        started = int(self.cells[STARTED])
        return (time.monotonic_ns() - started) / 1e9 if started else 0.0

    def counts(self) -> Counter[str]:
        """Return how many copies ended how."""
        return Counter(dict(zip(COUNTED, self.cells[FIRST_COUNT:].tolist(), strict=True)))


class Worker:
    """A process with a board, a pipe, and a file that tells where it died.

    Args:
        work: what the process runs, with the worker as its argument.
        limits: of a copy.
    """

    def __init__(self, work: Any, limits: Limits) -> None:
        self.board, self.limits = Board(), limits
        self.connection, self.far_end = CONTEXT.Pipe()
        self._last_words = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the worker
        self._work = work
        self.start()

    def start(self) -> None:
        """Start the process, or another in its place."""
        self._last_words.truncate(0)
        self._last_words.seek(0)
        self.process = CONTEXT.Process(target=self._run, daemon=True)
        self.process.start()

    def _run(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.enable(self._last_words, all_threads=False)
        faulthandler.register(signal.SIGPROF, self._last_words, all_threads=False, chain=True)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + self.limits.bytes,) * 2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        self._work(self)

    def limit_processor(self) -> None:
        """Let the process die after the seconds of a copy, counted from now.

        A timer, since some systems do not hear of a later RLIMIT_CPU.
        """
        signal.setitimer(signal.ITIMER_PROF, self.limits.seconds)

    def is_late(self) -> bool:
        """Whether a copy has been tried for longer than even a busy machine takes."""
        return self.board.seconds() > self.limits.seconds * PATIENCE

    def kill(self) -> None:
        """End the process, after it has written down where it is."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid or 0, signal.SIGABRT)
        self.process.join(2)
        self.process.kill()
        self.process.join()

    def close(self) -> None:
        """End the process and close its files; the board can still be read."""
        self.process.kill()
        self.process.join()
        self.process.close()
        for file in (self.connection, self.far_end, self._last_words):
            file.close()

    def cause_of_death(self, late: bool) -> Fault:
        """Return the fault of a copy whose process has died."""
        code = self.process.exitcode or 0
        self._last_words.seek(0)
        where = _innermost(self._last_words.read().decode(errors="replace"))
        if late or -code == signal.SIGPROF:
            return Fault("hang", f"not done after {self.limits.seconds} s", where)
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Fault("crash", f"{how} in {where or 'unknown code'}", where)


def _address_space() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


def _innermost(words: str) -> str:
    """Return where a traceback of faulthandler was, innermost first."""
    frames = re.findall(r'File "([^"]*)", line \d+ in (\S+)', words)
    ours = [(path, name) for path, name in frames if "/delegraph" in path]
    for path, name in ours or frames:
        return f"{Path(path).parent.name}/{Path(path).stem}.{name}"
    return ""


@dataclass(frozen=True)
class Found:
    """A copy with a fault.

    Attributes:
        number: of the copy.
        copy: the file and what it is fed.
        fault: what came of it.
    """

    number: int
    copy: Copy
    fault: Fault


class Campaign:
    """Copies for one target, tried by several processes.

    Args:
        target: what they are tried on.
        models: what they are made of.
        seed: with the number of a copy, says what it is.
        numbers: the first copy and the one after the last.
        jobs: processes.
        limits: of a copy.
    """

    def __init__(
        self,
        target: Target,
        models: Sequence[StartingModel],
        *,
        seed: int,
        numbers: range,
        jobs: int,
        limits: Limits,
    ) -> None:
        self._target, self._models, self._seed = target, models, seed
        self._numbers, self._limits = numbers, limits
        self._jobs = min(jobs, max(1, len(numbers)))
        self._next = {i: numbers.start + i for i in range(self._jobs)}
        self._workers: dict[int, Worker] = {}

    def counts(self) -> Counter[str]:
        """Return how many copies ended how, so far."""
        return sum((w.board.counts() for w in self._workers.values()), Counter())

    def tried(self) -> int:
        """Return how many copies have ended."""
        counts = self.counts()
        return sum(counts[outcome] for outcome in OUTCOMES)

    def run(self, seconds: float, pause: float = 0.2) -> Iterator[Found | None]:
        """Try copies until all are or time is up; yield what is found, None now and then.

        A worker that is stopped has finished its copy.
        """
        end = time.monotonic() + seconds
        for i in range(self._jobs):
            self._workers[i] = Worker(lambda worker, i=i: self._work(worker, i), self._limits)
        running = set(self._workers)
        try:
            while running:
                yield from self._look(running, pause)
                yield None
                if time.monotonic() > end:
                    self._numbers = range(0)
                    for i in running:
                        self._workers[i].connection.send("stop")
                    end = float("inf")
        finally:
            for worker in self._workers.values():
                worker.close()

    def _look(self, running: set[int], pause: float) -> Iterator[Found]:
        """Wait a little; take what workers have to say, replace the dead, kill the late."""
        workers = self._workers
        wait([*(workers[i].connection for i in running),
              *(workers[i].process.sentinel for i in running)], pause)  # fmt: skip
        for i in sorted(running):
            worker = workers[i]
            late = worker.is_late()
            if late:
                worker.kill()
            alive, ended = worker.process.is_alive(), False
            while worker.connection.poll():
                message = worker.connection.recv()
                if isinstance(message, int):
                    self._next[i], ended = message, True
                else:
                    yield self._found(*message)
            if alive and not ended:
                continue
            worker.process.join()
            if not ended:
                yield from self._died(worker, late)
                self._next[i] = worker.board.number + self._jobs
            if self._next[i] in self._numbers:
                worker.start()
            else:
                running.discard(i)

    def _died(self, worker: Worker, late: bool) -> Iterator[Found]:
        fault = worker.cause_of_death(late)
        if worker.board.phase == OFFICIAL:
            worker.board.end(Ending("not judged"))
            return
        worker.board.end(Ending("fault"))
        yield self._found(worker.board.number, fault)

    def _found(self, number: int, fault: Fault) -> Found:
        return Found(number, copy_with_number(self._models, self._seed, number), fault)

    def _work(self, worker: Worker, i: int) -> None:
        """Try copies; this is what a process runs. Ends by saying which copy is next."""
        board, end = worker.board, self._next[i] + RENEWED * self._jobs
        number = self._next[i]
        while number in self._numbers and number < end and not worker.far_end.poll():
            board.begin(number)
            worker.limit_processor()
            board.announce(OURS)
            copy = copy_with_number(self._models, self._seed, number)
            ending = self._target.judge(copy, board.announce)
            board.end(ending)
            number += self._jobs
            if ending.fault is not None:
                worker.far_end.send((number - self._jobs, ending.fault))
        worker.far_end.send(number)


class Judge:
    """A process that tries the copies it is given, replaced when one kills it.

    Args:
        target: what they are tried on.
        limits: of a copy.
    """

    def __init__(self, target: Target, limits: Limits) -> None:
        self._target = target
        self._worker = Worker(self._serve, limits)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def __call__(self, copy: Copy) -> Ending:
        """Return what comes of a copy, whatever it does to the process."""
        worker = self._worker
        worker.connection.send(copy)
        while not worker.connection.poll():
            wait([worker.connection, worker.process.sentinel], 1.0)
            late = worker.is_late()
            if late:
                worker.kill()
            if not worker.process.is_alive() and not worker.connection.poll():
                return self._died(late)
        ending: Ending = worker.connection.recv()
        return ending

    def _died(self, late: bool) -> Ending:
        worker = self._worker
        official = worker.board.phase == OFFICIAL
        fault = worker.cause_of_death(late)
        worker.connection.close()
        worker.far_end.close()
        worker.connection, worker.far_end = CONTEXT.Pipe()
        worker.board.rest()
        worker.start()
        return Ending("not judged") if official else Ending("fault", fault)

    def _serve(self, worker: Worker) -> None:
        while True:
            try:
                copy = worker.far_end.recv()
            except EOFError:
                return
            worker.board.begin(0)
            worker.limit_processor()
            worker.board.announce(OURS)
            ending = self._target.judge(copy, worker.board.announce)
            worker.board.rest()
            worker.far_end.send(ending)
