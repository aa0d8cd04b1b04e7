"""Evaluations that can be started before other nodes run, and awaited afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass, replace
from delegraph.operators.registration import Eval

if TYPE_CHECKING:
    from concurrent.futures import Future


class Event(Protocol):
    """Work in progress that can be awaited; a ``concurrent.futures.Future`` also qualifies."""

    def wait(self) -> object:
        """Wait until the work is done; return any value, or raise the work's error.

        The method may be called more than once.
        """


AnyEvent: TypeAlias = "Event | Future[Any]"
"""Result of ``eval_async``: an event that marks the end of the work."""


class _Done:
    """Event of work that was already done when it was started."""

    def wait(self) -> None:
        """Return at once, since the work is done."""


DONE = _Done()
"""Event of work that is done already."""


def require_event(found: Any) -> AnyEvent:
    """Return *found*, the result of ``eval_async``, after checking that it is an event.

    Raises:
        OperatorError: *found* is neither an :class:`Event` nor a ``Future``.
    """
    from concurrent.futures import Future  # lazy: a host of asynchronous nodes alone needs it

    if isinstance(found, Future) or callable(getattr(found, "wait", None)):
        event: AnyEvent = found
        return event
    raise OperatorError(
        f"eval_async() returned {found!r}, expected an object with wait(), or a "
        "concurrent.futures.Future"
    )


class Started:
    """An evaluation that has been started.

    Args:
        event: event that marks the end of the evaluation.
    """

    def __init__(self, event: AnyEvent) -> None:
        self._event = event
        self._error: Exception | None = None

    def settle(self) -> None:
        """Wait until the work has ended; store its error for :meth:`wait`."""
        try:
            event: Any = self._event
            wait = getattr(event, "wait", None) or event.result
            wait()
        except Exception as error:  # noqa: BLE001 - of a plugin, and raised by wait()
            if self._error is None:
                self._error = error

    def outcome(self) -> Exception | None:
        """Wait until the work has ended; return its error once, or None if it succeeded.

        The caller should delete its variable: the error's traceback may refer to the caller's
        frame.
        """
        self.settle()
        error, self._error = self._error, None
        try:
            return error
        finally:
            del error

    def wait(self) -> None:
        """Wait until the work is done; raise its error if it failed.

        Raises:
            Exception: the error of the work.
        """
        error = self.outcome()
        try:
            if error is not None:
                raise error
        finally:
            del error


@dataclass(frozen=True, slots=True)
class AsyncEval:
    """An :data:`~delegraph.operators.registration.Eval` that may also be started.

    A ``Registration.prepare`` may return an object of this class. Hosts that run node by node call
    the object. Other hosts may call ``start``, run nodes that do not need the result, and then call
    ``finish``, once after each ``start`` unless the invoke fails in between.

    Attributes:
        run: function that computes the outputs; calling the object calls this function.
        start: function that starts the computation.
        finish: function that waits until the computation is done, and raises its error.
    """

    run: Eval
    start: Callable[[], AnyEvent]
    finish: Callable[[Started], None] = Started.wait

    def __call__(self) -> None:
        """Compute the outputs, and return when they are complete."""
        self.run()


def preceded_by(first: Eval, step: Eval) -> Eval:
    """Return an evaluation that runs *first*, then *step*; it can be started if *step* can."""

    def both() -> None:
        first()
        step()

    if not isinstance(step, AsyncEval):
        return both

    def start() -> AnyEvent:
        first()
        return step.start()

    return replace(step, run=both, start=start)
