from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph.testing import graph_model
from delegraph.tools import diff_layers
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
