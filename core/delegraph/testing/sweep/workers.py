"""Worker processes that try cases one after the other; dead workers are replaced.

A campaign is the main process's loop over numbered cases. A worker's state is in memory that it
shares with the campaign: number, phase and start of the case, and counts of outcomes. So nothing is
lost if the worker dies.

A campaign's function makes the case for each number. Workers are forked, which only POSIX systems
can do.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from delegraph.processes import messages
from delegraph.processes.child import Child, fork, ready
from delegraph.processes.ending import how_it_ended
from delegraph.runtime.delegates.failure_memory import FailureMemory
from delegraph.testing.sweep import last_words
from delegraph.testing.sweep.board import Board
from delegraph.testing.sweep.judging import OFFICIAL, OURS, OUTCOMES, Announce, Ending, Fault

RENEWED = 20_000
"""Number of cases after which a worker process is replaced by a new one."""


@dataclass(frozen=True)
class Limits:
    """Time and memory that a case may take before its process is killed.

    Attributes:
        seconds: processor time in seconds.
        bytes: bytes of address space, in addition to those that the process has at its start.
        elapsed: elapsed time in seconds, which ends a case that waits for ever.
    """

    seconds: float = 10
    bytes: int = 2 << 30
    elapsed: float = 300


class Worker:
    """A process that tries cases; it notes its progress in shared memory (the board).

    If it dies, its Python stack is in a file.

    Args:
        work: function that the process runs; its arguments are the worker, requests and answers.
        limits: processor time and memory that a case may take.
        groups: names of groups of cases that are counted separately.
    """

    def __init__(
        self,
        work: Callable[[Worker, BinaryIO, BinaryIO], object],
        limits: Limits,
        groups: Sequence[str] = ("",),
    ) -> None:
        self.board, self.limits = Board(groups), limits
        self._last_words = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the worker
        self._work = work
        self.child = self._started()

    def _started(self) -> Child:
        self._last_words.truncate(0)
        self._last_words.seek(0)
        return fork(self._run)

    def start_again(self) -> None:
        """Start a new process in place of the one that has ended."""
        self._end()
        self.child = self._started()

    def _end(self) -> None:
        self.child.close()
        self.child.answers.close()

    def _run(self, requests: BinaryIO, answers: BinaryIO) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.enable(self._last_words, all_threads=False)
        faulthandler.register(signal.SIGPROF, self._last_words, all_threads=False, chain=True)
        FailureMemory.is_kept = False
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + self.limits.bytes,) * 2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        try:
            self._work(self, requests, answers)
        except BaseException as error:
            self._last_words.write(last_words.of_error(error))
            self._last_words.flush()
            raise

    def limit_processor(self) -> None:
        """Let the system kill this process once a case has used its seconds of processor time.

        It uses a timer, because some systems ignore later changes of RLIMIT_CPU.
        """
        signal.setitimer(signal.ITIMER_PROF, self.limits.seconds)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self.child.status is None

    def end_if_late(self) -> bool:
        """Kill the process if its case takes too long; return whether it was killed.

        Before it ends, the process writes its stack to a file.
        """
        is_late = self.board.seconds() > self.limits.elapsed
        if is_late:
            self.child.send_signal(signal.SIGABRT)
            self.child.wait(2)
            self.child.kill()
            self.child.wait()
        return is_late

    def send(self, request: object) -> None:
        """Send a request to the process, unless it has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.child.send(request)

    def heard(self) -> Iterator[Any]:
        """Yield the messages that have arrived."""
        with contextlib.suppress(EOFError, OSError):  # the process has ended
            while ready([self.child.answers], 0):
                yield messages.read(self.child.answers, (Ending, Fault))

    def close(self) -> None:
        """End the process and close its files; the board stays readable."""
        self._end()
        self._last_words.close()

    def cause_of_death(self, late: bool) -> Fault:
        """Return the fault (crash, hang or memory) of the case in which the process died.

        Args:
            late: whether the process was killed because the case took too long.
        """
        code = self.child.status or 0
        self._last_words.seek(0)
        words = self._last_words.read().decode(errors="replace")
        where = last_words.innermost(words)
        if late or -code == signal.SIGPROF:
            took = f"{self.limits.seconds:g} s of processor time"
            limit = f"{self.limits.elapsed:g} s" if late else took
            return Fault("hang", f"not done after {limit}", where)
        how = f"the process ended with {how_it_ended(code)}"
        error = last_words.error(words)
        return Fault("crash", f"{how}: {error}" if error else how, where)


def _address_space() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * resource.getpagesize()


@dataclass(frozen=True)
class Found:
    """A case with a fault.

    Attributes:
        number: number of the case.
        case: the case with that number.
        fault: the fault of the case.
    """

    number: int
    case: Any
    fault: Fault


class Campaign:
    """Numbered cases, tried by several processes.

    Args:
        judge: function that tries a case; it also gets a function that it calls before each new
            phase.
        case_of: function that returns the case with a number, equal in any process.
        numbers: number of the first case, and the number after the last case.
        jobs: number of processes.
        limits: processor time and memory that a case may take.
        groups: names of groups of cases that are counted separately; an :class:`Ending` names its
            group.
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
        """Return the number of cases by outcome, so far."""
        return sum((w.board.counts() for w in self._workers.values()), Counter())

    def counts_of(self, group: str) -> Counter[str]:
        """Return the number of cases of a group for each outcome, so far."""
        boards = (worker.board for worker in self._workers.values())
        return sum((board.counts_of(group) for board in boards), Counter())

    def tried(self) -> int:
        """Return the number of cases that were tried."""
        counts = self.counts()
        return sum(counts[outcome] for outcome in OUTCOMES)

    def run(self, seconds: float, pause: float = 0.2) -> Iterator[Found | None]:
        """Try cases until all are tried or *seconds* are over; yield faults, and None in between.

        None gives the caller a turn, at least every *pause* seconds. When time is up, each worker
        finishes its case first.
        """
        end = time.monotonic() + seconds
        for i in range(self._jobs):
            self._workers[i] = Worker(partial(self._work, i), self._limits, self._groups)
        running = set(self._workers)
        try:
            while running:
                yield from self._look(running, pause)
                yield None
                if time.monotonic() > end:
                    self._numbers = range(0)
                    for i in running:
                        self._workers[i].send("stop")
                    end = float("inf")
        finally:
            for worker in self._workers.values():
                worker.close()

    def _look(self, running: set[int], pause: float) -> Iterator[Found]:
        """Read messages of the workers *running*, and yield the faults in them.

        Late workers are killed, and dead workers are replaced; a death is a fault, too. Workers
        without further cases are removed from *running*.

        Args:
            running: indices of the workers that still run.
            pause: seconds to wait for a message.
        """
        ready([self._workers[i].child.answers for i in sorted(running)], pause)
        for i in sorted(running):
            worker = self._workers[i]
            late = worker.end_if_late()
            alive, ended = worker.is_alive, False
            for message in worker.heard():
                if isinstance(message, int):
                    self._next[i], ended = message, True
                else:
                    yield self._found(*message)
            if alive and not ended:
                continue
            worker.child.wait()
            if not ended:
                yield from self._died(worker, late)
                self._next[i] = worker.board.number + self._jobs
            if self._next[i] in self._numbers:
                worker.start_again()
            else:
                running.discard(i)

    def _died(self, worker: Worker, late: bool) -> Iterator[Found]:
        fault = worker.cause_of_death(late)
        found = self._found(worker.board.number, fault)
        op = getattr(found.case, "op", "")
        group = op if op in self._groups else self._groups[0]
        if worker.board.phase == OFFICIAL:
            worker.board.end(Ending("not judged", group=group))
            return
        worker.board.end(Ending("fault", fault, group=group))
        yield found

    def _found(self, number: int, fault: Fault) -> Found:
        return Found(number, self._case_of(number), fault)

    def _work(self, i: int, worker: Worker, requests: BinaryIO, answers: BinaryIO) -> None:
        """Try cases of worker *i* until a request comes.

        It sends the faults, and at the end the number of the first case that was not tried.
        """
        board, end = worker.board, self._next[i] + RENEWED * self._jobs
        number = self._next[i]
        while number in self._numbers and number < end and not ready([requests], 0):
            board.begin(number)
            worker.limit_processor()
            board.announce(OURS)
            ending = self._judge(self._case_of(number), board.announce)
            board.end(ending)
            number += self._jobs
            if ending.fault is not None:
                messages.write(answers, (number - self._jobs, ending.fault))
        messages.write(answers, number)


class Judge:
    """A process that tries given cases; it is replaced if a case kills it.

    Args:
        judge: function that tries a case; it also gets a function to call before each new phase.
        limits: processor time and memory that a case may take.
    """

    def __init__(self, judge: Callable[[Any, Announce], Ending], limits: Limits) -> None:
        self._judge = judge
        self._worker = Worker(self._serve, limits)

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def __call__(self, case: Any) -> Ending:
        """Return how a case ended, even if the case kills the process."""
        worker = self._worker
        worker.send(case)
        while True:
            ready([worker.child.answers], 1.0)
            late = worker.end_if_late()
            alive = worker.is_alive
            for ending in worker.heard():
                found: Ending = ending
                return found
            if not alive:
                return self._died(late)

    def _died(self, late: bool) -> Ending:
        worker = self._worker
        official = worker.board.phase == OFFICIAL
        fault = worker.cause_of_death(late)
        worker.board.rest()
        worker.start_again()
        return Ending("not judged") if official else Ending("fault", fault)

    def _serve(self, worker: Worker, requests: BinaryIO, answers: BinaryIO) -> None:
        while True:
            try:
                case = pickle.load(requests)
            except EOFError:
                return
            worker.board.begin(0)
            worker.limit_processor()
            worker.board.announce(OURS)
            ending = self._judge(case, worker.board.announce)
            worker.board.rest()
            messages.write(answers, ending)
