from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.testing import constant, graph_model
from delegraph.tools import Setup, diff_layers
from delegraph.tools.differing.layer_units import FOLDED, Unit
from delegraph.tools.differing.unit_group import UnitGroup
from support.layer_models import (
    CHAIN,
    RUNTIMES,
    WrongProduct,
    by_name,
    fed,
    file,
    greatest,
    mul,
    setup_of,
)
from support.seeded_faults import with_kernel


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("delegates", [[], [with_kernel(WrongProduct)()]])
def test_nodes_give_the_same_together_as_alone(
    chain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, delegates: list[Any]
) -> None:
    other = graph_model([mul("x x", "a"), *CHAIN[1:]], inputs="x", outputs="y")
    reference = setup_of(file(tmp_path, other, "other.tflite"), "delegraph")
    setup = setup_of(chain, runtime, *delegates)
    found = []
    for is_together in (True, False):
        if not is_together:
            monkeypatch.setattr(UnitGroup, "computed", lambda *given: {})
        layers = diff_layers(setup, reference, inner="alone", inputs=fed(), runs=3).layers
        found.append({name: layer.same_inputs for name, layer in by_name(layers).items()})
    assert found[0] == found[1]
    assert greatest(found[0]["a"])
    assert bool(greatest(found[0]["b"])) == bool(delegates)
    assert [greatest(found[0][name]) for name in "cy"] == [0, 0]


def test_nodes_run_alone_where_they_cannot_run_together(
    chain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def refused(*given: Any, **how: Any) -> Any:
        tried.append(given)
        raise ValueError("too large")

    monkeypatch.setattr("delegraph.tools.differing.unit_group.separated_model", refused)
    setup = setup_of(chain, "litert", with_kernel(WrongProduct)())
    layers = by_name(diff_layers(setup, inner="alone", inputs=fed(), runs=3).layers)
    assert greatest(layers["b"].same_inputs) == pytest.approx(1, rel=1e-6)
    assert greatest(layers["c"].same_inputs) == 0
    assert len(tried) == 1


def test_nodes_whose_constants_xnnpack_converts_run_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes: list[Any] = [("DEQUANTIZE", "half", "w"), mul("x w", "a"), mul("a w", "b")]
    stored = {"half": constant(np.float16([2, 3, 4, 5]))}
    content = graph_model([*nodes, mul("b w", "y")], inputs="x", outputs="y", tensors=stored)
    model = file(tmp_path, content)
    right = setup_of(model, "delegraph", with_kernel(WrongProduct)())
    monkeypatch.setattr(Unit, "computed", lambda *given: pytest.fail("a node runs alone"))
    found = diff_layers(Setup(model, "litert"), right, inputs=fed(values=("1",)))
    layers = by_name(found.layers)
    assert layers["w"].same_inputs_note == FOLDED
    drift = [greatest(layers[name].drift) for name in "aby"]
    assert drift == [1, 3, 7]  # of the first elements, which are 2, 4, 8
    assert [greatest(layers[name].same_inputs) for name in "aby"] == [1, 1, 1]
