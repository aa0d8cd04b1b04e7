from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.tools import Setup, diff_layers
from support.half_weights import half_convolution
from support.layer_models import file, greatest, setup_of


def test_the_wrong_node_is_first_by_what_it_adds_itself(wrong: Setup) -> None:
    found = diff_layers(wrong, runs=1)
    assert found.inner == "alone"
    assert found.same_inputs_say_more
    assert found.worst_first()[0].node == 1
    assert greatest(found.worst_first()[1].same_inputs) == 0


def test_one_partition_on_the_inputs_of_the_model_says_no_more_than_drift(wrong: Setup) -> None:
    found = diff_layers(wrong, inner="exposed", runs=1)
    assert not found.same_inputs_say_more
    assert greatest(found.worst_first()[0].drift)


def test_the_official_compiled_model_exposes_tensors_by_default(chain: str) -> None:
    pytest.importorskip("ai_edge_litert")
    assert diff_layers(setup_of(chain, "litert2"), runs=1).inner == "exposed"


def test_constants_that_are_equal_are_not_shown(tmp_path: Path) -> None:
    model = file(tmp_path, half_convolution())
    found = diff_layers(setup_of(model, "delegraph"), runs=1)
    assert [layer.is_equal_constant for layer in found.layers] == [True, False]
    assert [layer.name for layer in found.shown()] == ["y"]
