"""Which subgraphs operators call."""

from __future__ import annotations

import pytest

from delegraph.errors import UnsupportedModelError
from delegraph.graph import parse_model
from delegraph.graph.calls import call_depth, called_subgraphs, reachable_subgraphs, require_depth
from delegraph.graph.model import Model
from delegraph.schema.options import AddOptions, WhileOptions
from delegraph.schema.stablehlo_options import StablehloCaseOptions
from delegraph.testing import subgraphs_model


def test_operators_without_subgraphs_call_none() -> None:
    assert list(called_subgraphs(None)) == []
    assert list(called_subgraphs(AddOptions())) == []


def test_lists_of_branches_are_called_too() -> None:
    options = StablehloCaseOptions(branch_subgraph_indices=(2, 3))
    assert list(called_subgraphs(options)) == [2, 3]


def test_calls_are_followed_and_circles_end() -> None:
    def calling(cond: int, body: int) -> tuple[list[tuple[str, str, str, WhileOptions]], str, str]:
        options = WhileOptions(cond_subgraph_index=cond, body_subgraph_index=body)
        return [("WHILE", "x", "y", options)], "x", "y"

    model = parse_model(
        subgraphs_model(
            [
                (*calling(1, 2), {}),
                ([("SIN", "x", "y")], "x", "y", {}),
                (*calling(1, 0), {}),
                ([("SIN", "x", "y")], "x", "y", {}),
            ]
        )
    )
    assert reachable_subgraphs(model, [0]) == {0, 1, 2}
    assert reachable_subgraphs(model, [3, 99]) == {3}


def calling(*callees: int | None) -> Model:
    """Return a model in which each subgraph calls another one, or none."""
    branches = [[] if i is None else [("STABLEHLO_CASE", "x", "x", case(i, i))] for i in callees]
    return parse_model(subgraphs_model([(nodes, "x", "x", {}) for nodes in branches]))


def case(*indices: int) -> StablehloCaseOptions:
    return StablehloCaseOptions(branch_subgraph_indices=indices)


@pytest.mark.parametrize(
    ("callees", "depth"),
    [
        ((None,), 0),
        ((1, 2, None), 2),
        ((None, 2, 3, 4, None), 3),  # also of a subgraph that another one does not call
        ((1, 2, None, 4, 2), 2),
        ((1, 2, 1), 1),  # a circle counts once
        ((0,), 0),
        ((7, None), 0),  # of those there are
    ],
)
def test_depth_is_the_longest_chain_of_calls(callees: tuple[int | None, ...], depth: int) -> None:
    assert call_depth(calling(*callees)) == depth


def test_many_ways_down_are_not_walked_one_by_one() -> None:
    count = 200
    nodes = [("STABLEHLO_CASE", "x", "x", case(i + 1, i + 2, i + 1)) for i in range(count)]
    model = subgraphs_model([([node], "x", "x", {}) for node in nodes] + [([], "x", "x", {})] * 2)
    assert call_depth(parse_model(model)) == count


def test_a_model_that_goes_deeper_than_the_limit_is_refused() -> None:
    model = calling(*range(1, 52), None)
    text = r"other 51 deep, more than the limit of 50; .*Limits\(depth=\.\.\.\)\) sets another"
    with pytest.raises(UnsupportedModelError, match=text):
        require_depth(model, None)
    with pytest.raises(UnsupportedModelError, match="more than the limit of 9"):
        require_depth(model, 9)
    require_depth(calling(*range(1, 51), None), None)
    require_depth(calling(1, None), 1)
    with pytest.raises(UnsupportedModelError, match="1 deep, more than the limit of 0"):
        require_depth(calling(1, None), 0)
