from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.schema.options import WhileOptions
from delegraph.testing import graph_model, subgraphs_model, tensor
from delegraph.tools import RunControl, Setup, benchmark, diff_layers, report
from support.by_name import doubling_while

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


def test_a_node_says_who_runs_it_or_why_not(sines: Path) -> None:
    data = report(Setup(str(sines), delegates=("sin",))).to_json()
    nodes = data["subgraphs"][0]["nodes"]
    assert [node["op"] for node in nodes] == ["SIN", "ADD", "MUL", "SIN", "ADD"]
    assert (nodes[0]["delegate"], nodes[0]["partition"]) == ("sin", 0)
    assert "delegate" not in nodes[1]
    assert nodes[1]["reasons"]["sin"].startswith("op: is ADD")
    assert data["delegates"] == ["sin"]
    assert data["summary"].startswith("5 nodes: sin takes 2 in 2 partitions")


def test_stages_have_the_bytes_that_enter_and_leave(sines: Path) -> None:
    data = report(Setup(str(sines), delegates=("sin",))).to_json()
    first = data["stages"][0]
    assert (first["delegate"], first["nodes"]) == ("sin", [0])
    assert (first["input_bytes"], first["output_bytes"], first["constant_bytes"]) == (4, 4, 0)
    assert {crossing["bytes"] for crossing in data["crossings"]} == {4}
    assert [r["ops"] for r in data["refusals"]] == ["ADD x2, MUL"]


def test_tensors_have_types_shapes_and_quantization() -> None:
    graph = report(Setup(str(DIGITS))).to_json()["subgraphs"][0]
    given = graph["tensors"][graph["inputs"][0]]
    assert (given["type"], given["shape"], given["bytes"]) == ("int8", [1, 8, 8, 1], 64)
    assert given["scale"] > 0
    assert "is_constant" not in given
    convolution = next(node for node in graph["nodes"] if node["op"] == "CONV_2D")
    weights = graph["tensors"][convolution["inputs"][1]]
    assert weights["is_constant"]
    assert weights["scales"] == weights["shape"][0]
    assert convolution["options"]["padding"] == "SAME"


def test_shapes_are_those_of_the_interpreter(tmp_path: Path) -> None:
    """A shape that the file leaves open is known once the tensors are allocated."""
    open_shape = tensor((1, 3), shape_signature=(-1, 3))
    stale = tensor((1, 1))
    path = tmp_path / "open.tflite"
    tensors = {"x": open_shape, "y": stale}
    path.write_bytes(graph_model([("NEG", "x", "y")], inputs="x", outputs="y", tensors=tensors))
    x, y = report(Setup(str(path))).to_json()["subgraphs"][0]["tensors"]
    assert (x["shape"], x["signature"]) == ([1, 3], [-1, 3])
    assert (y["shape"], y["bytes"]) == ([1, 3], 12)


def test_a_node_names_the_subgraphs_that_it_calls(tmp_path: Path) -> None:
    loop = ("WHILE", "x", "y", WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    truth = {"no": tensor((), "BOOL")}
    path = tmp_path / "loop.tflite"
    path.write_bytes(
        subgraphs_model(
            [
                ([loop], "x", "y", {}),
                ([("LESS", "a b", "no")], "a b", "no", truth),
                ([("NEG", "a", "c")], "a", "c", {}),
            ],
            names=["main", "condition", "body"],
        )
    )
    graphs = report(Setup(str(path))).to_json()["subgraphs"]
    assert [graph["name"] for graph in graphs] == ["main", "condition", "body"]
    assert graphs[0]["nodes"][0]["calls"] == [1, 2]


def test_a_model_that_cannot_run_is_shown_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "custom.tflite"
    path.write_bytes(graph_model([("Mine", "x", "y")], inputs="x", outputs="y"))
    data = report(Setup(str(path))).to_json()
    assert data["subgraphs"][0]["nodes"][0]["is_unresolved"]
    assert "Mine" in data["problem"][0]
    assert all(line == line.strip() for line in data["problem"])


def test_a_report_of_the_official_interpreter_says_whose_kernels(sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    data = report(Setup(str(sines), runtime="litert", use_default_delegates=False)).to_json()
    assert data["host"] == "LiteRT"
    assert data["subgraphs"][0]["tensors"][0]["shape"] == [1]


def test_long_options_are_shortened(tmp_path: Path) -> None:
    from delegraph.tools.reporting.graph import LONGEST_VALUE, shown_value

    assert len(shown_value(tuple(range(1000)))) == LONGEST_VALUE + 3
    assert shown_value(np.zeros(3)) == "3 values"


def test_a_page_that_cannot_be_written_is_named(sines: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"cannot write '.*missing.*': "):
        report(Setup(str(sines))).save(tmp_path / "missing" / "report.html")


def test_memory_has_plans_and_what_is_in_use() -> None:
    memory = report(Setup(str(DIGITS)), memory=True).to_json()["memory"]
    assert [p["planner"] for p in memory["planners"]][:2] == ["delegraph", "tflite"]
    assert max(count for _, count in memory["in_use"]) == memory["lower_bound"] == 3072
    assert all(len(p["offsets"]) == len(memory["tensors"]) for p in memory["planners"])
    assert len(memory["operators"]) == 15
    own, best = (memory["planners"][i] for i in (0, -1))
    assert max(count for _, count in own["in_use"]) == own["bound"] == 3136  # it keeps the input
    assert own["last"][0] == 14
    assert "last" not in best
    assert [s["saves"] for s in memory["suggestions"]] == sorted(
        (s["saves"] for s in memory["suggestions"]), reverse=True
    )
    assert "memory" not in report(Setup(str(DIGITS))).to_json()


def test_memory_of_the_core_alone_stands_beside_that_of_delegates(sines: Path) -> None:
    memory = report(Setup(str(sines), delegates=("add_sub",)), memory=True).to_json()["memory"]
    core = report(Setup(str(sines)), memory=True).to_json()["memory"]
    assert memory["not_counted"] == ["add_sub"]
    assert memory["without_delegates"]["tensors"] == core["tensors"]
    assert (core["not_counted"], core["without_delegates"]) == ([], None)


def test_memory_has_the_plans_of_each_subgraph_that_runs(tmp_path: Path) -> None:
    model = tmp_path / "loop.tflite"
    model.write_bytes(doubling_while())
    setup = Setup(str(model), delegates=(), use_default_delegates=False)
    memory = report(setup, memory=True).to_json()["memory"]
    assert [each["subgraph"] for each in memory["subgraphs"]] == [1, 2]
    whole = sum(each["planners"][0]["bytes"] for each in (memory, *memory["subgraphs"]))
    assert memory["bytes_by_planner"]["delegraph"] == whole
    assert all(each["operators"] for each in memory["subgraphs"])


def test_the_official_interpreter_tells_no_memory(sines: Path) -> None:
    with pytest.raises(ArgumentError, match="memory needs runtime='delegraph'"):
        report(Setup(str(sines), runtime="litert"), memory=True)


def test_differences_are_those_of_the_worst_run(sines: Path) -> None:
    from support.faulty_delegate import Faulty, off_by

    setup = Setup(str(sines), delegates=(Faulty("MUL", fault=off_by(0.5)),))
    found = diff_layers(setup, runs=2)
    told = report(setup, layers=found).to_json()["differences"]
    by_node = {layer["node"]: layer for layer in told["layers"]}
    assert by_node[2]["same_inputs"]["max"] == pytest.approx(0.5)
    assert by_node[0]["drift"]["noise"] == 0
    assert by_node[4]["drift"]["noise"] > 0
    assert by_node[2]["delegate"] is not None


def test_very_many_runs_are_thinned_to_the_extremes_of_each_stretch(sines: Path) -> None:
    setup = Setup(str(sines))
    control = RunControl(runs=2, min_seconds=0, warmup_seconds=0)
    result = benchmark(setup, control=control)
    times = np.random.default_rng(0).uniform(1e-6, 2e-6, 400_000)
    times[[7, 123_457, 399_999]] = 5e-3, 1e-7, 6e-3
    found = report(setup, benchmark=replace(result, runs=tuple(times.tolist())))
    drawn = found.to_json()["benchmark"]["drawn_runs"]
    assert len(drawn) == 2000
    assert [7, 5e-3] in drawn
    assert [123_457, 1e-7] in drawn
    assert drawn[-1] == [399_999, 6e-3]
    assert all(times[run] == seconds for run, seconds in drawn)
    assert len(found.html()) < 3_000_000
    few = report(setup, benchmark=result).to_json()["benchmark"]["drawn_runs"]
    assert few == [[0, result.runs[0]], [1, result.runs[1]]]


def test_two_placements_are_of_one_model(sines: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"beside is '.*other.tflite', expected '.*tflite'"):
        report(Setup(str(sines)), beside=Setup(str(tmp_path / "other.tflite")))
