"""The time limit of a call: a thread calls a method when the call has run for too long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import inf
from time import monotonic, sleep
from weakref import WeakMethod

_LONGEST_WAIT = 3600.0
"""Longest sleep of the watching thread, in seconds; systems may not accept waits of years."""


class TimeLimit:
    """Calls a method when a call has run for too long.

    A thread sleeps until the deadline of the call for which it was started. If another call runs by
    then, the thread sleeps until that call's deadline, and so on; it ends when no call runs. So
    many short calls need few threads.

    There is no lock, because an interrupt could leave it held. Instead, the thread announces that
    it looks before it reads the deadline. A call that ends removes its deadline, then waits until
    the thread does not look.
    """

    def __init__(self, time_is_up: Callable[[], None], seconds: float) -> None:
        self._time_is_up = WeakMethod(time_is_up)  # weak, to avoid a reference cycle
        self.seconds = seconds
        self._deadline = inf  # time at which the running call must end
        self._thread: threading.Thread | None = None
        self._looking: set[threading.Thread] = set()
        self._is_closed = threading.Event()

    def begin(self) -> None:
        """Start to measure the time of a call."""
        self._deadline = monotonic() + self.seconds
        thread = self._thread
        if thread is None or not thread.is_alive():  # not alive: a forked child process
            self._thread = threading.Thread(
                target=self._run, name="delegraph time limit", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """Remove the call's deadline; afterwards, the method is not called for this call."""
        self._deadline = inf
        while any(thread.is_alive() for thread in tuple(self._looking)):
            sleep(0)

    def close(self) -> None:
        """Let the thread end at once."""
        self._is_closed.set()

    def _run(self) -> None:
        me = threading.current_thread()
        while (left := self._look(me)) < inf:
            self._is_closed.wait(min(left, _LONGEST_WAIT))
            if self._is_closed.is_set():
                return

    def _look(self, me: threading.Thread) -> float:
        """Request a stop if the time is up; return the seconds left, infinity if no call runs."""
        self._looking.add(me)
        left = self._deadline - monotonic()
        if left <= 0:
            if (call := self._time_is_up()) is not None:
                call()
            self._deadline = left = inf
        self._looking.discard(me)
        if left == inf:
            self._thread = None
            left = self._deadline - monotonic()  # from a call that saw this thread a moment earlier
        return left
