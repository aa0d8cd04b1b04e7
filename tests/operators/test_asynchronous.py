from __future__ import annotations

from concurrent.futures import Future

import pytest

from delegraph.errors import OperatorError
from delegraph.operators.asynchronous import DONE, AsyncEval, Started, preceded_by, require_event


class Event:
    """Fails when it is first waited for, and says nothing of it later."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.waits = 0

    def wait(self) -> None:
        self.waits += 1
        if self.errors:
            raise self.errors.pop(0)


def test_a_future_and_whatever_can_be_waited_for_are_events() -> None:
    for event in (DONE, Event()):
        assert require_event(event) is event


@pytest.mark.parametrize("found", [None, "wait", Event])
def test_nothing_else_is_an_event(found: object) -> None:
    if found is Event:
        found = type("NoMethod", (), {"wait": 1})()
    with pytest.raises(OperatorError, match=r"eval_async\(\) returned .*, expected an object with"):
        require_event(found)


def test_what_fails_before_it_is_waited_for_in_its_turn_fails_then() -> None:
    started = Started(Event(OSError("lost")))
    started.settle()
    started.settle()
    with pytest.raises(OSError, match="lost"):
        started.wait()
    started.wait()


def test_a_future_that_fails_or_was_cancelled_fails() -> None:
    failed, cancelled = Future[None](), Future[None]()
    failed.set_exception(OSError("lost"))
    cancelled.cancel()
    with pytest.raises(OSError, match="lost"):
        Started(failed).wait()
    with pytest.raises(Exception, match=r"^$"):
        Started(cancelled).wait()


def test_an_interrupt_is_no_outcome() -> None:
    event = Event(KeyboardInterrupt())
    started = Started(event)
    with pytest.raises(KeyboardInterrupt):
        started.settle()
    assert started.outcome() is None
    assert event.waits == 2


def test_an_asynchronous_eval_is_called_or_started() -> None:
    log: list[str] = []

    def start() -> Event:
        log.append("start")
        return Event()

    step = preceded_by(lambda: log.append("before"), AsyncEval(lambda: log.append("run"), start))
    step()
    assert log == ["before", "run"]
    assert isinstance(step, AsyncEval)
    step.finish(Started(step.start()))
    assert log[2:] == ["before", "start"]


def test_what_precedes_another_eval_leaves_it_what_it_is() -> None:
    log: list[str] = []
    step = preceded_by(lambda: log.append("before"), lambda: log.append("run"))
    step()
    assert log == ["before", "run"]
    assert not isinstance(step, AsyncEval)
