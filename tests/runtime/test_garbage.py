"""What is closed, or has failed, is free at once: the garbage collector counts no bytes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from types import FrameType
from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, Limits
from delegraph.errors import DelegateError, NodeError
from delegraph.runtime.delegates.node_facts import Findings
from support.asynchronous_delegate import LateFaulty
from support.by_name import sines
from support.faulty_delegate import Faulty, failing, nothing
from support.policy_models import doubling, positive_positions

MODELS = {"flat": sines(), "nested": doubling(), "dynamic": positive_positions()}


def use(model: bytes, *delegates: Any, **arguments: Any) -> None:
    """Open a model, invoke it and close it."""
    with Interpreter(model_content=model, delegates=delegates, **arguments) as interpreter:
        interpreter.allocate_tensors()
        detail = interpreter.get_input_details()[0]
        interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
        interpreter.invoke()


def garbage_after(work: Callable[[], object]) -> list[str]:
    """Return the types of what *work* leaves in circles: frames, errors and what is Delegraph's."""
    work()  # first use imports and caches
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        return sorted(type(found).__name__ for found in gc.garbage if _counts(found))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _counts(found: object) -> bool:
    kind = type(found)  # isinstance() would ask what a proxy stood for
    counted = FrameType, BaseException, np.ndarray
    return kind.__module__.startswith("delegraph") or issubclass(kind, counted)


@pytest.mark.parametrize("name", MODELS)
def test_a_closed_interpreter_leaves_no_garbage(name: str) -> None:
    assert garbage_after(lambda: use(MODELS[name])) == []


@pytest.mark.parametrize("policy", ["raise", "fallback", "shadow"])
@pytest.mark.parametrize("fault", [nothing, failing()])
def test_asynchronous_kernels_leave_no_garbage(fault: Any, policy: Any) -> None:
    def work() -> None:
        late = LateFaulty("SIN", fault=fault), LateFaulty("MUL", fault=fault, name="two")
        with suppress(NodeError):
            use(MODELS["flat"], *late, failures=FailurePolicy(on_failure=policy))

    assert garbage_after(work) == []


@pytest.mark.parametrize("fault", [nothing, failing()])
def test_an_asynchronous_invoke_leaves_no_garbage(fault: Any) -> None:
    def work() -> None:
        faulty = Faulty("SIN", fault=fault)
        with Interpreter(model_content=MODELS["flat"], delegates=[faulty]) as interpreter:
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, np.ones(4, np.float32))
            wait([interpreter.invoke_async()])

    assert garbage_after(work) == []


def test_a_time_limit_leaves_no_garbage() -> None:
    assert garbage_after(lambda: use(MODELS["flat"], limits=Limits(time=60))) == []


@pytest.mark.parametrize("name", MODELS)
def test_kernels_that_stood_in_for_a_delegate_leave_no_garbage(name: str) -> None:
    def work() -> None:
        use(
            MODELS[name],
            Faulty(fault=failing(), dynamic=True),
            failures=FailurePolicy(on_failure="fallback"),
        )

    assert garbage_after(work) == []


@pytest.mark.parametrize("name", MODELS)
def test_a_delegate_that_fails_to_run_leaves_no_garbage(name: str) -> None:
    def work() -> None:
        with pytest.raises(DelegateError, match="device lost"):
            use(MODELS[name], Faulty(fault=failing(), dynamic=True))

    assert garbage_after(work) == []


@pytest.mark.parametrize("name", ["flat", "dynamic"])
def test_a_delegate_that_fails_to_prepare_leaves_no_garbage(name: str) -> None:
    def fail(context: Any, node: Any, run: int) -> None:
        raise OSError("device lost")

    def work() -> None:
        with pytest.raises(DelegateError, match="device lost"):
            use(MODELS[name], Faulty(at_prepare=fail, dynamic=True))

    assert garbage_after(work) == []


def test_an_error_of_a_called_subgraph_keeps_its_own_cause() -> None:
    with pytest.raises(NodeError, match="device lost") as caught:
        use(MODELS["nested"], Faulty("ADD", fault=failing()))
    assert isinstance(caught.value.__cause__, OSError)


def test_an_error_that_is_kept_keeps_no_frames_of_when_it_was_raised() -> None:
    findings = Findings({0: NodeError("no", node_index=0, op="ADD")}, {})
    for _ in range(3):
        with pytest.raises(NodeError) as caught:
            findings.raise_first(needs_shapes=True)
        assert len(caught.traceback) == 2
