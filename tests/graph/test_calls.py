"""Which subgraphs operators call."""

from __future__ import annotations

import doctest

from delegraph.graph import calls, parse_model
from delegraph.graph.calls import called_subgraphs, reachable_subgraphs
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


def test_the_example_is_right() -> None:
    assert doctest.testmod(calls).failed == 0
