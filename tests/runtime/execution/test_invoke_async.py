"""``invoke_async`` of both interpreters."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Limits
from delegraph.errors import (
    CallCancelledError,
    DelegateNodeError,
    NodeError,
    StateError,
    TimeLimitError,
)
from delegraph.testing import interrupted
from support.asynchronous_delegate import Hook, InThread, nothing
from support.by_name import ByName, X, Y, sines
from support.running import result

SECONDS = 20
"""That a test waits at most for what comes at once."""


class Held(ByName):
    """Takes SIN; its kernels wait for ``go`` before they compute."""

    def __init__(self, before: Hook = nothing) -> None:
        super().__init__("SIN", name="held")
        self.has_begun, self.go = threading.Event(), threading.Event()
        self.before = before

    def create_delegate_kernel_interface(self) -> Any:
        kernel = super().create_delegate_kernel_interface()
        compute = kernel.eval

        def eval_later(context: Any, node: Any) -> None:
            self.has_begun.set()
            self.before(context, node)
            assert self.go.wait(SECONDS)
            compute(context, node)

        kernel.eval = eval_later  # type: ignore[method-assign]  # of this object only
        return kernel


def opened(*delegates: Any, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_content=sines(), delegates=delegates, **options)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    return interpreter


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.go.set()


def test_the_result_is_there_when_the_future_is_done() -> None:
    interpreter = opened()
    for _ in range(3):
        assert interpreter.invoke_async().result(SECONDS) is None  # type: ignore[func-returns-value]  # says so
        np.testing.assert_allclose(result(interpreter), Y, 1e-6)


CALLS: dict[str, Callable[[Interpreter], Any]] = {
    "set_tensor": lambda i: i.set_tensor(0, X),
    "get_tensor": lambda i: i.get_tensor(0),
    "invoke": lambda i: i.invoke(),
    "invoke_async": lambda i: i.invoke_async(),
    "allocate_tensors": lambda i: i.allocate_tensors(),
    "resize_tensor_input": lambda i: i.resize_tensor_input(0, [3]),
    "remove_all_delegates": lambda i: i.remove_all_delegates(),
}


@pytest.mark.parametrize("name", CALLS)
def test_other_calls_are_refused_until_the_future_is_done(name: str, held: Held) -> None:
    interpreter = opened(held)
    future = interpreter.invoke_async()
    with pytest.raises(
        StateError,
        match=rf"invoke_async runs in thread 'delegraph invoke_async_0', and {name} was called "
        r"from thread .*: wait for its Future first\.",
    ):
        CALLS[name](interpreter)
    held.go.set()
    future.result(SECONDS)
    np.testing.assert_allclose(result(interpreter), Y, 1e-6)


def test_it_is_refused_while_another_call_runs(held: Held) -> None:
    interpreter = opened(held)
    thread = threading.Thread(target=interpreter.invoke)
    thread.start()
    assert held.has_begun.wait(SECONDS)
    with pytest.raises(StateError, match=r"invoke runs in thread .*, and invoke_async was"):
        interpreter.invoke_async()
    held.go.set()
    thread.join(SECONDS)
    interpreter.invoke_async().result(SECONDS)


def test_a_view_that_is_alive_is_refused() -> None:
    interpreter = opened()
    view = interpreter.tensor(0)()
    with pytest.raises(StateError, match="reference to internal data"):
        interpreter.invoke_async()
    del view
    interpreter.invoke_async().result(SECONDS)


def test_errors_come_by_the_future() -> None:
    def fails(context: Any, node: Any) -> None:
        raise OSError("device lost")

    future = opened(Held(fails)).invoke_async()
    with pytest.raises(DelegateNodeError, match="device lost"):
        future.result(SECONDS)
    interpreter = Interpreter(model_content=sines())
    with pytest.raises(StateError, match="allocate_tensors"):
        interpreter.invoke_async().result(SECONDS)


def until_stopped(context: Any, node: Any) -> None:
    while not context.cancellation.word[0]:
        threading.Event().wait(0.001)
    context.cancellation.raise_if_requested()


@pytest.mark.parametrize("by", ["future", "interpreter"])
def test_it_can_be_cancelled(by: str) -> None:
    held = Held(until_stopped)
    interpreter = opened(held)
    future = interpreter.invoke_async()
    if by == "future":
        assert not future.cancel()
    else:
        interpreter.cancel()
    with pytest.raises(CallCancelledError):
        future.result(SECONDS)
    assert not future.cancelled()
    held.before = nothing
    held.go.set()
    interpreter.invoke()
    np.testing.assert_allclose(result(interpreter), Y, 1e-6)


def test_cancelling_a_future_that_is_done_stops_no_later_call() -> None:
    held = Held()
    held.go.set()
    interpreter = opened(held)
    future = interpreter.invoke_async()
    future.result(SECONDS)

    def cancel_the_first(context: Any, node: Any) -> None:
        future.cancel()

    held.before = cancel_the_first
    interpreter.invoke_async().result(SECONDS)


def test_a_time_limit_ends_it() -> None:
    future = opened(Held(until_stopped), limits=Limits(time=0.2)).invoke_async()
    with pytest.raises(TimeLimitError):
        future.result(SECONDS)


def test_several_interpreters_run_at_once() -> None:
    all_run = threading.Barrier(3, timeout=SECONDS)
    held = [Held(lambda context, node: all_run.wait() and None) for _ in range(3)]
    interpreters = [opened(each) for each in held]
    for each in held:
        each.go.set()
    futures = [interpreter.invoke_async() for interpreter in interpreters]
    for interpreter, future in zip(interpreters, futures, strict=True):
        future.result(SECONDS)
        np.testing.assert_allclose(result(interpreter), Y, 1e-6)


def test_a_callback_may_start_the_next(held: Held) -> None:
    interpreter = opened(held)
    results: list[Any] = []
    is_over = threading.Event()

    def next_one(done: Future[None]) -> None:
        done.result()
        results.append(result(interpreter))
        if len(results) == 5:
            is_over.set()
        else:
            interpreter.invoke_async().add_done_callback(next_one)

    interpreter.invoke_async().add_done_callback(next_one)
    held.go.set()
    assert is_over.wait(SECONDS)
    np.testing.assert_allclose(results, [Y] * 5, 1e-6)


def test_asyncio_waits_for_it_and_cancels_it() -> None:
    held = Held(until_stopped)
    interpreter = opened(held)
    stopped = []

    async def given_up() -> None:
        stopped.append(interpreter.invoke_async())
        await asyncio.wait_for(asyncio.wrap_future(stopped[0]), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(given_up())
    held.before = nothing
    held.go.set()

    async def awaited() -> None:
        await asyncio.wrap_future(interpreter.invoke_async())

    wait(stopped)
    asyncio.run(awaited())
    np.testing.assert_allclose(result(interpreter), Y, 1e-6)


def test_closing_waits_for_it(held: Held) -> None:
    with opened(held) as interpreter:
        future = interpreter.invoke_async()
        threading.Timer(0.05, held.go.set).start()
    assert future.done()
    future.result()


def test_a_kernel_cannot_close_the_interpreter_that_runs_it() -> None:
    held = Held(lambda context, node: interpreter.close())
    held.go.set()
    interpreter = opened(held)
    with pytest.raises(NodeError, match="and close was called from within it"):
        interpreter.invoke_async().result(SECONDS)


def test_it_lasts_longer_than_the_variable_that_holds_the_interpreter(held: Held) -> None:
    interpreter = opened(held)
    future = interpreter.invoke_async()
    del interpreter
    held.go.set()
    future.result(SECONDS)


def test_asynchronous_kernels_in_an_asynchronous_invoke() -> None:
    interpreter = opened(InThread("SIN"), InThread("MUL", name="two"))
    interpreter.invoke_async().result(SECONDS)
    np.testing.assert_allclose(result(interpreter), Y, 1e-6)


def test_it_may_be_interrupted_while_it_is_started() -> None:
    interpreter = opened()
    at = 0
    while interrupted(lambda: wait([interpreter.invoke_async()]), at, inside=["delegraph"]):
        interpreter.invoke_async().result(SECONDS)
        np.testing.assert_allclose(result(interpreter), Y, 1e-6)
        at += 1
    assert at > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_the_process_has_threads_of_its_own(held: Held) -> None:
    interpreter = opened()
    interpreter.invoke_async().result(SECONDS)
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # or a child without threads would wait for ever
        try:
            interpreter.invoke_async().result(SECONDS)
            interpreter.close()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
