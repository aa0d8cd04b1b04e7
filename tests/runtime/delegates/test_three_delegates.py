"""Three delegates on one convolutional network: rules, resize, undo, redo, invoke."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    Interpreter,
    PlacementPolicy,
)
from delegraph.delegation.rules import PlacementRule
from support.by_name import ByName
from support.corpus import corpus_file, needs_corpus
from support.own_model import OwnModelKernel
from support.running import result_of

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_float.tflite"

MODELS = [
    pytest.param(DIGITS, id="digits"),
    pytest.param(
        corpus_file("support__mobilenet_v1_0.25_224_1_default_1"),
        id="mobilenet_v1",
        marks=needs_corpus,
    ),
]


def inner(name: str, *ops: str) -> ByName:
    """Return a delegate that computes its partitions by interpreters of its own."""
    return ByName(*ops, name=name, kernel=lambda _: OwnModelKernel())


def delegates() -> list[ByName]:
    return [
        inner("conv", "CONV_2D", "FULLY_CONNECTED"),
        inner("depthwise", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"),
        inner("rest", "CONV_2D", "AVERAGE_POOL_2D", "SQUEEZE", "RESHAPE", "SOFTMAX", "MEAN"),
    ]


def answer(interpreter: Interpreter, batch: int) -> Any:
    (details,) = interpreter.get_input_details()
    shape = (batch, *details["shape"][1:])
    interpreter.resize_tensor_input(details["index"], shape)
    interpreter.allocate_tensors()
    x = np.random.default_rng(7).uniform(-1, 1, shape).astype(np.float32)
    return result_of(interpreter, x)


@pytest.mark.repetition(1)
@pytest.mark.parametrize("path", MODELS)
def test_outputs_equal_the_undelegated_run_through_rules_resize_undo_and_redo(path: Path) -> None:
    alone = Interpreter(path)
    expected = {batch: answer(alone, batch) for batch in (1, 2)}
    ops = [node.op for node in alone.placement.nodes]
    convolutions = [i for i, op in enumerate(ops) if op == "CONV_2D"]
    rules = [
        PlacementRule("exclude", nodes=convolutions[0]),
        PlacementRule("pin", "rest", nodes=convolutions[1]),
        PlacementRule("exclude", "rest", operators="SOFTMAX"),
    ]
    interpreter = Interpreter(path, placement=PlacementPolicy(rules=rules))
    for delegate in delegates():
        interpreter.modify_graph_with_delegate(delegate)
    np.testing.assert_array_equal(answer(interpreter, 1), expected[1])
    before = interpreter.placement
    places = {node.index: node.delegate for node in before.nodes}
    assert places[convolutions[0]] is None
    assert places[convolutions[1]] == "rest"
    assert {p.delegate for p in before.partitions} == {"conv", "depthwise", "rest"}

    (details,) = interpreter.get_input_details()
    interpreter.resize_tensor_input(details["index"], [2, *details["shape"][1:]])  # takes them off
    assert all(node.delegate is None for node, _ in interpreter.session.subgraphs[0].plan.steps())
    np.testing.assert_array_equal(answer(interpreter, 2), expected[2])  # puts them back
    after = interpreter.placement
    assert [n.delegate for n in after.nodes] == [n.delegate for n in before.nodes]

    interpreter.remove_all_delegates()
    np.testing.assert_array_equal(answer(interpreter, 2), expected[2])
    for delegate in delegates():
        interpreter.modify_graph_with_delegate(delegate)
    np.testing.assert_array_equal(answer(interpreter, 1), expected[1])
    assert [n.delegate for n in interpreter.placement.nodes] == [n.delegate for n in before.nodes]
