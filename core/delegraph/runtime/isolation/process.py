"""The process of an isolated delegate: starts it, sends requests and replaces it."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from delegraph import errors
from delegraph.delegation.delegate import StopRequest
from delegraph.errors import (
    ArgumentError,
    CallCancelledError,
    DelegateError,
    DelegatePhase,
    DelegateProcessError,
    StateError,
)
from delegraph.processes.child import start
from delegraph.processes.ending import how_it_ended
from delegraph.runtime.isolation.messages import KEPT_ERRORS, Channel, Kind, Message
from delegraph.runtime.isolation.source import DelegateSource

START_TIMEOUT = 300.0
"""Seconds that a delegate may take for its import, for its claims, or for compiling a partition."""

CLOSE_TIMEOUT = 10.0
"""Seconds that the kernels of a partition may take to close when the delegate is removed."""

RESTARTS = 3
"""Number of times that a process that ended unexpectedly is started again."""

_FAREWELL = 2.0
"""Seconds that a process has to close its kernels and end before it is killed."""

_DOING: Mapping[DelegatePhase, str] = {
    "initialize": "was importing the delegate",
    "claim": "was asked about nodes",
    "init": "took a partition",
    "prepare": "prepared a partition",
    "eval": "computed a partition",
    "free": "closed a partition",
}


class Child:
    """A child process that runs a delegate, and the host's socket to it.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self) -> None:
        mine, its = socket.socketpair()
        try:
            self._child = start(
                "delegraph.runtime.isolation.served:serve",
                its.fileno(),
                files=(its.fileno(),),
                owned=(mine,),
                patience=_FAREWELL,
            )
        except BaseException:
            mine.close()
            raise
        finally:
            its.close()
        self.channel = Channel(mine)
        self.pid = self._child.pid
        self.end = self._child.close
        """Function that lets kernels close and ends the process; called at exit at the latest."""

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended.

        A process that the child started may still have the socket open.
        """
        return self._child.status is not None

    def kill(self, grace: float = 0.0) -> int:
        """Kill the process unless it ends within *grace* seconds; return its exit status."""
        self._child.wait(grace)
        self._child.kill()
        self.end()
        return self._child.status or 0


class _TooLong(Exception):
    """Raised when a request has exceeded its time limit."""


class IsolatedProcess:
    """Process of one delegate; a lost child process is replaced by a new one.

    The process handles one request at a time, so interpreters that share a delegate take turns.

    Args:
        source: description of the delegate.
        timeout: seconds that an invoke may take; None for no limit.

    Attributes:
        child: the living child process; None if there is none.
        facts: name, flags and other facts of the delegate, see ``served.py``; empty before they are
            known.

    Raises:
        ArgumentError: this system has no isolated processes.
    """

    def __init__(self, source: DelegateSource, timeout: float | None = None) -> None:
        if not hasattr(socket, "send_fds") or not sys.executable:
            raise ArgumentError(
                "isolate='process' needs Linux or macOS, and a Python that can be started again"
            )
        self.source = source
        self.child: Child | None = None
        self.facts: Mapping[str, Any] = {}
        self.timeout = timeout
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._deaths = 0
        self._last_death = ""
        self._forgotten: list[tuple[Child, int]] = []

    @property
    def name(self) -> str:
        """The delegate's name, or the user's name for it until the process has sent the name."""
        return str(self.facts.get("name", self.source.shown))

    # -- starting ------------------------------------------------------------------------------

    def living(self, stop: StopRequest | None = None) -> Child:
        """Return a child process in which the delegate is loaded; start one if there is none.

        Args:
            stop: stop request of the running call, which ends the start early.

        Raises:
            DelegateProcessError: the process ended while it imported the delegate, or ended too
                often.
            PluginError: the delegate cannot be created.
            ArgumentError: there is no such file.
            StateError: this process is a fork of the process that started the child.
        """
        self._refuse_fork()
        with self._lock:
            return self._living(stop)

    def _refuse_fork(self) -> None:
        if os.getpid() != self._pid:  # another thread may have held the lock at the fork
            raise StateError(
                f"delegate {self.name!r} runs in a process that belongs to the process "
                f"{self._pid}, of which this one is a fork; make a new interpreter here"
            )

    def _living(self, stop: StopRequest | None) -> Child:
        if self.child is not None:
            return self.child
        if self._deaths > RESTARTS:
            raise self._error(
                f"{self._last_death}; lost {self._deaths} times, it is not started again",
                "initialize",
            )
        try:
            self.child = Child()
        except OSError as error:
            raise self._error(f"cannot be started: {error}", "initialize") from error
        source = {"source": self.source.to_json()}
        self.facts, _ = self._called(self.child, "initialize", "load", source, (), stop)
        return self.child

    # -- asking --------------------------------------------------------------------------------

    def call(
        self,
        child: Child,
        phase: DelegatePhase,
        method: str,
        files: Sequence[int] = (),
        stop: StopRequest | None = None,
        **arguments: Any,
    ) -> Mapping[str, Any]:
        """Call a method of ``served.py`` in the child process, and return its answer.

        Args:
            child: the child process, which must still be alive.
            phase: phase of the delegate's work, for errors.
            method: name of the method.
            files: descriptors for the method.
            stop: stop request of the running call; a request ends the child process.
            arguments: other arguments for the method.

        Raises:
            DelegateProcessError: the child process ended, or took too long and was ended.
            DelegateError: the delegate failed.
            CallCancelledError: the call was asked to stop.
        """
        self._refuse_fork()
        with self._lock:
            self._require(child, phase)
            return self._called(child, phase, method, arguments, files, stop)[0]

    def run(self, child: Child, number: int, stop: StopRequest | None) -> Message | None:
        """Let the child process compute a partition; return the child's message.

        A *stop* request of the running call ends the child process.

        Returns:
            The message with shapes and values of outputs whose shapes were unknown. None if the
            shapes of all outputs were known: their values are in the shared memory.

        Raises:
            DelegateProcessError: the child process ended, or took too long and was ended.
            DelegateError: the delegate failed.
            CallCancelledError: the call was asked to stop.
        """
        self._refuse_fork()
        with self._lock:
            self._require(child, "eval")
            message = self._conversed(child, "eval", lambda c: c.send_run(number), stop)
            return None if message.kind is Kind.DONE else message

    def _require(self, child: Child, phase: DelegatePhase) -> None:
        if child is not self.child:
            raise self._error("was lost meanwhile", phase)
        while self._forgotten:
            old, number = self._forgotten.pop()
            if old is child:
                self._called(child, "free", "drop", {"number": number}, (), None)

    def _called(
        self,
        child: Child,
        phase: DelegatePhase,
        method: str,
        arguments: Mapping[str, Any],
        files: Sequence[int],
        stop: StopRequest | None,
    ) -> tuple[Mapping[str, Any], Sequence[int]]:
        content = {"method": method, **arguments}
        message = self._conversed(child, phase, lambda c: c.send(Kind.CALL, content, files), stop)
        return message.content, message.files

    def _conversed(
        self,
        child: Child,
        phase: DelegatePhase,
        say: Callable[[Channel], None],
        stop: StopRequest | None,
    ) -> Message:
        """Send a message by *say* and return the reply; after any error, end the child process.

        *phase* is the phase of the delegate's work, which sets the time limit. A request of *stop*
        ends the wait. Otherwise a late reply of the process would be mistaken for the reply to the
        next message.
        """
        own = {"eval": self.timeout, "free": CLOSE_TIMEOUT}
        seconds = own.get(phase, START_TIMEOUT)
        deadline = None if seconds is None else monotonic() + seconds

        def look() -> None:
            if stop is not None:
                stop.raise_if_requested()
            if deadline is not None and monotonic() > deadline:
                raise _TooLong
            if child.has_ended:
                raise EOFError

        try:
            child.channel.wait_with(look)
            say(child.channel)
            reply = child.channel.receive()
        except _TooLong:
            child.kill()
            how = f"gave no answer in {seconds:g} s and was ended"
            raise self._lost(child, phase, how) from None
        except BaseException as error:
            if isinstance(error, EOFError | OSError) and not isinstance(error, CallCancelledError):
                raise self._lost(child, phase) from None
            self.child = None  # an interrupt or a requested stop is not the delegate's fault
            child.kill()
            raise
        if reply.kind is Kind.FAILURE:
            raise self._failure(reply.content, phase)
        return reply

    # -- going wrong ---------------------------------------------------------------------------

    def _lost(
        self, child: Child, phase: DelegatePhase, how: str | None = None
    ) -> DelegateProcessError:
        self.child = None
        self._deaths += 1
        status = child.kill(_FAREWELL)
        self._last_death = f"{how or f'ended with {how_it_ended(status)}'} while it {_DOING[phase]}"
        return self._error(self._last_death, phase)

    def _error(self, what: str, phase: DelegatePhase) -> DelegateProcessError:
        return DelegateProcessError(
            f"the process of delegate {self.name!r} {what}", delegate=self.name, phase=phase
        )

    def _failure(self, content: Mapping[str, Any], phase: DelegatePhase) -> Exception:
        """Return the error that *content*, a message of the delegate's process, describes.

        *phase* is the phase of the delegate's work in which it failed.
        """
        kind: Any = getattr(errors, str(content.get("kind")), None)
        text = str(content.get("text"))
        if isinstance(kind, type) and issubclass(kind, KEPT_ERRORS):
            found: Exception = kind(text)
            if isinstance(found, DelegateError):
                found.delegate = self.name
            return found
        node = content.get("node")
        return DelegateError(text, delegate=self.name, phase=phase, node_index=node)

    # -- letting go ----------------------------------------------------------------------------

    def drop(self, child: Child, number: int) -> None:
        """Close the kernels of partition *number* in *child*, later if another request runs.

        The garbage collector may call this method in the middle of another request.
        """
        self._forgotten.append((child, number))
        if os.getpid() != self._pid:
            return
        if child is self.child and self._lock.acquire(blocking=False):
            try:
                self._require(child, "free")
            except DelegateError:
                pass  # the next call reports the error
            finally:
                self._lock.release()

    def rest(self) -> None:
        """End the idle child process; the next request starts a new one."""
        child, self.child = self.child, None
        if child is not None:
            child.end()
