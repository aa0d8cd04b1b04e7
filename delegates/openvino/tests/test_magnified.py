"""Nodes whose roundings a later node magnifies are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, load_delegate
from delegraph.schema import options as o
from delegraph.testing import constant, graph_model, subgraphs_model, tensor

pytest.importorskip("openvino", reason="OpenVINO is not installed; `make test-engines` has it")

LEFT = "a later node quantizes its result"
HALF = {"half": constant(np.float32(0.7)), "third": constant(np.float32(3))}
WEIGHTS = {"w": constant(np.int8([[3, 5], [7, -2]]), scale=0.1)}
ROW = tensor((1, 2))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELEGRAPH_CACHE", str(tmp_path / "cache"))


def left(model: bytes, spec: str = "openvino", subgraph: int = 0) -> list[str]:
    """Return the operators that are rejected because they magnify roundings."""
    with Interpreter(model_content=model, delegates=[load_delegate(spec)]) as interpreter:
        interpreter.allocate_tensors()
        return [
            node.op
            for node in interpreter.placement.nodes
            if node.subgraph == subgraph and LEFT in " ".join(map(str, node.rejections.values()))
        ]


def between_integers() -> bytes:
    x = np.arange(-(2**15), 2**15).shape
    scale = float(np.float32(1e-4))
    tensors = HALF | dict.fromkeys("abcd", tensor(x))
    tensors |= {
        "x": tensor(x, "INT16", scale=scale),
        "y": tensor(x, "INT16", scale=2 * scale),  # every second result is a half
    }
    nodes: list[tuple[Any, ...]] = [
        ("DEQUANTIZE", "x", "a"),
        ("MUL", "a half", "b", o.MulOptions()),
        ("MUL", "b third", "c", o.MulOptions()),
        ("ABS", "c", "d"),
        ("QUANTIZE", "d", "y"),
    ]
    return graph_model(nodes, inputs="x", outputs="y", tensors=tensors)


def test_integers_after_floats_are_those_of_the_kernels() -> None:
    found = []
    for delegates in ([], [load_delegate("openvino")]):
        with Interpreter(model_content=between_integers(), delegates=delegates) as interpreter:
            interpreter.allocate_tensors()
            (x,), (y,) = interpreter.get_input_details(), interpreter.get_output_details()
            interpreter.set_tensor(x["index"], np.arange(-(2**15), 2**15).astype(np.int16))
            interpreter.invoke()
            found.append(interpreter.get_tensor(y["index"]))
    np.testing.assert_array_equal(found[1], found[0])


def test_what_rounds_is_left_and_what_does_not_is_taken() -> None:
    assert left(between_integers()) == ["MUL", "MUL"]
    assert left(between_integers(), "openvino:quantized=true") == []


def test_floats_before_a_hybrid_layer_are_left_and_those_after_it_taken() -> None:
    nodes: list[tuple[Any, ...]] = [
        ("MUL", "x half", "a", o.MulOptions()),
        ("FULLY_CONNECTED", "a w -", "b", o.FullyConnectedOptions()),
        ("ADD", "b half", "y", o.AddOptions()),
    ]
    tensors = HALF | WEIGHTS | dict.fromkeys("xaby", ROW)
    assert left(graph_model(nodes, inputs="x", outputs="y", tensors=tensors)) == ["MUL"]


def test_what_a_loop_gives_to_its_next_turn_is_left() -> None:
    tensors = HALF | WEIGHTS | dict.fromkeys("xaby", ROW)
    limit = {"i": tensor(()), "j": tensor(()), "holds": tensor((), "BOOL")}
    calls = o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main = ([("WHILE", "i x", "j y", calls)], "i x", "j y", tensors | limit)
    condition = ([("LESS", "i third", "holds", o.LessOptions())], "i x", "holds", tensors | limit)
    nodes: list[tuple[Any, ...]] = [
        ("ADD", "i half", "j", o.AddOptions()),
        ("FULLY_CONNECTED", "x w -", "a", o.FullyConnectedOptions()),
        ("TANH", "a", "y"),
    ]
    body = (nodes, "i x", "j y", tensors | limit)
    assert "TANH" in left(subgraphs_model([main, condition, body]), subgraph=2)
