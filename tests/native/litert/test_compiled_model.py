"""Delegates in the official ``CompiledModel``, beside the official one without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.native.litert import compiled_model, placement_of
from support.by_name import ByName, X, sines

official = pytest.importorskip("ai_edge_litert.compiled_model")

WANTED = np.sin(X) + X + np.sin(2 * X)


def run(model: Any, x: Any = X) -> Any:
    """Return the only output for the only input *x*."""
    (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
    source.write(x)
    model.run_by_index(0, [source], [target])
    return target.read(x.size, np.float32)


def test_the_official_object_runs_delegates_in_order_and_xnnpack_the_rest() -> None:
    delegates = [ByName("SIN", name="sines"), ByName("SIN", "ADD", name="sums")]
    with compiled_model(sines(), delegates) as model:
        assert isinstance(model, official.CompiledModel)
        np.testing.assert_allclose(run(model), WANTED, rtol=1e-6)
        taken = [node.delegate for node in placement_of(model).nodes]
        assert taken == ["sines", "sums", "XNNPACK", "sines", "sums"]


def test_xnnpack_comes_first_if_asked() -> None:
    with compiled_model(sines(), [ByName("SIN")], before=False) as model:
        assert {node.delegate for node in placement_of(model).nodes} == {"XNNPACK"}
        np.testing.assert_allclose(run(model), WANTED, rtol=1e-5)
