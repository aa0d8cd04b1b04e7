"""Tensors that XNNPACK folds are no differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph.testing import graph_model
from delegraph.tools import Setup, diff_layers
from delegraph.tools.differing.layer_units import FOLDED
from support.half_weights import half_convolution, half_weights
from support.layer_models import add, by_name, file, greatest, mul, setup_of

pytest.importorskip("ai_edge_litert")


def compared(tmp_path: Path, inner: Any, *, is_reference: bool = False) -> Any:
    model = file(tmp_path, half_weights())
    official, own = Setup(model, "litert"), Setup(model, delegates=("none",))
    pair = (own, official) if is_reference else (official, own)
    return diff_layers(*pair, inner=inner)


@pytest.mark.parametrize("is_reference", [False, True])
@pytest.mark.parametrize("inner", ["exposed", "alone"])
def test_constants_that_xnnpack_folds_are_not_compared(
    tmp_path: Path, inner: str, is_reference: bool
) -> None:
    layers = by_name(compared(tmp_path, inner, is_reference=is_reference).layers)
    for name in "wv":
        assert layers[name].drift is layers[name].same_inputs is None
        assert layers[name].drift_note == layers[name].same_inputs_note == FOLDED
    for name in "aby":
        assert layers[name].drift.compared()["max"].max < 1e-6


def test_nodes_read_constants_of_the_side_that_writes_them(tmp_path: Path) -> None:
    layers = by_name(compared(tmp_path, "exposed", is_reference=True).layers)
    for name in "aby":
        assert layers[name].same_inputs.compared()["max"].max < 1e-6


def test_a_node_that_runs_alone_has_the_constants_that_it_folds(tmp_path: Path) -> None:
    model = file(tmp_path, half_convolution())
    (weight, y) = diff_layers(Setup(model, "litert"), inner="alone").layers
    assert (weight.drift_note, y.delegate, y.same_inputs_note) == (FOLDED, "XNNPACK", "")
    assert y.same_inputs is not None


def test_tensors_of_other_names_match_by_the_position_of_their_nodes(
    chain: str, tmp_path: Path
) -> None:
    nodes = [add("in in", "k"), mul("k in", "l"), add("l in", "m"), add("m k", "out")]
    renamed = file(tmp_path, graph_model(nodes, inputs="in", outputs="out"), "renamed.tflite")
    found = diff_layers(setup_of(chain, "delegraph"), setup_of(renamed, "delegraph"), runs=1)
    assert [greatest(layer.same_inputs) for layer in found.layers] == [0] * 4
    assert "4 tensors matched by the position of the node, not by name" in found.notes[0]


def test_other_shapes_are_not_matched_by_position(chain: str, tmp_path: Path) -> None:
    nodes = [add("in in", "k"), mul("k in", "l"), add("l in", "m")]
    shorter = file(tmp_path, graph_model(nodes, inputs="in", outputs="m"), "shorter.tflite")
    found = diff_layers(setup_of(chain, "delegraph"), setup_of(shorter, "delegraph"), runs=1)
    assert not found.notes
    assert found.layers[0].drift_note == "the reference has no tensor of this name"
