"""Processes that try cases, one after the other; a new one takes the place of one that dies.

What a worker is at stands in memory that it shares with the campaign: the number of the case, what
runs, since when, and how many cases ended how. So nothing is lost when it dies.

A case is whatever a campaign's function makes of a number. Workers are forked, which only POSIX
systems can.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import re
import resource
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from delegraph.testing.sweep.board import Board
from delegraph.testing.sweep.judging import (
    OFFICIAL,
    OURS,
    OUTCOMES,
    Announce,
    Ending,
    Fault,
)

CONTEXT: Any = multiprocessing.get_context("fork")
PATIENCE = 6
"""Seconds of waiting that a second of processor time may become on a busy machine."""

RENEWED = 20_000
"""Cases after which a process makes room for a new one."""


@dataclass(frozen=True)
class Limits:
    """What a case may take.

    Attributes:
        seconds: of processor time.
        bytes: of address space, beside what the process has when it starts.
    """

    seconds: int = 10
    bytes: int = 2 << 30


def run_forked(work: Callable[[], object]) -> None:
    """Run something in a process of its own, so that this one starts no thread for it.

    Raises:
        Exception: what it raises.
    """
    near, far = CONTEXT.Pipe(duplex=False)

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as raised:  # noqa: BLE001 - the parent raises it
            error = raised
        far.send(error)

    process = CONTEXT.Process(target=run)
    process.start()
    far.close()
    try:
        error = near.recv()
    except EOFError:
        error = ChildProcessError("a process ended before it had loaded the delegate")
    finally:
        process.join()
        near.close()
    if error is not None:
        raise error


class Worker:
    """A process with a board, a pipe, and a file that tells where it died.

    Args:
        work: what the process runs, with the worker as its argument.
        limits: of a case.
        groups: which cases are counted apart.
    """

    def __init__(self, work: Any, limits: Limits, groups: Sequence[str] = ("",)) -> None:
        self.board, self.limits = Board(groups), limits
        self.connection, self.far_end = CONTEXT.Pipe()
        self._last_words = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the worker
        self._work = work
        self.start()

    def start(self) -> None:
        """Start the process, or another in its place."""
        self._last_words.truncate(0)
        self._last_words.seek(0)
        self.process = CONTEXT.Process(target=self._run, daemon=True)
        with warnings.catch_warnings():  # the child uses no lock of another thread
            warnings.simplefilter("ignore", DeprecationWarning)
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
        """Let the process die after the seconds of a case, counted from now.

        A timer, since some systems do not hear of a later RLIMIT_CPU.
        """
        signal.setitimer(signal.ITIMER_PROF, self.limits.seconds)

    def is_late(self) -> bool:
        """Whether a case has been tried for longer than even a busy machine takes."""
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
        """Return the fault of a case whose process has died."""
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
        number: of the case.
        case: what the campaign makes of the number.
        fault: what came of it.
    """

    number: int
    case: Any
    fault: Fault


class Campaign:
    """Numbered cases, tried by several processes.

    Args:
        judge: tries a case; is given what to tell before something else runs.
        case_of: returns the case with a number, the same one in any process.
        numbers: the first case and the one after the last.
        jobs: processes.
        limits: of a case.
        groups: which cases are counted apart; an :class:`Ending` names its own.
    """

    def __init__(
        self,
        judge: Callable[[Any, Announce], Ending],
        case_of: Callable[[int], Any],
        *,
        numbers: range,
        jobs: int,
        limits: Limits,
        groups: Sequence[str] = ("",),
    ) -> None:
        self._judge, self._case_of, self._groups = judge, case_of, tuple(groups)
        self._numbers, self._limits = numbers, limits
        self._jobs = min(jobs, max(1, len(numbers)))
        self._next = {i: numbers.start + i for i in range(self._jobs)}
        self._workers: dict[int, Worker] = {}

    def counts(self) -> Counter[str]:
        """Return how many cases ended how, so far."""
        return sum((w.board.counts() for w in self._workers.values()), Counter())

    def counts_of(self, group: str) -> Counter[str]:
        """Return how many cases of a group ended how, so far."""
        boards = (worker.board for worker in self._workers.values())
        return sum((board.counts_of(group) for board in boards), Counter())

    def tried(self) -> int:
        """Return how many cases have ended."""
        counts = self.counts()
        return sum(counts[outcome] for outcome in OUTCOMES)

    def run(self, seconds: float, pause: float = 0.2) -> Iterator[Found | None]:
        """Try cases until all are or time is up; yield what is found, None now and then.

        A worker that is stopped has finished its copy.
        """
        end = time.monotonic() + seconds
        for i in range(self._jobs):
            self._workers[i] = Worker(
                lambda worker, i=i: self._work(worker, i), self._limits, self._groups
            )
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
        found = self._found(worker.board.number, fault)
        group = getattr(found.case, "op", "") if len(self._groups) > 1 else ""
        if worker.board.phase == OFFICIAL:
            worker.board.end(Ending("not judged", group=group))
            return
        worker.board.end(Ending("fault", group=group))
        yield found

    def _found(self, number: int, fault: Fault) -> Found:
        return Found(number, self._case_of(number), fault)

    def _work(self, worker: Worker, i: int) -> None:
        """Try cases; this is what a process runs. Ends by saying which case is next."""
        board, end = worker.board, self._next[i] + RENEWED * self._jobs
        number = self._next[i]
        while number in self._numbers and number < end and not worker.far_end.poll():
            board.begin(number)
            worker.limit_processor()
            board.announce(OURS)
            ending = self._judge(self._case_of(number), board.announce)
            board.end(ending)
            number += self._jobs
            if ending.fault is not None:
                worker.far_end.send((number - self._jobs, ending.fault))
        worker.far_end.send(number)


class Judge:
    """A process that tries the cases it is given, replaced when one kills it.

    Args:
        judge: tries a case, as for :class:`Campaign`.
        limits: of a case.
    """

    def __init__(self, judge: Callable[[Any, Announce], Ending], limits: Limits) -> None:
        self._judge = judge
        self._worker = Worker(self._serve, limits)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def __call__(self, case: Any) -> Ending:
        """Ending of a case, whatever it does to the process."""
        worker = self._worker
        worker.connection.send(case)
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
                case = worker.far_end.recv()
            except EOFError:
                return
            worker.board.begin(0)
            worker.limit_processor()
            worker.board.announce(OURS)
            ending = self._judge(case, worker.board.announce)
            worker.board.rest()
            worker.far_end.send(ending)
