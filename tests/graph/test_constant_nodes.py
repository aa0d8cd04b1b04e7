from __future__ import annotations

import numpy as np
import pytest

from delegraph.graph.constant_nodes import constant_nodes
from delegraph.graph.loader import parse_model
from delegraph.testing import constant, graph_model, tensor
from delegraph.testing.operator_cases.quantizing import sparse_rows
from support.half_weights import half_weights


def test_nodes_that_widen_halves_are_constants() -> None:
    spec = parse_model(half_weights()).subgraphs[0]
    names = {node: spec.tensors[stored].name for node, stored in constant_nodes(spec).items()}
    assert names == {0: "half", 2: "other_half"}


def test_a_constant_may_be_widened_in_two_steps() -> None:
    kept = np.eye(4, dtype=bool)
    model = graph_model(
        [("DENSIFY", "stored", "dense"), ("DEQUANTIZE", "dense", "y")],
        inputs="",
        outputs="y",
        tensors={
            "stored": sparse_rows("FLOAT16", kept, np.ones(4, np.float16)),
            "dense": tensor((4, 4), "FLOAT16"),
            "y": tensor((4, 4)),
        },
    )
    spec = parse_model(model).subgraphs[0]
    stored = next(each.index for each in spec.tensors if each.name == "stored")
    assert constant_nodes(spec) == {0: stored, 1: stored}


@pytest.mark.parametrize(
    ("op", "read"),
    [("DEQUANTIZE", tensor((2,), "FLOAT16")), ("SIN", constant(np.ones(2, np.float32)))],
    ids=["of a computed tensor", "of another operator"],
)
def test_other_nodes_are_no_constants(op: str, read: object) -> None:
    inputs = "x" if op == "DEQUANTIZE" else ""
    model = graph_model(
        [(op, "x", "y")], inputs=inputs, outputs="y", tensors={"x": read, "y": tensor((2,))}
    )
    assert constant_nodes(parse_model(model).subgraphs[0]) == {}
