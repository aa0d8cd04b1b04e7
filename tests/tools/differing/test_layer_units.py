from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import Rejection
from delegraph.delegation.rules import PlacementRule
from delegraph.schema.options import VarHandleOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools import Setup, diff_layers
from support.corpus import corpus_file, needs_corpus
from support.layer_models import WrongProduct, add, by_name, fed, file, greatest, mul, setup_of
from support.seeded_faults import with_kernel


class NeedsTanh(with_kernel(WrongProduct)):  # type: ignore[misc]  # a class all the same
    """Takes nothing of a model without TANH."""

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> Any:
        plan = context.get_execution_plan()
        names = {context.get_node_and_registration(i)[1].name for i in plan}
        answer = super().is_node_supported_by_delegate(registration, node, context)
        return answer if "TANH" in names else Rejection("alone")


def test_what_a_delegate_leaves_alone_is_said(tmp_path: Path) -> None:
    nodes: list[Any] = [mul("x x", "m"), ("TANH", "m", "t"), add("t t", "y")]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y"))
    layers = by_name(diff_layers(setup_of(model, "litert", NeedsTanh()), runs=1).layers)
    assert layers["y"].same_inputs is None
    assert layers["y"].same_inputs_note == "alone, careful takes 0 of its 1 nodes"
    assert greatest(layers["y"].drift)


def test_a_resource_made_outside_is_said(tmp_path: Path) -> None:
    nodes: list[Any] = [
        ("VAR_HANDLE", "", "h", VarHandleOptions(shared_name="v")),
        ("ASSIGN_VARIABLE", "h x", ""),
        ("READ_VARIABLE", "h", "y"),
    ]
    parts = {"h": tensor((), "RESOURCE")}
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y", tensors=parts))
    found = diff_layers(setup_of(model, "litert"), setup_of(model, "delegraph"), runs=1)
    (layer,) = (layer for layer in found.layers if layer.op == "READ_VARIABLE")
    assert layer.same_inputs_note == "it reads the resource 'h', which is made outside"
    assert greatest(layer.drift) == 0
    assert "handle" in next(x for x in found.layers if x.op == "VAR_HANDLE").drift_note


def test_rules_for_the_whole_model_do_not_count_for_a_node_alone(wrong: Setup) -> None:
    setup = replace(
        wrong,
        rules=[PlacementRule("exclude", nodes=0)],
    )
    layers = by_name(diff_layers(setup, inner="alone", runs=1, inputs=fed()).layers)
    assert layers["a"].delegate is None
    assert greatest(layers["b"].same_inputs) == pytest.approx(1, rel=1e-6)
    assert greatest(layers["c"].same_inputs) == 0


class TakesLonelyNodes(with_kernel(WrongProduct)):  # type: ignore[misc]  # a class all the same
    """Takes nothing but models of one node."""

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> Any:
        answer = super().is_node_supported_by_delegate(registration, node, context)
        return answer if len(context.get_execution_plan()) == 1 else Rejection("company")


def test_a_node_of_the_host_stays_with_it_when_it_is_alone(chain: str) -> None:
    found = diff_layers(
        setup_of(chain, "litert", TakesLonelyNodes()),
        setup_of(chain, "delegraph"),
        runs=1,
        inputs=fed(),
    )
    assert [layer.delegate for layer in found.layers] == [None] * 4
    assert [greatest(layer.same_inputs) for layer in found.layers] == [0] * 4


def test_variables_go_along_and_start_from_zero(tmp_path: Path) -> None:
    eye = constant(np.eye(4, dtype=np.float32))
    parts = {"x": tensor((1, 4)), "y": tensor((1, 4)), "w": eye, "r": eye}
    parts |= {"b": constant(np.zeros(4, np.float32)), "z": tensor((1, 4))}
    parts |= {"state": tensor((1, 4), is_variable=True)}
    nodes: list[Any] = [("RNN", "x w r b state", "y"), add("y y", "z")]
    content = graph_model(nodes, inputs="x", outputs="z", tensors=parts)
    model = file(tmp_path, content)
    found = diff_layers(
        setup_of(model, "litert"), setup_of(model, "delegraph"), runs=3, inputs=fed(values=("1",))
    )
    for layer in found.layers:
        assert layer.same_inputs is not None, layer.same_inputs_note
        expected = [d.compared and d.compared.expected for d in layer.same_inputs.runs]
        assert expected == [layer.node + 1.0] * 3
        assert greatest(layer.same_inputs) == 0


@needs_corpus
def test_scales_in_tensors_of_their_own_go_along() -> None:
    model = str(corpus_file("LiteRT__qwen_fc_blockwise_quantized"))
    found = diff_layers(
        setup_of(model, "litert"), setup_of(model, "delegraph"), inputs=fed(), runs=1
    )
    assert found.layers
    for layer in found.layers:
        assert layer.same_inputs_note == ""
        assert greatest(layer.same_inputs) == pytest.approx(0, abs=1e-3)


def test_same_inputs_do_not_carry_errors_on(tmp_path: Path) -> None:
    """Two partitions with a host's node between them: only the first one is wrong."""
    nodes: list[Any] = [mul("x x", "m"), ("TANH", "m", "t"), add("t t", "y")]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y"))
    setup = setup_of(model, "delegraph", with_kernel(WrongProduct)())
    layers = by_name(diff_layers(setup, runs=3).layers)
    assert greatest(layers["m"].same_inputs) == pytest.approx(1, rel=1e-6)
    assert greatest(layers["y"].same_inputs) == 0
    assert greatest(layers["y"].drift)
    assert layers["t"].same_inputs_note == "the reference has the same kernel"
    assert greatest(layers["t"].drift)


def test_a_delegate_keeps_its_partition_on_the_references_values(tmp_path: Path) -> None:
    nodes: list[Any] = [mul("x x", "m"), ("TANH", "m", "t"), add("t t", "y")]
    model = file(tmp_path, graph_model(nodes, inputs="x", outputs="y"))
    layers = by_name(diff_layers(setup_of(model, "delegraph", NeedsTanh()), runs=1).layers)
    assert greatest(layers["m"].same_inputs) == pytest.approx(1, rel=1e-6)
    assert greatest(layers["y"].same_inputs) == 0
