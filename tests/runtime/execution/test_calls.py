"""One call at a time in an interpreter, whichever threads make them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

from delegraph import Eval, Interpreter, Node, OpContext, Registration
from delegraph.errors import NodeError, StateError
from delegraph.runtime.execution import calls
from delegraph.runtime.execution.calls import Calls, Cancellation
from delegraph.testing import graph_model, tensor
from support.by_name import ByName

MODEL = graph_model(
    [("Wait", "x", "y")], inputs="x", outputs="y", tensors={"x": tensor((1,)), "y": tensor((1,))}
)
F = np.float32


def waiting(meanwhile: Callable[[], None]) -> Registration:
    """Return a custom operator that copies, and does something else first."""

    def prepare(context: OpContext, node: Node) -> Eval:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]

        def run() -> None:
            meanwhile()
            y.data[...] = x.data

        return run

    return Registration("Wait", prepare)


def interpreter_of(meanwhile: Callable[[], None]) -> Interpreter:
    interpreter = Interpreter(model_content=MODEL, custom_ops={"Wait": waiting(meanwhile)})
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, F([3]))
    return interpreter


CALLS: dict[str, Callable[[Interpreter], Any]] = {
    "invoke": lambda i: i.invoke(),
    "allocate_tensors": lambda i: i.allocate_tensors(),
    "set_tensor": lambda i: i.set_tensor(0, F([1])),
    "resize_tensor_input": lambda i: i.resize_tensor_input(0, [2]),
    "reset_all_variables": lambda i: i.reset_all_variables(),
    "modify_graph_with_delegate": lambda i: i.modify_graph_with_delegate(ByName("ADD")),
    "remove_delegate": lambda i: i.remove_delegate("ADD"),
    "remove_all_delegates": lambda i: i.remove_all_delegates(),
    "close": lambda i: i.close(),
    "invoke of a subgraph": lambda i: i.subgraph().invoke(),
    "allocate of a subgraph": lambda i: i.subgraph().allocate(),
    "resize_input of a subgraph": lambda i: i.subgraph().resize_input(0, (2,)),
}
READING: dict[str, Callable[[Interpreter], Any]] = {
    "get_tensor": lambda i: i.get_tensor(1),
    "the function that tensor() returned": lambda i: i.tensor(1)(),
}


@pytest.mark.parametrize("name", [*CALLS, *READING])
def test_a_call_while_another_thread_runs_names_both_threads(name: str) -> None:
    errors: list[Exception] = []

    def disturb() -> None:
        try:
            {**CALLS, **READING}[name](interpreter)
        except StateError as error:
            errors.append(error)

    def meanwhile() -> None:
        thread = threading.Thread(target=disturb, name="B")
        thread.start()
        thread.join()

    interpreter = interpreter_of(meanwhile)
    main = threading.current_thread().name
    interpreter.invoke()
    assert [str(error) for error in errors] == [
        f"invoke runs in thread {main!r}, and {name} was called from thread 'B'. An interpreter "
        "does one thing at a time: give each thread one of its own; they may share the model's "
        "file or bytes."
    ]
    assert interpreter.get_tensor(1) == 3


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_cannot_call_the_interpreter_that_runs_it(name: str) -> None:
    interpreter = interpreter_of(lambda: CALLS[name](interpreter))
    with pytest.raises(NodeError, match=f"and {name} was called from within it from thread"):
        interpreter.invoke()
    interpreter.set_tensor(0, F([4]))


def test_a_kernel_may_read_tensors() -> None:
    seen: list[Any] = []
    interpreter = interpreter_of(lambda: seen.append(interpreter.get_tensor(0)))
    interpreter.invoke()
    assert seen == [3]


def test_threads_may_read_at_the_same_time_when_nothing_runs() -> None:
    interpreter = interpreter_of(lambda: None)
    interpreter.invoke()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: float(interpreter.get_tensor(1)[0]), range(50))) == {3.0}


def test_interpreters_of_one_model_run_in_threads_of_their_own() -> None:
    def answer(value: int) -> float:
        with Interpreter(model_content=MODEL, custom_ops={"Wait": waiting(lambda: None)}) as mine:
            mine.allocate_tensors()
            mine.set_tensor(0, F([value]))
            mine.invoke()
            return float(mine.get_tensor(1)[0])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(answer, range(20))) == list(range(20))


def test_a_failure_leaves_the_interpreter_free() -> None:
    failures = iter([ZeroDivisionError("once")])

    def fail_once() -> None:
        for error in failures:
            raise error

    interpreter = interpreter_of(fail_once)
    with pytest.raises(NodeError, match="once"):
        interpreter.invoke()
    interpreter.invoke()
    assert interpreter.get_tensor(1) == 3


class Interrupt(BaseException):
    """What the trace function raises."""


@contextmanager
def interrupted_at(event: int) -> Iterator[list[int]]:
    """Raise at the event of that number within the module; yield what was counted."""
    seen = [0]

    def trace(frame: FrameType, kind: str, _: Any) -> Any:
        if frame.f_code.co_filename != calls.__file__:
            return None
        seen[0] += 1
        if seen[0] == event:
            raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


def test_an_interrupt_at_any_line_does_not_lock_the_interpreter() -> None:
    event, reached, kept = 0, True, []
    while reached:
        event += 1
        turns = Calls(Cancellation())
        try:
            with interrupted_at(event) as seen:
                turns.run("first", lambda: None)
        except Interrupt as error:
            kept.append(error)  # whose traceback keeps the frames
        reached = seen[0] >= event
        assert turns.run("second", lambda: 2) == 2
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(turns.run, "third", lambda: 3).result() == 3
    assert len(kept) > 8


def test_of_calls_that_begin_at_once_one_runs() -> None:
    turns = Calls(Cancellation())
    inside, most = [0], [0]
    barrier = threading.Barrier(4)

    def work() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        for _ in range(1000):
            pass
        inside[0] -= 1

    def call() -> bool:
        barrier.wait()
        try:
            turns.run("call", work)
        except StateError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert any(pool.map(lambda _: call(), range(4)))
    assert most == [1]
    assert not turns.turn
