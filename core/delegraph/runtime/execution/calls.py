"""One call at a time: an interpreter that runs refuses other calls, whichever thread makes them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from delegraph.errors import StateError
from delegraph.runtime.execution.cancellation import Cancellation


class Calls:
    """The turn that a call takes while it runs.

    Whoever runs has taken the only item out of a list. What has it is not written down, which would
    cost as much again: when a turn is missing, the stacks of all threads tell. So a turn that an
    interrupt has lost, between taking it and giving it back, is found not to be in use.

    Args:
        cancellation: what stops the call that runs.
    """

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self._is_timed = cancellation.is_timed
        self.turn = [None]
        self._searching = threading.Lock()

    def run(self, name: str, work: Callable[..., Any], *args: Any) -> Any:
        """Do *work* and return what it returns, as the only call that runs.

        Args:
            name: of the call, for the error that another one gets meanwhile.
            work: what the call does.
            args: what *work* is called with.

        Raises:
            StateError: another call runs.
        """
        while True:
            try:
                self.turn.pop()
                break
            except IndexError:
                self._refuse_unless_lost(name)
        try:
            if self._is_timed or self._cancellation.reason:
                self._cancellation.begin()
            return work(*args)
        finally:
            if self._is_timed or self._cancellation.reason:
                self._cancellation.forget()
            self.turn.append(None)

    def check(self, name: str) -> None:
        """Refuse to read what another thread computes; the thread that computes may.

        Raises:
            StateError: a call runs in another thread.
        """
        if not self.turn:
            running = self._running()
            if running is not None and running[1] != threading.get_ident():
                raise busy_error(*running, name)

    def _refuse_unless_lost(self, name: str) -> None:
        """Raise the error of a call that finds another one running; put back a turn that is lost.

        Raises:
            StateError: another call runs.
        """
        with self._searching:
            if not self.turn:
                running = self._running()
                if running is not None:
                    raise busy_error(*running, name)
                self.turn.append(None)

    def _running(self) -> tuple[str, int] | None:
        """Return the name and thread of the call that runs; None where there is none."""
        waiting = Calls._refuse_unless_lost.__code__
        for thread, frame in sys._current_frames().items():
            above: Any = None
            below: Any = frame
            while below is not None:
                if (
                    below.f_code is Calls.run.__code__
                    and below.f_locals["self"] is self
                    and (above is None or above.f_code is not waiting)
                ):
                    return below.f_locals["name"], thread
                above, below = below, below.f_back
        return None


def busy_error(call: str, thread: int, name: str) -> StateError:
    """Return the error of a call that finds another one running.

    Args:
        call: the one that runs.
        thread: where it runs.
        name: of the one that is refused.
    """
    here = threading.get_ident()
    within = " from within it" if thread == here else ""
    remedy = (
        "wait for its Future first"
        if call == "invoke_async"
        else "give each thread one of its own; they may share the model's file or bytes"
    )
    return StateError(
        f"{call} runs in thread {_name(thread)!r}, and {name} was called{within} from thread "
        f"{_name(here)!r}. An interpreter does one thing at a time: {remedy}."
    )


def _name(thread: int) -> str:
    names = {t.ident: t.name for t in threading.enumerate()}
    return names.get(thread, str(thread))
