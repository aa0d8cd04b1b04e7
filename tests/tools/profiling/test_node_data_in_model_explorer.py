"""What Model Explorer itself makes of our node data; skips where it is not installed.

By hand, in an environment of its own, since it brings a web server::

    python -m venv explorer && explorer/bin/pip install ai-edge-model-explorer pytest -e .
    explorer/bin/python -m pytest tests/tools/profiling/test_node_data_in_model_explorer.py
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from delegraph.errors import ModelError
from delegraph.graph import Model, load_model
from delegraph.testing import tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from delegraph.tools.profiling.node_data import NodeData, graph_ids, node_keys
from support.corpus import corpus_file, corpus_rows
from support.node_graphs import named_subgraphs_file

pytest.importorskip("model_explorer", reason="ai-edge-model-explorer is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

NAMES = {
    "several names": (["x", "y"], []),
    "no names": ([None, None, ""], []),
    "two signatures of one": ([None, None, "x"], [("b", 1), ("a", 1)]),
    "empty signature": (["results", None], [("", 1)]),
}


def explorer_graphs(path: Path) -> dict[str, Any]:
    """Return the graphs of a file as the built-in reader has them, by id."""
    from model_explorer.builtin_tflite_flatbuffer_adapter import BuiltinTfliteFlatbufferAdapter

    found = BuiltinTfliteFlatbufferAdapter().convert(str(path), {})
    (collection,) = found["graphCollections"]
    return {graph["id"]: graph for graph in collection.graphs}


def nodes_of(graph: dict[str, Any]) -> dict[str, str]:
    """Return the nodes that each key of node data means to the page, with their operators.

    A key that is the name of an output tensor means the last node with such a tensor.
    """
    labels = {node["id"]: node["label"] for node in graph["nodes"]}
    for node in graph["nodes"]:
        for output in node.get("outputsMetadata", []):
            for attribute in output["attrs"]:
                if attribute["key"] == "tensor_name":
                    labels[attribute["value"]] = node["label"]
    return labels


def assert_same_nodes(model: Model, path: Path) -> None:
    graphs = explorer_graphs(path)
    assert list(graphs) == graph_ids(model)
    for spec, graph_id in zip(model.subgraphs, graphs, strict=True):
        labels, keys = nodes_of(graphs[graph_id]), node_keys(spec)
        assert len(keys) == len(spec.operators)
        for op in spec.operators:
            assert labels[keys[op.index]].upper() == op.name.upper()


@pytest.mark.parametrize("name", [row["name"] for row in corpus_rows()])
def test_keys_are_the_nodes_of_the_built_in_reader(name: str) -> None:
    path = corpus_file(name)
    try:
        model = load_model(path)
    except ModelError as error:
        pytest.skip(f"no model: {error}")
    assert_same_nodes(model, path)


def test_a_tensor_named_like_an_index_hides_it(tmp_path: Path) -> None:
    tensors = [tensor((1,), name=name) for name in ("1", "0", "x")]
    steps = [Op("NEG", tensors[:1], tensors[1:2]), Op("SIN", tensors[1:2], tensors[2:])]
    path = tmp_path / "model.tflite"
    path.write_bytes(model_of(Graph(tensors[:1], tensors[2:], steps)))
    assert_same_nodes(load_model(path), path)
    assert nodes_of(explorer_graphs(path)["graph"])["1"] != "sin"


@pytest.mark.parametrize("case", NAMES)
def test_ids_of_made_up_names_are_those_of_the_built_in_reader(case: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(named_subgraphs_file(*NAMES[case]))
    assert_same_nodes(load_model(path), path)


@pytest.mark.parametrize(
    "data",
    [
        NodeData("latency (us)", {(0, 0): 1.0, (1, 0): float("nan")}),
        NodeData("error", {(0, 0): 1.0}, thresholds=[(1.0, "red")]),
        NodeData("delegate", {(0, 0): "numba_cpu", (1, 0): "none"}),
    ],
    ids=lambda data: data.name,
)
def test_a_file_has_only_fields_of_the_builder_and_passes_the_server(
    data: NodeData, tmp_path: Path
) -> None:
    from model_explorer import node_data_builder as builder
    from model_explorer.config import ModelExplorerConfig

    model = tmp_path / "model.tflite"
    model.write_bytes(named_subgraphs_file(["x", "y"]))
    file = tmp_path / "data.json"
    data.write(file, load_model(model))
    written = json.loads(file.read_text())
    for graph in written.values():
        read = builder.GraphNodeData(**graph)
        for result in graph["results"].values():
            builder.NodeDataResult(**result)
        for stop in read.gradient:
            builder.GradientItem(**stop)
        for threshold in read.thresholds:
            builder.ThresholdItem(**threshold)
        assert {item.name for item in dataclasses.fields(read)} >= graph.keys()
    served = ModelExplorerConfig()
    served.add_model_from_path(str(model))
    served.add_node_data_from_path(str(file))
    assert served.to_url_param_value()
