"""Running small models in one call."""

from __future__ import annotations

import numpy as np
import pytest

import delegraph.testing
from delegraph.testing import (
    constant,
    delegraph_outputs,
    graph_model,
    one_op_model,
    subgraphs_model,
    tensor,
)
from support.by_name import ByName, X, Y, sines


def test_every_public_name_can_be_imported() -> None:
    for name in delegraph.testing.__all__:
        found = getattr(delegraph.testing, name)
        assert getattr(found, "__name__", name) == name  # constants have none


def test_outputs_are_those_of_the_model_with_and_without_delegates() -> None:
    delegate = ByName("SIN", "ADD", "MUL")
    for delegates in ((), (delegate,)):
        (y,) = delegraph_outputs(sines(), [X], delegates=delegates)
        np.testing.assert_allclose(y, Y, rtol=1e-6)
    assert "eval" in delegate.calls


def test_inputs_of_other_shapes_resize_the_model() -> None:
    model = one_op_model("NEG", [tensor((2,))], [tensor((2,))])
    (y,) = delegraph_outputs(model, [np.ones((3, 1), np.float32)])
    np.testing.assert_array_equal(y, -np.ones((3, 1), np.float32))


def test_a_wrong_number_of_inputs_is_refused() -> None:
    model = one_op_model("NEG", [tensor((2,))], [tensor((2,))])
    with pytest.raises(ValueError, match="the model has 1 inputs, got 2 arrays"):
        delegraph_outputs(model, [X, X])


def test_graphs_are_written_as_names() -> None:
    one = constant(np.ones(1, np.float32))
    nodes = [("NEG", "x", "a"), ("MAXIMUM", "a one", "y")]
    model = graph_model(nodes, inputs="x", outputs="y a", tensors={"one": one})
    y, a = delegraph_outputs(model, [X])
    np.testing.assert_array_equal(a, -X)
    np.testing.assert_array_equal(y, np.maximum(-X, 1))


def test_the_first_of_several_subgraphs_runs() -> None:
    subgraphs = [([(op, "x", "y")], "x", "y", {}) for op in ("NEG", "ABS")]
    (y,) = delegraph_outputs(subgraphs_model(subgraphs, names=["main", "other"]), [X])
    np.testing.assert_array_equal(y, -X)
