"""Allows one call at a time: a running interpreter refuses other calls from any thread."""

from __future__ import annotations

from _thread import get_ident  # the class that threading uses, whose import is slow
from collections.abc import Callable
from typing import Any

from delegraph.errors import StateError
from delegraph.runtime.execution.cancellation import Cancellation


class Calls:
    """Lock of an interpreter: one call runs, and all other calls raise an error.

    Args:
        cancellation: request that stops the running call.

    Attributes:
        turn: the lock: a mapping with name and thread of the running call; empty if none runs.
    """

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self.turn: dict[str, tuple[str, int]] = {}

    def run(self, name: str, work: Callable[..., Any], *args: Any) -> Any:
        """Call *work* and return its result while no other call can run.

        Args:
            name: name of the call, for the error of another call that is made meanwhile.
            work: function that does the work of the call.
            args: arguments for *work*.

        Raises:
            StateError: another call runs.
        """
        return self.bound(name, work)(*args)

    def bound(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function with the effect of :meth:`run`, for calls that are made often.

        It passes its arguments to *work*.

        ``setdefault`` takes the lock and records its owner in one step. With two steps, an
        interrupt between them would leave a lock without an owner. An interrupt may also end the
        first attempt to release the lock, so there is a second attempt.

        Args:
            name: see :meth:`run`.
            work: function that does the work of each call.
        """
        turn, cancellation, is_timed = self.turn, self._cancellation, self._cancellation.is_timed

        def call(*args: Any) -> Any:
            mine = name, get_ident()
            try:
                try:
                    owner = turn.setdefault("owner", mine)
                    if owner is not mine:
                        raise busy_error(*owner, name)
                    if is_timed or cancellation.reason:
                        cancellation.begin()
                    result = work(*args)
                    if is_timed or cancellation.reason:
                        cancellation.forget()
                    del turn["owner"]
                    return result
                finally:
                    if turn:  # after an error, or while another call had its turn
                        self._give_back(mine)
            finally:
                if turn:
                    self._give_back(mine)

        return call

    def _give_back(self, mine: tuple[str, int]) -> None:
        """Release the lock if the call *mine* holds it."""
        if self.turn.get("owner") is mine:
            self._cancellation.forget()
            del self.turn["owner"]

    def check(self, name: str) -> None:
        """Raise an error if a call runs in another thread; *name* is the method called now.

        Raises:
            StateError: a call runs in another thread.
        """
        owner = self.turn.get("owner")
        if owner is not None and owner[1] != get_ident():
            raise busy_error(*owner, name)


def busy_error(call: str, thread: int, name: str) -> StateError:
    """Return the error for a call made while another call runs.

    Args:
        call: name of the running call.
        thread: thread of the running call.
        name: name of the refused call.
    """
    here = get_ident()
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
    import threading

    names = {t.ident: t.name for t in threading.enumerate()}
    return names.get(thread, str(thread))
