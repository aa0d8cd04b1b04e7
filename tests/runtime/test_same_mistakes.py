"""The same mistakes raise the same exception types as in the official interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as OfficialInterpreter

from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema.options import AddOptions
from delegraph.testing import one_op_model, tensor

Mistake = Callable[[Any], object]


@pytest.fixture(scope="module")
def model() -> bytes:
    shape = (1, 4)
    return one_op_model("ADD", [tensor(shape), tensor(shape)], [tensor(shape)], AddOptions())


def ready(interpreter: Any) -> Any:
    interpreter.allocate_tensors()
    return interpreter


def holding_a_view(interpreter: Any, call: str, *args: object) -> object:
    view = ready(interpreter).tensor(0)()
    half = view[:, :2]
    del view
    assert half is not None
    return getattr(interpreter, call)(*args)


CALLS: dict[str, Mistake] = {
    "invoke before allocate": lambda i: i.invoke(),
    "get before allocate": lambda i: i.get_tensor(2),
    "set before allocate": lambda i: i.set_tensor(0, np.zeros((1, 4), np.float32)),
    "float64 value": lambda i: ready(i).set_tensor(0, np.zeros((1, 4))),
    "int32 value": lambda i: ready(i).set_tensor(0, np.zeros((1, 4), np.int32)),
    "list of floats": lambda i: ready(i).set_tensor(0, [[1.0, 2.0, 3.0, 4.0]]),
    "string value": lambda i: ready(i).set_tensor(0, np.array(["a"] * 4).reshape(1, 4)),
    "wrong rank": lambda i: ready(i).set_tensor(0, np.zeros(4, np.float32)),
    "wrong dimension": lambda i: ready(i).set_tensor(0, np.zeros((1, 5), np.float32)),
    "broadcastable value": lambda i: ready(i).set_tensor(0, np.zeros((1, 1), np.float32)),
    "set past the last tensor": lambda i: ready(i).set_tensor(9, np.zeros((1, 4), np.float32)),
    "set a negative index": lambda i: ready(i).set_tensor(-1, np.zeros((1, 4), np.float32)),
    "get past the last tensor": lambda i: ready(i).get_tensor(9),
    "get from no subgraph": lambda i: ready(i).get_tensor(0, 3),
    "view before allocate": lambda i: i.tensor(0)(),
    "details of no subgraph": lambda i: i.get_tensor_details(5),
    "resize past the last tensor": lambda i: i.resize_tensor_input(9, [1, 4]),
    "resize by two dimensions": lambda i: i.resize_tensor_input(0, [[1, 4]]),
    "resize to a negative size": lambda i: i.resize_tensor_input(0, [-1, 4]),
    "strict resize of a fixed shape": lambda i: i.resize_tensor_input(0, [2, 4], strict=True),
    "strict resize to another rank": lambda i: i.resize_tensor_input(0, [4], strict=True),
    "resize, then invoke": lambda i: (ready(i).resize_tensor_input(0, [2, 4]), i.invoke()),
    "resize so that the node fails": lambda i: (
        i.resize_tensor_input(0, [2, 3]),
        i.allocate_tensors(),
    ),
    "no signature": lambda i: i.get_signature_runner(),
    "unknown signature": lambda i: i.get_signature_runner("nope"),
    "no such node": lambda i: i._get_op_details(99),
    "view alive at invoke": lambda i: holding_a_view(i, "invoke"),
    "view alive at allocate": lambda i: holding_a_view(i, "allocate_tensors"),
    "view alive at resize": lambda i: holding_a_view(i, "resize_tensor_input", 0, [1, 4]),
}


def raised_type(action: Callable[[], object]) -> type[BaseException] | None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the type is what the test is about
        return next(t for t in (ValueError, RuntimeError, Exception) if isinstance(error, t))
    return None


@pytest.mark.parametrize("name", CALLS)
def test_call_raises_the_official_type(name: str, model: bytes) -> None:
    official = raised_type(lambda: CALLS[name](OfficialInterpreter(model_content=model)))
    ours = raised_type(lambda: CALLS[name](Interpreter(model_content=model)))
    assert ours is official


@pytest.mark.parametrize("name", CALLS)
def test_call_raises_an_error_of_delegraph(name: str, model: bytes) -> None:
    if raised_type(lambda: CALLS[name](OfficialInterpreter(model_content=model))) is None:
        return
    with pytest.raises(DelegraphError, match=r".{10}"):
        CALLS[name](Interpreter(model_content=model))


ARGUMENTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "both sources": {"model_path": "x.tflite", "model_content": b"x"},
    "garbage": {"model_content": b"not a model at all, only text"},
    "seven bytes": {"model_content": b"1234567"},
    "no such file": {"model_path": "missing.tflite"},
    "zero threads": {"num_threads": 0},
    "threads as text": {"num_threads": "2"},
    "unknown resolver": {"experimental_op_resolver_type": 77},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_constructor_raises_the_official_type(name: str, model: bytes) -> None:
    arguments = dict(ARGUMENTS[name])
    if not {"model_path", "model_content"} & arguments.keys() and name != "nothing":
        arguments["model_content"] = model
    official = raised_type(lambda: OfficialInterpreter(**arguments))
    assert official is ValueError
    assert raised_type(lambda: Interpreter(**arguments)) is official


def test_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.tflite"
    path.write_bytes(b"")
    assert raised_type(lambda: OfficialInterpreter(model_path=str(path))) is ValueError
    with pytest.raises(ValueError, match="empty"):
        Interpreter(model_path=path)


def test_closed_interpreter_says_so(model: bytes) -> None:
    with Interpreter(model_content=model) as interpreter:
        interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="closed"):
        interpreter.invoke()
