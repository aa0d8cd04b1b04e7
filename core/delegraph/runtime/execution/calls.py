"""Allows one call at a time, and stops the running call.

A running interpreter rejects other calls from any thread. ``Interpreter.cancel`` stops a running
call, and so does its time limit. A stop request is a nonzero word of memory. Python reads the word
before each node, and compiled kernels between kernel calls. A loop that finds a nonzero word stops,
and raises the error of :meth:`Cancellation.raise_if_requested`. The word is zero again when the
next call begins, so a request stops only the running call.

Source:
    Interpreter::Cancel and Subgraph::InvokeImpl, tflite/core. The official runtime has no time
    limit of its own.
"""

from __future__ import annotations

from _thread import get_ident  # the class that threading uses, whose import is slow
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import CallCancelledError, StateError, TimeLimitError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.delegation.delegate import StopRequest
    from delegraph.runtime.execution.time_limit import TimeLimit


_CANCELLED = 1
_TIME_IS_UP = 2


class Cancellation:
    """Stop request for the running call, by the user or by a time limit.

    Args:
        time_limit: seconds that a call may take; None for no limit.

    Attributes:
        word: array of shape [1], int32, always in the same memory; a value other than 0 is a
            request.
        reason: copy of the request in a plain attribute, which Python reads faster than the word.
            Native code sets only the word.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self.word: NDArray[np.int32] = np.zeros(1, np.int32)
        self.reason = 0
        self._time_limit = time_limit
        self.watch: TimeLimit | None = None
        if time_limit is not None:
            from delegraph.runtime.execution.time_limit import TimeLimit  # here: few calls have one

            self.watch = TimeLimit(self._time_is_up, time_limit)

    @property
    def is_timed(self) -> bool:
        """Whether calls have a time limit."""
        return self.watch is not None

    def begin(self) -> None:
        """Clear old stop requests and start the time limit of a new call."""
        self.forget()
        if self.watch is not None:
            self.watch.begin()

    def forget(self) -> None:
        """Stop the time limit and clear the stop request, at the end of a call or for cleanup."""
        if self.watch is not None:
            self.watch.end()
        self.word[0] = self.reason = 0

    def request(self) -> None:
        """Ask the running call to stop; may be called from any thread, or from a signal handler."""
        self.reason = self.word[0] = _CANCELLED

    def _time_is_up(self) -> None:
        self.reason = self.word[0] = _TIME_IS_UP

    def raise_if_requested(self) -> None:
        """Raise an error if a stop of the call was requested.

        Raises:
            CallCancelledError: :meth:`request` was called.
            TimeLimitError: the time of the call is up.
        """
        reason = self.reason or self.word[0]
        if not reason:
            return
        if reason == _TIME_IS_UP:
            raise TimeLimitError(
                f"The call took more than the time limit of {self._time_limit:g} s and was "
                "stopped; Interpreter(limits=Limits(time=...)) sets another"
            )
        raise CallCancelledError("Client requested cancel during Invoke()")

    def close(self) -> None:
        """End the thread that watches the time limit."""
        if self.watch is not None:
            self.watch.close()


class NestedCancellation(Cancellation):
    """Cancellation of an interpreter whose calls are part of another interpreter's call.

    Args:
        outer: stop request of the outer call.
    """

    def __init__(self, outer: StopRequest) -> None:  # without super: the outer one has the state
        self._outer = outer
        self.watch = None
        self.word = outer.word

    @property
    def reason(self) -> int:  # type: ignore[override]  # set by its own call only
        """A nonzero number if a stop of the outer call was requested."""
        return int(self.word[0])

    def request(self) -> None:
        """Do nothing, because a stop can be requested of the outer call only."""

    def begin(self) -> None:
        """Do nothing, because the outer call has begun already."""

    def forget(self) -> None:
        """Do nothing, because the outer call keeps its stop request."""

    def raise_if_requested(self) -> None:
        """Raise the error of the outer call if its stop was requested."""
        self._outer.raise_if_requested()


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
        return self.bound(name, partial(work, *args) if args else work)()

    def bound(
        self,
        name: str,
        work: Callable[[], Any],
        failed: Callable[[Exception], object] | None = None,
    ) -> Callable[[], Any]:
        """Return a function that calls *work* while no other call can run, with little overhead.

        ``setdefault`` takes the lock and records its owner in one step. With two steps, an
        interrupt between them would leave a lock without an owner. An interrupt may also end the
        first attempt to release the lock, so there is a second attempt.

        Args:
            name: name of the call, for the error of another call that is made meanwhile.
            work: function that does the work of each call.
            failed: function that is called with an error of *work* and may raise another one; None
                if errors are raised as they are.
        """
        turn, cancellation, is_timed = self.turn, self._cancellation, self._cancellation.is_timed

        def call() -> Any:
            mine = name, get_ident()
            try:
                try:
                    owner = turn.setdefault("owner", mine)
                    if owner is not mine:
                        raise busy_error(*owner, name)
                    if is_timed or cancellation.reason:
                        cancellation.begin()
                        if failed is not None:  # *work* does not read the request
                            cancellation.raise_if_requested()
                    result = work()
                    if is_timed:  # a late request to stop is cleared as the next call begins
                        cancellation.forget()
                    del turn["owner"]
                    return result
                except Exception as error:
                    if failed is None or turn.get("owner") is not mine:
                        raise
                    return failed(error)
                finally:
                    if turn:  # after an error, or while another call had its turn
                        self._give_back(mine)
            finally:
                if turn:
                    self._give_back(mine)

        return call

    def _give_back(self, mine: tuple[str, int]) -> None:
        """Release the interpreter's lock if the call *mine* holds it.

        Args:
            mine: name and thread of the call, as it was stored in the lock.
        """
        if self.turn.get("owner") is mine:
            self._cancellation.forget()
            del self.turn["owner"]

    def check(self, name: str) -> None:
        """Raise an error if a call runs in another thread; *name* is the method being called.

        Raises:
            StateError: a call runs in another thread.
        """
        owner = self.turn.get("owner")
        if owner is not None and owner[1] != get_ident():
            raise busy_error(*owner, name)


def busy_error(call: str, thread: int, name: str) -> StateError:
    """Return the error for a call made while another call runs."""
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
