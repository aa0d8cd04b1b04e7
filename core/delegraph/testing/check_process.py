"""A process that runs checks and may be killed, because a delegate may crash or hang in it."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest

from delegraph.processes.child import start
from delegraph.processes.worker import Line, LostError
from delegraph.testing.check_signs import RECORDS, received
from delegraph.testing.conformance.run_reports import PhaseBegins, Sign, TimeIsLimited
from delegraph.testing.pytest_plugin import TIME_LIMIT

_PATIENCE = 3.0
"""Seconds in which a process may end by itself, or report where it hangs."""

_NUMBERS = count()

_FRAMES = 4
"""Number of stack lines that are shown."""


@dataclass(frozen=True)
class Death:
    """End of a process of checks that had not sent its result.

    Attributes:
        what: text that describes the end, such as ``crashed (SIGSEGV)``.
        where: lines of the process's Python stack, the innermost first; empty if unknown.
        is_hang: whether the process sent no message for too long.
        is_end_of_test: whether the time limit of the whole test was over.
    """

    what: str
    where: tuple[str, ...] = ()
    is_hang: bool = False
    is_end_of_test: bool = False

    def __str__(self) -> str:
        return self.what + "".join(f"\n  {line}" for line in self.where)


_LIMIT = (
    "hung: ended after {seconds:g} s with nothing done (--delegate-timeout); if it is slow and not "
    "stuck, give it more seconds, or try less with --delegate-quick"
)
_LIMIT_OF_ALL = (
    "took over {seconds:g} s in all, pytest's own limit of a test; raise that (--timeout, or "
    "`timeout` in the configuration of pytest), or try less with --delegate-quick"
)


@dataclass(frozen=True)
class _Limits:
    """Time limits of a process: for the next message, and for the whole test.

    Attributes:
        what: description of a process that sends no message for too long.
        seconds: seconds to wait for a message.
        what_of_all: description of a test that takes too long as a whole.
        end: time by the monotonic clock at which the whole test must end; None means no limit.
    """

    what: str
    seconds: float
    what_of_all: str = ""
    end: float | None = None

    def with_all(self, seconds: float | None) -> _Limits:
        """Return a copy with *seconds*, counted from now, as the limit of the whole test."""
        if seconds is None:
            return replace(self, end=None)
        what = _LIMIT_OF_ALL.format(seconds=seconds)
        return replace(self, what_of_all=what, end=time.monotonic() + seconds)

    def next(self) -> tuple[float, Death]:
        """Return the seconds to wait for the next message, and the death if no message arrives."""
        left = math.inf if self.end is None else self.end - time.monotonic()
        if left < self.seconds:
            return max(left, 0), Death(self.what_of_all, is_end_of_test=True)
        return self.seconds, Death(self.what, is_hang=True)


def _limits(seconds: float) -> _Limits:
    return _Limits(_LIMIT.format(seconds=seconds), seconds)


class CheckProcess:
    """A process that runs checks; it starts at the first request, and restarts after a death.

    Args:
        params: arguments and folder of its pytest command line.
        folder: folder in which models that show a failure are saved.
        time_limit: seconds without an answer or a progress message after which the process is
            ended.
    """

    def __init__(
        self, params: pytest.Config.InvocationParams, folder: Path, time_limit: float
    ) -> None:
        self._params = params
        self._folder = folder
        self._time_limit = time_limit
        self._child: _Child | None = None

    @property
    def is_alive(self) -> bool:
        """Whether a process is running; :meth:`ask` starts one otherwise."""
        return self._child is not None

    def ask(
        self,
        method: str,
        *arguments: object,
        heard: Callable[[Sign], object],
        patiently: bool = False,
    ) -> Any:
        """Call a method of the process's ``CheckServer``; return its result, or a :class:`Death`.

        Args:
            method: name of a method of ``CheckServer``.
            arguments: arguments of the method.
            heard: function that is called with each progress message that arrives before the
                answer.
            patiently: whether the call may take long, as imports do.
        """
        limits = _limits(max(self._time_limit, TIME_LIMIT) if patiently else self._time_limit)
        if self._child is None:
            self._child = _Child(self._params, self._folder)
        child = self._child
        try:
            child.line.send(method, *arguments)
            while True:
                kind, content = child.receive(limits)
                if kind == "answer":
                    return content
                if kind == "error":
                    self.close()
                    return Death(f"ended its process ({content})")
                if kind != "told":  # any other message means that it has started
                    continue
                if isinstance(content, TimeIsLimited):
                    limits = limits.with_all(content.seconds)
                elif isinstance(content, PhaseBegins) and not content.imports:
                    limits = _limits(self._time_limit)
                heard(received(content))
        except LostError as error:
            self._child = None
            return child.death(is_unreadable=error.is_unreadable)

    def another(self) -> CheckProcess:
        """Return a new object with the same settings; it starts a separate process."""
        return CheckProcess(self._params, self._folder, self._time_limit)

    def close(self) -> None:
        """End the process, if there is one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()


class _Child:
    """One operating-system process of checks, from its start to its end."""

    def __init__(self, params: pytest.Config.InvocationParams, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = folder / f"stack-{os.getpid()}-{next(_NUMBERS)}.txt"
        self._stack.write_text("")
        self._late: Death | None = None  # set if the process was killed for its time limit
        args = [str(arg) for arg in params.args]
        args += ["-p", "delegraph.testing.check_server"]
        args += [f"--delegate-folder={folder}", f"--delegate-stack={self._stack}"]
        child = start("pytest:main", args, piped=True, patience=_PATIENCE, cwd=params.dir)
        self.line = Line(child, RECORDS)

    def receive(self, limits: _Limits) -> tuple[str, Any]:
        """Return the next message, (kind, content); kill the process if the message is late."""
        seconds, death = limits.next()
        timer = threading.Timer(seconds, self._end_late, [death])
        timer.daemon = True
        timer.start()
        try:
            return self.line.receive()
        finally:
            timer.cancel()

    def death(self, *, is_unreadable: bool) -> Death:
        """Return how the process ended.

        The call waits until the process has ended. A process that sends unreadable messages
        (*is_unreadable*) is killed.
        """
        ending = self.line.death(is_unreadable)
        where = _innermost(self._stack.read_text(errors="replace"))
        self.close()
        if self._late is not None:
            return replace(self._late, where=where)
        did = "crashed" if (self.line.child.status or 0) < 0 else "ended its process"
        return Death(f"{did} ({ending.how})", where)

    def close(self) -> None:
        """End the process, and delete the file to which it writes its stack."""
        self.line.child.close()
        self._stack.unlink(missing_ok=True)

    def _end_late(self, death: Death) -> None:
        """Kill the process for a late message, after it has written its Python stack to a file."""
        self._late = death
        if sys.platform != "win32":
            self.line.child.send_signal(signal.SIGABRT)
            self.line.child.wait(_PATIENCE)
        self.line.child.kill()


def _innermost(stack: str) -> tuple[str, ...]:
    """Return the innermost frames of the crashed thread, from a ``faulthandler`` stack."""
    _, _, rest = stack.partition("most recent call first):\n")
    frames = takewhile(lambda line: line.startswith("  File "), rest.splitlines())
    return tuple(frame.strip() for frame in frames)[:_FRAMES]
