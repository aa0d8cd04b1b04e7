"""The word that stops a call, by request or when its time is up."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import Eval, Interpreter, Limits, Node, OpContext, Registration
from delegraph.errors import ArgumentError, CallCancelledError, TimeLimitError
from delegraph.runtime.execution import calls, time_limit
from delegraph.runtime.execution.calls import Cancellation
from delegraph.schema.options import LessOptions, WhileOptions
from delegraph.testing import (
    constant,
    graph_model,
    interrupted,
    one_op_model,
    subgraphs_model,
    tensor,
)

LONG = 3600.0
SINE = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
LIMIT = 0.5  # seconds; what ends by itself takes milliseconds, even on a busy machine


def wait_until_set(stop: Cancellation) -> None:
    while not stop.word[0]:
        pass


def test_the_word_is_one_int32_that_stays_where_it_is() -> None:
    stop = Cancellation(LONG)
    word = stop.word
    assert (word.shape, word.dtype) == ((1,), np.int32)
    stop.request()
    stop.begin()
    assert stop.word is word
    stop.close()


def test_a_request_ends_the_call_and_no_later_one() -> None:
    stop = Cancellation()
    stop.begin()
    stop.raise_if_requested()
    stop.request()
    with pytest.raises(CallCancelledError, match=r"^Client requested cancel during Invoke\(\)$"):
        stop.raise_if_requested()
    stop.forget()
    stop.begin()
    stop.raise_if_requested()


def test_a_call_whose_time_is_up_is_told_the_limit() -> None:
    stop = Cancellation(0.001)
    stop.begin()
    wait_until_set(stop)
    with pytest.raises(TimeLimitError, match=r"the time limit of 0\.001 s and was stopped"):
        stop.raise_if_requested()
    stop.forget()
    stop.begin()
    stop.forget()
    assert issubclass(TimeLimitError, TimeoutError)


def test_the_time_of_a_call_that_has_ended_stops_no_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time_limit, "monotonic", lambda: now[0])
    stop = Cancellation(0.01)
    before = threading.active_count()
    stop.begin()
    stop.forget()
    now[0] = LONG
    while threading.active_count() > before:
        pass
    assert not stop.word[0]


def test_many_calls_need_one_thread_which_ends_when_nothing_runs() -> None:
    stop = Cancellation(0.01)
    before = threading.active_count()
    for _ in range(100):
        stop.begin()
        assert threading.active_count() <= before + 1
        stop.forget()
    while threading.active_count() > before:
        pass


def test_closing_ends_the_thread() -> None:
    stop, others = Cancellation(LONG), threading.enumerate()
    stop.begin()
    stop.forget()
    (thread,) = (t for t in threading.enumerate() if t not in others)
    stop.close()
    thread.join(30)
    assert not thread.is_alive()


def test_an_interrupt_at_any_line_leaves_the_next_call_its_time() -> None:
    event, was_interrupted = 0, True
    while was_interrupted:
        event += 1
        stop = Cancellation(0.002)

        def call(stop: Cancellation = stop) -> None:
            stop.begin()
            stop.forget()

        inside = [calls.__name__, time_limit.__name__]
        was_interrupted = interrupted(call, event - 1, inside=inside)
        stop.begin()
        wait_until_set(stop)
        stop.forget()
    assert event > 10


# -- interpreters inside a kernel --------------------------------------------------------------


def endless() -> bytes:
    """Return a model that takes the sine as long as it is less than two."""
    number, loop = tensor((1,)), WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    two = {"x": number, "two": constant(np.float32([2])), "less": tensor((1,), "BOOL")}
    return subgraphs_model(
        [
            ([("WHILE", "x", "y", loop)], "x", "y", {"x": number, "y": number}),
            ([("LESS", "x two", "less", LessOptions())], "x", "less", two),
            ([("SIN", "x", "y")], "x", "y", {"x": number, "y": number}),
        ]
    )


def outside(model: bytes, before: Callable[[], None], **options: Any) -> Interpreter:
    """Return an interpreter whose one kernel calls *before*, then runs *model* inside, twice."""

    def prepare(context: OpContext, node: Node) -> Eval:
        request = getattr(context, "cancellation", None)
        inner = Interpreter(model_content=model, limits=Limits(cancellation=request))
        inner.allocate_tensors()
        inner.set_tensor(0, np.ones(inner.get_input_details()[0]["shape"], np.float32))

        def run() -> None:
            before()
            for _ in range(2):
                inner.invoke()

        return run

    content = one_op_model("inner", [tensor((1,))], [tensor((1,))])
    registration = Registration("inner", prepare)
    outer = Interpreter(model_content=content, custom_ops={"inner": registration}, **options)
    outer.allocate_tensors()
    outer.set_tensor(0, np.float32([1]))
    return outer


def test_it_is_cancelled_with_the_call() -> None:
    outer = outside(SINE, lambda: outer.cancel() if is_asked else None)
    is_asked = True
    for _ in range(2):
        with pytest.raises(CallCancelledError):
            outer.invoke()
    is_asked = False
    outer.invoke()


def test_it_ends_when_the_time_of_the_call_is_up() -> None:
    outer = outside(endless(), lambda: None, limits=Limits(time=LIMIT))
    with pytest.raises(TimeLimitError, match=r"the time limit of 0\.5 s"):
        outer.invoke()


def test_cancelling_it_does_nothing_to_the_call() -> None:
    request = Cancellation()
    Interpreter(model_content=SINE, limits=Limits(cancellation=request)).cancel()
    request.raise_if_requested()


def test_it_has_no_time_of_its_own() -> None:
    with pytest.raises(ArgumentError, match=r"Limits\.time and Limits\.cancellation are given"):
        Interpreter(model_content=SINE, limits=Limits(time=1, cancellation=Cancellation()))
