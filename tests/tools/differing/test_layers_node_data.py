from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import Setup, diff_layers
from delegraph.tools.differing.layers_node_data import write_layers_node_data
from support.layer_models import fed


def test_node_data_has_the_worst_output_of_a_node(wrong: Setup, tmp_path: Path) -> None:
    found = diff_layers(wrong, inner="alone", runs=1, inputs=fed())
    first, second, *rest = found.layers
    as_one_node = (second, replace(first, node=1), *rest)
    write_layers_node_data(replace(found, layers=as_one_node), tmp_path / "new" / "folder")
    written = tmp_path / "new" / "folder" / "max_abs_error_same_inputs.json"
    (graph,) = json.loads(written.read_text()).values()
    assert {k: v["value"] for k, v in graph["results"].items()} == {
        "1": pytest.approx(1, rel=1e-6),
        "2": 0.0,
        "3": 0.0,
    }
    with pytest.raises(ArgumentError, match="max_abs_error"):
        write_layers_node_data(found, written)
