"""Runs prepared nodes one after the other in a function whose arguments are bound once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from delegraph.operators.registration import Eval, NativeEval

if TYPE_CHECKING:
    from delegraph.runtime.execution.cancellation import Cancellation

Work = TypeVar("Work", bound=Callable[..., Any])

Failure = Callable[[int, Exception], Exception]
"""Function that returns the error of a node from the node's position and its eval's error."""


class Runner(Protocol):
    """Object that is told when nodes begin and end to run."""

    is_running: bool


def run_in_order(
    evals: Sequence[Eval], first: int, cancellation: Cancellation, failure: Failure
) -> None:
    """Run nodes, the first at position *first*, until one fails or a stop is requested.

    Raises:
        DelegraphError: what *failure* returned.
    """
    position = first - 1
    try:
        for run in evals:
            position += 1
            if cancellation.reason:
                cancellation.raise_if_requested()
            run()
    except Exception as error:  # noqa: BLE001 - raised on as the node's
        # Unnamed: an error that a frame of its traceback names goes with the garbage only.
        raise failure(position, error) from cause_of(error)


def cause_of(error: Exception) -> BaseException | None:
    """Return what ``node_errors.cause_of`` does; that module is imported once a node has failed."""
    from delegraph.runtime.execution import node_errors

    return node_errors.cause_of(error)


def is_asynchronous(run: Eval) -> bool:
    """Whether an evaluation may be started, and waited for after others have run."""
    if isinstance(run, FunctionType | MethodType | NativeEval | partial):
        return False  # as nearly all: the class of the others is not imported for these
    from delegraph.operators.asynchronous import AsyncEval

    return isinstance(run, AsyncEval)


def followed(run: Eval, after: Callable[[], None]) -> Eval:
    """Return the evaluation that runs *run*, then *after*."""

    def run_and_follow() -> None:
        run()
        after()

    return run_and_follow


def native_run(
    evals: Sequence[Eval], runner: Runner, cancellation: Cancellation, failure: Failure
) -> Eval | None:
    """Step function of a plan with a single native node; None for other plans.

    A model that is a single partition may run in microseconds, so each Python call matters.
    """
    if len(evals) != 1 or not isinstance(evals[0], NativeEval):
        return None
    step, rescue = evals[0].run, evals[0].rescue

    def run() -> None:
        runner.is_running = True
        try:
            if cancellation.reason:
                cancellation.raise_if_requested()
            step()
        except Exception as error:  # noqa: BLE001 - raised on as the node's
            left = error if rescue is None else rescue(error)
            if left is not None:
                raise failure(0, left) from cause_of(left)
        finally:
            runner.is_running = False

    return run


def ignoring_float_errors(work: Work) -> Work:
    """Return *work* wrapped so that float errors raise no error and give no warning, as in C."""

    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return work(*args)

    def run_in_state(*args: Any) -> Any:
        token = variable.set(state)
        try:
            return work(*args)
        finally:
            variable.reset(token)

    found = ignoring_state()
    if found is None:
        return run  # type: ignore[return-value]  # same arguments and result
    variable, state = found
    return run_in_state  # type: ignore[return-value]  # same arguments and result


def ignoring_state() -> tuple[ContextVar[Any], Any] | None:
    """Return NumPy's context variable for float errors and its value that ignores them.

    NumPy 1 keeps the state elsewhere; the function returns None there.
    """
    before, after = copy_context(), copy_context()
    after.run(np.seterr, all="ignore")
    changed = [(var, state) for var, state in after.items() if before.get(var) is not state]
    return changed[0] if len(changed) == 1 else None
