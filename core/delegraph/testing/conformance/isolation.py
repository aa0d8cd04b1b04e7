"""Contract checks: delegates, kernels and interpreters do not affect each other."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any
from unittest import SkipTest

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.driver import SimpleDelegate
from delegraph.testing.conformance.chains import chains, nodes_of
from delegraph.testing.conformance.contract import require_right
from delegraph.testing.conformance.sample_models import (
    specimens,
    with_other_shapes,
    with_other_values,
)
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, open_interpreter

ROUNDS = 5
"""Number of invokes of each interpreter, in turn or in parallel."""


def kernels_are_not_shared(subject: Subject) -> None:
    """Check that every partition has a separate kernel object."""
    delegate = subject.make()
    if not isinstance(delegate, SimpleDelegate):
        raise SkipTest("the delegate is no SimpleDelegateInterface")
    first, second = (delegate.simple.create_delegate_kernel_interface() for _ in range(2))
    if first is second:
        raise AssertionError(
            "create_delegate_kernel_interface() returns the same object twice; each partition "
            "needs its own"
        )


def one_object_serves_two_interpreters(subject: Subject) -> None:
    """Check that one delegate object in two interpreters keeps their states apart."""
    delegate = subject.make()
    _take_turns(subject, delegate, delegate, "one delegate object in two interpreters")


def two_objects_share_nothing(subject: Subject) -> None:
    """Check that two delegate objects have no state in common."""
    _take_turns(subject, subject.make(), subject.make(), "two delegate objects in two interpreters")


def partitions_share_nothing(subject: Subject) -> None:
    """Check that two partitions in one model give the same results as each alone."""
    compared = [trial for trial in chains(subject) if _is_right_in_two(subject, trial)]
    if not compared:
        raise SkipTest("no model that it takes can be cut into two partitions")


def _is_right_in_two(subject: Subject, trial: Trial) -> bool:
    """Check that a model gives right results if its middle node is excluded from the delegate.

    The result is False, without a check, if the model then has fewer than two partitions.
    """
    what = "two partitions in one model, which is right as one partition; what do kernels share?"
    if trial.case.reference is not None:
        return False  # there is no other kernel for the middle
    middle = nodes_of(trial) // 2
    with open_interpreter(trial.case, subject.make(), leaving=middle) as interpreter:
        if len(interpreter.placement.partitions) < 2:
            return False
        for each in (trial, with_other_values(trial) or trial, trial):
            require_right(subject, interpreter, each, what)
    return True


def threads_do_not_meet(subject: Subject) -> None:
    """Check that two interpreters in two threads give the same results as each alone."""
    for trial, other in _pairs(subject):
        delegate = subject.make()
        for second in (delegate, subject.make()):
            _run_side_by_side(subject, (trial, delegate), (other, second))


def _take_turns(subject: Subject, first: Delegate, second: Delegate, what: str) -> None:
    for trial, other in _pairs(subject):
        with (
            open_interpreter(trial.case, first) as one,
            open_interpreter(other.case, second) as two,
        ):
            one.allocate_tensors()
            two.allocate_tensors()
            for _ in range(2):
                require_right(subject, one, trial, f"{what}, the first")
                require_right(subject, two, other, f"{what}, the second")


def _pairs(subject: Subject) -> Iterator[tuple[Trial, Trial]]:
    """Yield pairs of trials; the second has other shapes or values, or is another sample model."""
    found = specimens(subject)
    for trial, next_one in zip(found, (*found[1:], found[0]), strict=True):
        changed = (with_other_shapes(trial), with_other_values(trial))
        others = [other for other in (*changed, next_one) if other is not None]
        for other in others[: subject.effort.partners]:
            yield trial, other


def _run_side_by_side(subject: Subject, *runs: tuple[Trial, Delegate]) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(len(runs))

    def run(trial: Trial, delegate: Delegate) -> None:
        try:
            with open_interpreter(trial.case, delegate) as interpreter:
                interpreter.allocate_tensors()
                start.wait()
                sys.settrace(_give_way)
                for _ in range(ROUNDS):
                    require_right(subject, interpreter, trial, "two interpreters in two threads")
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            failures.append(error)
            start.abort()
        finally:
            sys.settrace(None)

    threads = [threading.Thread(target=run, args=each) for each in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    real = [f for f in failures if not isinstance(f, threading.BrokenBarrierError)]
    if real:
        raise real[0]


def _give_way(frame: FrameType, event: str, argument: Any) -> Any:
    """Trace function (``sys.settrace``) that lets other threads run at each line of the delegate.

    Lines in Delegraph and NumPy are left out.
    """
    module = frame.f_globals.get("__name__", "").split(".")[0]
    if module in ("delegraph", "numpy"):
        return None
    time.sleep(0)
    return _give_way
