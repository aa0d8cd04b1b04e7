"""A process in which models run, so that one that crashes or hangs ends only that.

The process is asked one thing after the other, and serves as long as it lives. It is started anew
where that is possible, and forked where a delegate is an object, which no other process has.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from delegraph.errors import ArgumentError, DelegraphError, in_words
from delegraph.runtime.isolation.death import ended_by
from delegraph.runtime.isolation.life import end_with

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from delegraph.tools.worker_process import _main; _main(int(sys.argv[1]))"
)
_NO_LIFE = -1  # Windows passes no such descriptor on


class Worker(Protocol):
    """What a process holds; its methods are what can be asked of it."""


@dataclass(frozen=True, slots=True)
class Death:
    """How a process ended instead of giving an answer.

    Attributes:
        is_hung: whether it was killed as it took too long.
        text: the signal or the status, in words.
    """

    is_hung: bool
    text: str


class WorkerProcess:
    """A process that makes a worker and answers what is asked of it.

    Args:
        make: makes the worker, in the process: a function of a module.
        argument: what *make* is given.
        can_be_sent: whether *argument* can be pickled; else the process is a fork of this one.
        time_limit: seconds that an answer may take.

    Raises:
        ArgumentError: it had to be forked, and this system cannot.
    """

    def __init__(
        self, make: Callable[[Any], Any], argument: Any, *, can_be_sent: bool, time_limit: float
    ) -> None:
        if not can_be_sent and not hasattr(os, "fork"):
            raise ArgumentError(
                "a delegate that is an object cannot be sent to another process on this system; "
                "name an installed delegate, or a file by delegate_files"
            )
        self._make, self._argument = make, argument
        self._start = _Started if can_be_sent else _Forked
        self._time_limit = time_limit
        self._child: _Started | _Forked | None = None

    @property
    def is_alive(self) -> bool:
        """Whether there is a process; :meth:`ask` starts one where there is none."""
        return self._child is not None

    def ask(self, method: str, *arguments: Any, patiently: bool = False) -> Any:
        """Result of a method of the worker, or a :class:`Death`.

        Args:
            method: its name.
            arguments: what can be pickled.
            patiently: whether the answer may take as long as it likes.

        Raises:
            DelegraphError: what the method raised.
        """
        if self._child is None:
            self._child = self._start(self._make, self._argument)
        child, hung = self._child, threading.Event()

        def end() -> None:
            hung.set()
            child.kill()

        timer = threading.Timer(self._time_limit, end)
        try:
            child.await_start()  # which the limit does not count
            if not patiently:
                timer.start()
            pickle.dump((method, arguments), child.requests)
            child.requests.flush()
            answer, error = pickle.load(child.answers)
        except (EOFError, OSError, pickle.UnpicklingError):  # also half an answer
            return self._death(hung.is_set())
        except BaseException:  # an interrupt: a later question must not get this one's answer
            self.close()
            raise
        finally:
            timer.cancel()
        if error is not None:
            raise error
        return answer

    def _death(self, is_hung: bool) -> Death:
        child, self._child = self._child, None
        assert child is not None
        status = child.end()
        if is_hung:
            return Death(True, f"no answer after {self._time_limit:g} s")
        return Death(False, f"the process {ended_by(status)}")

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.end()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Child:
    """A process that serves.

    Attributes:
        requests: takes what is asked, pickled.
        answers: gives the answers; the first one says that it has started.
    """

    requests: BinaryIO
    answers: BinaryIO
    _has_started = False

    def await_start(self) -> None:
        """Return when it is ready to be asked."""
        if not self._has_started:
            pickle.load(self.answers)
            self._has_started = True

    def _close(self) -> None:
        for pipe in (self.requests, self.answers):
            with contextlib.suppress(OSError):
                pipe.close()


class _Started(_Child):
    """A new Python process, which ends with this one, however that ends."""

    def __init__(self, make: Callable[[Any], Any], argument: Any) -> None:
        its_life = _NO_LIFE
        self._life: int | None = None
        if os.name != "nt":
            its_life, self._life = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(its_life), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=() if self._life is None else (its_life,),
        )
        if self._life is not None:
            os.close(its_life)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.requests = self._process.stdin  # type: ignore[assignment]  # bytes: no text
        self.answers = self._process.stdout  # type: ignore[assignment]  # the same
        with contextlib.suppress(OSError):  # it has ended already; whoever asks will notice
            pickle.dump((make, argument), self.requests)
            self.requests.flush()

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int:
        """Wait for its end; return its status, negative for a signal."""
        self._close()
        status = self._process.wait()
        if self._life is not None:
            os.close(self._life)
        return status


class _Forked(_Child):
    """A copy of this process."""

    def __init__(self, make: Callable[[Any], Any], argument: Any) -> None:
        (its_input, requests), (answers, its_output) = os.pipe(), os.pipe()

        def run() -> None:
            os.close(requests)
            os.close(answers)
            with open(its_input, "rb") as asked, open(its_output, "wb") as told:
                _serve(make(argument), asked, told)

        context: Any = multiprocessing.get_context("fork")
        self._process = context.Process(target=run, daemon=True)
        with warnings.catch_warnings():
            # Python 3.12 warns of other threads, whose locks may be held: the process then hangs,
            # and is ended as what hangs is.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        os.close(its_input)
        os.close(its_output)
        self.requests = open(requests, "wb")  # noqa: SIM115 - closed by end()
        self.answers = open(answers, "rb")  # noqa: SIM115 - closed by end()

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> int:
        """Wait for its end; return its status, negative for a signal."""
        self._close()
        self._process.join()
        status: int = self._process.exitcode
        return status


def _main(life: int) -> None:
    """Serve the process that has started this one; what is printed goes to standard error."""
    if life != _NO_LIFE:
        end_with(life)
    with open(os.dup(0), "rb") as requests, open(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        make, argument = pickle.load(requests)
        _serve(make(argument), requests, answers)


def _serve(worker: Any, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process hears of Ctrl-C, and ends this
    pickle.dump("started", answers)
    answers.flush()
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            answer, failure = getattr(worker, method)(*arguments), None
        except Exception as error:  # noqa: BLE001 - raised in the other process
            answer, failure = None, sendable(error)
        pickle.dump((answer, failure), answers)
        answers.flush()


def sendable(error: Exception) -> Exception:
    """Return *error* if it can be sent to another process, else one that says the same."""
    try:
        if isinstance(error, DelegraphError) and str(pickle.loads(pickle.dumps(error))):
            return error
    except Exception:  # noqa: BLE001 - an error whose constructor takes more than it keeps
        return DelegraphError(in_words(error))
    return DelegraphError(in_words(error))
