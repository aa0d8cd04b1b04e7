"""Stages from a placement alone: each behind what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph import Interpreter
from delegraph.graph.loader import load_model
from delegraph.tools.explanation import explain, explain_placement
from support.by_name import ByName

SINES = Path(__file__).parents[2] / "docs" / "demo" / "models" / "sines.tflite"


@pytest.mark.parametrize("ops", [("SIN",), ("ADD",), ("MUL", "ADD"), ("MUL", "SIN"), ("Twice",)])
def test_stages_hold_what_the_running_plan_has_each_behind_what_it_reads(
    ops: tuple[str, ...],
) -> None:
    model = load_model(str(SINES))
    with Interpreter(SINES, delegates=[ByName(*ops)]) as interpreter:
        expected = explain(interpreter)
        found = explain_placement(interpreter.placement, model)
    assert found.refusals == expected.refusals
    assert {(s.partition, s.delegate) for s in found.stages} == {
        (s.partition, s.delegate) for s in expected.stages
    }
    (subgraph,) = model.subgraphs
    made = {tensor.index for tensor in subgraph.tensors if tensor.data is not None}
    made |= set(subgraph.inputs)
    for stage in found.stages:
        operators = [subgraph.operators[i] for i in stage.nodes]
        inner = {tensor for operator in operators for tensor in operator.outputs}
        assert {tensor for operator in operators for tensor in operator.inputs} <= made | inner
        made |= inner
    assert sorted(i for stage in found.stages for i in stage.nodes) == [0, 1, 2, 3, 4]
