"""Tensors that nodes read and nothing gives values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import DelegateFlags, Interpreter
from delegraph.errors import NodeError
from delegraph.schema.options import (
    AddOptions,
    EqualOptions,
    PackOptions,
    PadOptions,
    ReadVariableOptions,
    ReshapeOptions,
)
from delegraph.testing import constant, graph_model, tensor
from support.by_name import ByName
from support.faulty_delegate import Faulty

PADDING = constant(np.array([[1, 1]], np.int32))
TWO_BY_TWO = ReshapeOptions(new_shape=np.array([2, 2], np.int32))

UNSET: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "second input": ([("ADD", "x z", "y", AddOptions())], {}),
    "later node": ([("SIN", "x", "s"), ("ADD", "s z", "y", AddOptions())], {}),
    "pad": ([("PAD", "z p", "y", PadOptions())], {"p": PADDING, "y": tensor((6,))}),
    "pack": ([("PACK", "x z", "y", PackOptions(values_count=2))], {"y": tensor((2, 4))}),
    "too early": ([("ADD", "x z", "y", AddOptions()), ("ADD", "x x", "z", AddOptions())], {}),
    "unused": ([("ADD", "z z", "q", AddOptions()), ("SIN", "x", "y")], {}),
    "shape vector": (
        [("RESHAPE", "x z", "y", TWO_BY_TWO)],
        {"z": tensor((2,), "INT32"), "y": tensor((2, 2))},
    ),
    "strings": (
        [("EQUAL", "z z", "y", EqualOptions())],
        {"z": tensor((4,), "STRING"), "y": tensor((4,), "BOOL")},
    ),
    "resource": (
        [("READ_VARIABLE", "z", "y", ReadVariableOptions())],
        {"z": tensor((1,), "RESOURCE")},
    ),
}
CRASHES_LITERT = {"strings", "resource"}
ANSWERS_AT_RANDOM = {"too early"}
"""What LiteRT takes for values is what is in its memory, or right where XNNPACK sorts the nodes."""

SET: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "no elements": (
        [("ADD", "x z", "y", AddOptions())],
        {"x": tensor((0, 4)), "z": tensor((0, 4)), "y": tensor((0, 4))},
    ),
    "a shape by its dimensions": (
        [("RESHAPE", "x z", "y", TWO_BY_TWO)],
        {"z": tensor((2, 1), "INT32"), "y": tensor((2, 2))},
    ),
    "variable": ([("ADD", "x z", "y", AddOptions())], {"z": tensor((4,), is_variable=True)}),
}


def model_of(case: tuple[list[Any], dict[str, Any]]) -> bytes:
    nodes, tensors = case
    return graph_model(nodes, inputs="x", outputs="y", tensors=tensors)


def invoked(interpreter: Any) -> None:
    interpreter.allocate_tensors()
    shape = interpreter.get_input_details()[0]["shape"]
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ones(shape, np.float32))
    interpreter.invoke()


@pytest.mark.parametrize("delegates", [[], [Faulty(dynamic=True)]], ids=["kernels", "delegate"])
@pytest.mark.parametrize("name", UNSET)
def test_it_is_found_before_anything_runs(name: str, delegates: list[Any]) -> None:
    interpreter = Interpreter(model_content=model_of(UNSET[name]), delegates=delegates)
    with pytest.raises(NodeError, match=r"Input tensor \d lacks data: it is no input of the graph"):
        invoked(interpreter)


def test_nothing_has_run_by_then() -> None:
    delegate = ByName("SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    interpreter = Interpreter(model_content=model_of(UNSET["later node"]), delegates=[delegate])
    for _ in range(2):
        with pytest.raises(NodeError, match=r"Node number 1 \(ADD\) failed to invoke"):
            invoked(interpreter)
    assert "eval" not in delegate.calls


@pytest.mark.parametrize("delegates", [[], [Faulty(dynamic=True)]], ids=["kernels", "delegate"])
@pytest.mark.parametrize("name", SET)
def test_what_needs_no_values_or_gets_them_runs(name: str, delegates: list[Any]) -> None:
    invoked(Interpreter(model_content=model_of(SET[name]), delegates=delegates))


def test_a_delegate_is_told_why_it_does_not_get_the_node() -> None:
    interpreter = Interpreter(
        model_content=model_of(UNSET["second input"]),
        delegates=[ByName("ADD", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)],
    )
    [node] = interpreter.placement.nodes
    assert node.delegate is None
    assert "Input tensor 1 lacks data" in str(node.rejections["by_name"])


@pytest.mark.parametrize("name", sorted({*UNSET, *SET} - CRASHES_LITERT - ANSWERS_AT_RANDOM))
def test_the_official_interpreter_says_the_same(name: str) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(model_content=model_of({**UNSET, **SET}[name]))
    if name in SET:
        invoked(interpreter)
    else:
        with pytest.raises(RuntimeError, match=r"Input tensor \d lacks data"):
            invoked(interpreter)
