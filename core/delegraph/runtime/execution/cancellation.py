"""Stops a running call: by ``Interpreter.cancel``, or when its time limit has passed.

A stop request is a nonzero word of memory. Python reads the word before each node, and compiled
kernels between kernel calls. A loop that finds it set stops, and raises the error of
:meth:`Cancellation.raise_if_requested`. The word is zero again when the next call begins, so a
request stops only the running call.

Source:
    Interpreter::Cancel and Subgraph::InvokeImpl, tflite/core. The official runtime has no time
    limit of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import CallCancelledError, TimeLimitError

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
        reason: the request as a plain attribute, which Python reads faster than the word. If only
            the word is set, native code has set it.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self.word: NDArray[np.int32] = np.zeros(1, np.int32)
        self.reason = 0
        self._time_limit = time_limit
        self.watch: TimeLimit | None = None
        if time_limit is not None:
            from delegraph.runtime.execution.time_limit import TimeLimit  # lazy: few calls have one

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
        """Ask the call that runs to stop; from any thread, or from a signal handler."""
        self.reason = self.word[0] = _CANCELLED

    def _time_is_up(self) -> None:
        self.reason = self.word[0] = _TIME_IS_UP

    def raise_if_requested(self) -> None:
        """Raise an error if a stop of the call was requested; otherwise return.

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

    # Without super, because the outer object has the state.
    def __init__(self, outer: StopRequest) -> None:
        self._outer = outer
        self.watch = None
        self.word = outer.word

    @property
    def reason(self) -> int:  # type: ignore[override]  # set by its own call only
        """A nonzero number if a stop of the outer call was requested."""
        return int(self.word[0])

    def request(self) -> None:
        """Do nothing: a stop can be requested of the outer call only."""

    def begin(self) -> None:
        """Do nothing: the outer call has begun already."""

    def forget(self) -> None:
        """Do nothing: the outer call keeps its stop request."""

    def raise_if_requested(self) -> None:
        """Raise the error of the outer call if its stop was requested."""
        self._outer.raise_if_requested()
