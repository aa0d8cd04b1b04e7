from __future__ import annotations

import json
import logging
from itertools import pairwise
from pathlib import Path

import pytest

from delegraph.graph import Model, parse_model
from delegraph.schema import tables, write_model
from delegraph.testing import tensor
from delegraph.testing.subgraphs import Graph, Op, records_of
from delegraph.tools.profiling.node_data import NodeData, graph_ids, node_keys
from support.node_graphs import named_subgraphs

TWO = named_subgraphs(["main", "body"])


def chain(*names: str) -> Model:
    """Return NEG after NEG, whose tensors have *names*, the graph's input first."""
    tensors = [tensor((1,), name=name) for name in names]
    steps = [Op("NEG", [x], [y]) for x, y in pairwise(tensors)]
    return parse_model(write_model(records_of(Graph(tensors[:1], tensors[-1:], steps))))


def test_values_are_keyed_by_graph_and_operator() -> None:
    shown = NodeData("latency (us)", {(0, 0): 2.5, (1, 0): 4}).to_json(TWO)
    assert list(shown) == ["main", "body"]
    assert shown["main"]["results"] == {"0": {"value": 2.5}}
    assert shown["body"]["results"] == {"0": {"value": 4.0}}
    assert shown["main"]["name"] == "latency (us)"


def test_a_graph_without_values_is_not_in_the_file() -> None:
    assert list(NodeData("error", {(1, 0): 1.0}).to_json(TWO)) == ["body"]


def test_numbers_have_a_gradient_from_0_to_1() -> None:
    stops = NodeData("error", {(0, 0): 1.0}).to_json(TWO)["main"]["gradient"]
    assert [stops[0]["stop"], stops[-1]["stop"]] == [0, 1]


def test_thresholds_take_the_place_of_the_gradient() -> None:
    found = NodeData("error", {(0, 0): 1.0}, thresholds=[(0.1, "white"), (1, "red")])
    shown = found.to_json(TWO)["main"]
    assert "gradient" not in shown
    assert shown["thresholds"] == [
        {"value": 0.1, "bgColor": "white"},
        {"value": 1, "bgColor": "red"},
    ]


def test_words_have_colors_and_are_counted_on_groups() -> None:
    found = NodeData("delegate", {(0, 0): "b", (1, 0): "a"}, colors={"a": "#010203"}).to_json(TWO)
    assert found["body"]["results"]["0"] == {"value": "a", "bgColor": "#010203"}
    assert found["main"]["results"]["0"]["bgColor"] != "#010203"
    for graph in found.values():
        assert graph["showExpandedSummaryOnGroupNode"] is True
        assert graph["showLabelCountColumnsInChildrenStatsTable"] is True
        assert "gradient" not in graph


def test_words_among_numbers_are_grey_and_not_counted() -> None:
    """Model Explorer would count each number, too."""
    (graph, other) = NodeData("latency", {(0, 0): "none", (1, 0): 2.0}).to_json(TWO).values()
    assert graph["results"]["0"] == {"value": "none", "bgColor": "#d9d9d9"}
    for shown in (graph, other):
        assert "gradient" in shown
        assert "showLabelCountColumnsInChildrenStatsTable" not in shown


def test_more_words_than_colors_have_one_each_all_the_same() -> None:
    model = chain(*(f"t{i}" for i in range(13)))
    shown = NodeData("reason", {(0, i): f"r{i:02}" for i in range(12)}).to_json(model)
    assert all(result["bgColor"] for result in shown["graph"]["results"].values())


def test_what_is_not_finite_is_a_word_of_its_own_color(tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    NodeData("error", {(0, 0): float("nan"), (1, 0): float("-inf")}).write(file, TWO)
    shown = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert shown["main"]["results"]["0"]["value"] == "nan"
    assert shown["body"]["results"]["0"]["value"] == "-inf"
    assert shown["main"]["results"]["0"]["bgColor"]


def test_ids_are_the_name_or_the_first_signature_or_the_number() -> None:
    names = named_subgraphs([None, None, ""], [("b", 1), ("a", 1)])
    assert graph_ids(names) == ["main", "b", "subgraph_2"]
    assert graph_ids(named_subgraphs(["x", None], [("signature", 0), ("", 1)])) == [
        "x",
        "subgraph_1",
    ]


def test_graphs_of_one_id_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    model = named_subgraphs([None, "main", "other"])
    with caplog.at_level(logging.WARNING):
        shown = NodeData("error", dict.fromkeys([(0, 0), (1, 0), (2, 0)], 1.0)).to_json(model)
    assert list(shown) == ["other"]
    assert "subgraph 0 is not the only 'main'" in caplog.text


def test_an_index_that_is_the_name_of_a_tensor_is_no_key() -> None:
    """Model Explorer would show the value at the node that makes the tensor."""
    spec = chain("1", "0", "x").subgraphs[0]  # operator 0 makes "0", operator 1 "x"
    assert node_keys(spec) == {0: "0", 1: "x"}
    assert node_keys(chain("x", "1", "0").subgraphs[0]) == {0: "1", 1: "0"}
    assert node_keys(chain("x", "y", "z").subgraphs[0]) == {0: "0", 1: "1"}


def test_an_operator_without_a_key_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    model = chain("1", "x", "x")
    with caplog.at_level(logging.WARNING):
        shown = NodeData("error", {(0, 0): 1.0, (0, 1): 2.0}).to_json(model)
    assert shown["graph"]["results"] == {"0": {"value": 1.0}}
    assert "node 1 of subgraph 0 has no key" in caplog.text


def test_an_unnamed_output_is_no_key() -> None:
    unnamed = tables.Tensor(shape=(1,), name="")
    records = records_of(
        Graph([a := tensor((1,), name="0")], [b := tensor((1,), name="y")], [Op("NEG", [a], [b])])
    )
    graph = records.subgraphs[0]
    tensors = (graph.tensors[0], unnamed.replace(type=graph.tensors[1].type))
    model = parse_model(write_model(records.replace(subgraphs=(graph.replace(tensors=tensors),))))
    assert node_keys(model.subgraphs[0]) == {}
