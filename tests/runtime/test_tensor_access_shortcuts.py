"""Inputs that were set before and outputs that were read before are copied in few steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import Eval, Interpreter, Node, OpContext, Registration
from delegraph.errors import ArgumentError, StateError
from delegraph.runtime.session import Session
from delegraph.testing import graph_model, one_op_model, tensor
from support.by_name import ByName

SMALL, LARGE = 4, 600
NOTHING_PREPARED = AssertionError("the shortcut was not taken")


def interpreter_of(size: int = SMALL, meanwhile: Callable[[], None] = lambda: None) -> Interpreter:
    """Return an interpreter that copies its input; *meanwhile* is called by the node."""

    def prepare(context: OpContext, node: Node) -> Eval:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        context.resize_tensor(y, x.shape)

        def run() -> None:
            meanwhile()
            y.data[...] = x.data

        return run

    tensors = {"x": tensor((size,)), "y": tensor((size,))}
    model = graph_model([("Copy", "x", "y")], inputs="x", outputs="y", tensors=tensors)
    custom_ops = {"Copy": Registration("Copy", prepare)}
    interpreter = Interpreter(model_content=model, custom_ops=custom_ops, delegates=[])
    interpreter.allocate_tensors()
    answer(interpreter, 1, size)
    return interpreter


def answer(interpreter: Interpreter, value: float, size: int = SMALL) -> set[float]:
    interpreter.set_tensor(0, np.full(size, value, np.float32))
    interpreter.invoke()
    return set(interpreter.get_tensor(1).tolist())


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def fail(*args: Any) -> None:
        raise NOTHING_PREPARED

    for name in names:
        monkeypatch.setattr(Session, name, fail)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_the_second_call_takes_the_shortcuts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = interpreter_of(size)
    forbid(monkeypatch, "write", "subgraph")
    assert answer(interpreter, 2, size) == {2}
    with pytest.raises(AssertionError, match="not taken"):
        interpreter.set_tensor(0, np.zeros(1, np.float32))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_nothing_is_set_while_a_call_runs(size: int) -> None:
    errors: list[Exception] = []

    def disturb() -> None:
        try:
            interpreter.set_tensor(0, np.full(size, 7, np.float32))
        except StateError as error:
            errors.append(error)

    interpreter: Any = None
    interpreter = interpreter_of(size, lambda: interpreter and disturb())
    assert answer(interpreter, 3, size) == {3}
    assert len(errors) == 1
    assert "and set_tensor was called from within it" in str(errors[0])


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize(
    "wrong",
    [np.zeros(1, np.float32), np.zeros((1, 4), np.float32), np.float64([1, 2, 3, 4]), [1.0] * 4],
    ids=["one", "rank", "float64", "list"],
)
def test_a_wrong_value_is_refused_after_a_right_one(size: int, wrong: Any) -> None:
    interpreter = interpreter_of(size)
    with pytest.raises(ArgumentError, match="Cannot set tensor"):
        interpreter.set_tensor(0, wrong)
    assert answer(interpreter, 4, size) == {4}


@pytest.mark.parametrize("index", [False, 0.0, np.int64(0)])
def test_an_index_of_another_type_takes_the_usual_way(
    index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = interpreter_of()
    forbid(monkeypatch, "write", "subgraph")
    with pytest.raises(AssertionError, match="not taken"):
        interpreter.set_tensor(index, np.zeros(SMALL, np.float32))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_another_array_lent_to_the_input_is_written(size: int) -> None:
    interpreter = interpreter_of(size)
    lent = np.zeros(size, np.float32)
    interpreter.subgraph().tensors[0].data = lent
    assert answer(interpreter, 5, size) == {5}
    assert set(lent.tolist()) == {5}


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_values_follow_a_new_shape(size: int) -> None:
    interpreter = interpreter_of(size)
    interpreter.resize_tensor_input(0, [size + 1])
    interpreter.allocate_tensors()
    with pytest.raises(ArgumentError, match="Dimension mismatch"):
        answer(interpreter, 6, size)
    assert answer(interpreter, 6, size + 1) == {6}


def test_memory_that_is_released_is_not_kept() -> None:
    interpreter = interpreter_of()
    memory = weakref.ref(interpreter.subgraph().tensors[0].data)
    assert memory() is not None
    interpreter.session.release_non_persistent_memory()
    assert memory() is None


def test_invoke_is_profiled_after_it_was_called_without() -> None:
    interpreter = interpreter_of()
    with interpreter.profile() as profile:
        interpreter.allocate_tensors()
        assert answer(interpreter, 7) == {7}
    assert answer(interpreter, 8) == {8}
    assert [event.name for event in profile.events] == ["Copy"]


def test_a_profile_may_outlive_the_interpreter() -> None:
    interpreter = interpreter_of()
    with interpreter.profile():
        interpreter.close()
    for call in (interpreter.invoke, lambda: answer(interpreter, 1)):
        with pytest.raises(StateError, match="closed"):
            call()
    with pytest.raises(StateError, match="closed"):
        interpreter.get_tensor(1)


def test_a_delegate_that_is_applied_computes_the_next_answer() -> None:
    model = one_op_model("SIN", [tensor((2,))], [tensor((2,))])
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    assert answer(interpreter, 0, 2) == {0}
    delegate = ByName("SIN")
    interpreter.modify_graph_with_delegate(delegate)
    delegate.calls.clear()
    assert answer(interpreter, 0, 2) == {0}
    assert delegate.calls
