"""How much memory a model needs, planner by planner; pictures and plans inside models."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph.graph.loader import parse_model
from delegraph.memory import OffsetsAssignment, verify_plan
from delegraph.micro.offline_plans import offline_plan
from delegraph.schema.options import IfOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from delegraph.tools.memory_planners import COMPARED, IN_PLACE, PLANNERS
from delegraph.tools.memory_plot import draw_plan
from delegraph.tools.memory_report import MemoryReport, memory_report
from delegraph.tools.offline_plan import with_offline_plan
from support.by_name import ByName, doubling_while
from support.signatures import two_signatures

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"
SIZES = {name: tensor((25,)) for name in "xaby"}


def chain() -> bytes:
    """Tensors of 100 bytes, each made of the one before."""
    return graph_model(
        [("FlexA", "x", "a"), ("FlexB", "a", "b"), ("FlexC", "b", "y")],
        inputs="x",
        outputs="y",
        tensors=SIZES,
    )


def report_of(model: bytes | Path, *planners: str, alignment: int = 1) -> MemoryReport:
    content = model.read_bytes() if isinstance(model, Path) else model
    delegates = [] if isinstance(model, Path) else [ByName("FlexA"), ByName("FlexB", "FlexC")]
    with Interpreter(model_content=content, delegates=delegates) as interpreter:
        interpreter.allocate_tensors()
        return memory_report(interpreter, planners or COMPARED, alignment)


def test_tensors_inside_a_partition_need_no_memory_of_the_arena() -> None:
    report = report_of(chain())
    assert [(t.name, t.made_by, t.bytes, t.first, t.last) for t in report.tensors] == [
        ("x", "input", 100, 0, 0),
        ("a", "by_name", 100, 0, 1),
        ("y", "by_name", 100, 1, 1),
    ]
    assert report.bound == report.result_of("best").bytes == 200


def test_the_peak_is_where_most_is_in_use() -> None:
    peak = report_of(chain(), "best").peak
    assert peak is not None
    assert (peak.position, peak.operator, peak.bytes, peak.tensors) == (0, "by_name", 200, (0, 1))


def test_the_peak_has_the_inputs_that_the_plan_keeps() -> None:
    peak = report_of(chain(), "delegraph").peak
    assert peak is not None
    assert (peak.position, peak.bytes, peak.tensors) == (1, 300, (0, 1, 2))


def test_each_subgraph_that_runs_has_an_arena() -> None:
    with Interpreter(model_content=doubling_while(), delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, ["delegraph", "best"], 1)
        taken = [each.memory.arena_bytes[0] for each in interpreter.session.subgraphs]
    assert [a.subgraph for a in report.arenas] == [0, 1, 2]
    assert [a.run_by for a in report.arenas] == [(), ("node 0, WHILE",), ("node 0, WHILE",)]
    assert report.results[0].bytes == 8
    assert report.bytes_by_planner == {"delegraph": 8 + 5 + 8, "best": 8 + 5 + 4 + 4}
    assert all(taken)


def test_subgraphs_of_all_signatures_are_counted_and_named() -> None:
    with Interpreter(model_content=two_signatures(), delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, ["naive"], 1)
    assert [a.signatures for a in report.arenas] == [("negate",), ("wave",)]
    assert report.bytes_by_planner == {"naive": 16}


def test_an_unknown_shape_in_a_called_subgraph_leaves_the_total_open() -> None:
    nodes = [("FILL", "n v", "a"), ("SIN", "a", "b"), ("SUM", "b axis", "y")]
    branch = {
        "n": tensor((1,), "INT32"),
        "v": constant(np.float32(1)),
        "axis": constant(np.zeros(1, np.int32)),
        "a": tensor((1,)),
        "b": tensor((1,)),
        "y": tensor((1,)),
    }
    options = IfOptions(then_subgraph_index=1, else_subgraph_index=1)
    main = {"c": tensor((1,), "BOOL"), "n": tensor((1,), "INT32"), "y": tensor((1,))}
    model = subgraphs_model(
        [([("IF", "c n", "y", options)], "c n", "y", main), (nodes, "n", "y", branch)]
    )
    with Interpreter(model_content=model, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, ["delegraph"])
    assert not report.is_complete
    assert "known only while invoking" in report.unknown


def test_a_subgraph_that_is_called_with_several_shapes_leaves_the_total_open() -> None:
    options = IfOptions(then_subgraph_index=1, else_subgraph_index=1)
    calls = [("IF", "c x", "a", options), ("IF", "c z", "b", options)]
    main = {"c": tensor((1,), "BOOL"), **{name: tensor((2,)) for name in "xa"}}
    main |= {name: tensor((3,)) for name in "zb"}
    one = {"x": tensor((2,)), "y": tensor((2,))}
    model = subgraphs_model([(calls, "c x z", "a b", main), ([("SIN", "x", "y")], "x", "y", one)])
    with Interpreter(model_content=model, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, ["delegraph"])
    assert not report.is_complete
    assert report.unknown == "node 0, IF, calls subgraph 1 with other shapes"


def test_a_peak_in_a_partition_names_the_models_nodes() -> None:
    report = report_of(chain(), "best")
    assert report.peak is not None
    assert (report.peak.where, report.unit) == ("partition 0 of by_name (node 0)", "step")
    alone = report_of(DIGITS, "best")
    assert alone.peak is not None
    assert alone.peak.where == f"node {alone.peak.node}, {alone.peak.operator}"
    assert alone.unit == "node"


def test_every_plan_of_a_real_model_is_sound_and_none_is_below_the_bound() -> None:
    report = report_of(DIGITS, *PLANNERS, alignment=16)
    for result in report.results:
        assert result.bytes >= result.bound > 0
        if result.planner in IN_PLACE:
            continue  # where tensors share bytes on purpose
        plan = OffsetsAssignment(result.offsets, result.bytes)
        assert verify_plan(report.records, plan, 16) == []
    assert report.result_of("naive").bytes == sum(-(-t.bytes // 16) * 16 for t in report.tensors)
    assert report.result_of("best").bytes == min(
        r.bytes for r in report.results if r.planner not in IN_PLACE
    )


def test_the_runtimes_own_planner_takes_what_the_runtime_takes() -> None:
    with Interpreter(DIGITS, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        (result,) = memory_report(interpreter, ["delegraph"]).results
        assert result.bytes == interpreter.session.subgraphs[0].memory.arena_bytes[0]


def test_an_unknown_planner_is_an_error_that_lists_them() -> None:
    with pytest.raises(ArgumentError, match=r"no planner 'greedy' \(did .*\); there are delegraph"):
        report_of(DIGITS, "greedy")


def test_a_planner_of_cubic_time_is_left_out_of_large_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delegraph.tools.memory_report.MOST_FOR_CUBIC", 3)
    with Interpreter(model_content=DIGITS.read_bytes(), delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        found = [result.planner for result in memory_report(interpreter).results]
        [asked_for] = memory_report(interpreter, ["mincostflow"]).results
    assert found == [name for name in COMPARED if name != "mincostflow"]
    assert asked_for.planner == "mincostflow"


def test_memory_that_is_not_planned_yet_is_an_error() -> None:
    with (
        Interpreter(DIGITS, delegates=[]) as interpreter,
        pytest.raises(ArgumentError, match="allocate_tensors"),
    ):
        memory_report(interpreter)


def test_a_plan_written_into_a_model_is_read_back() -> None:
    report = report_of(DIGITS, "best", alignment=16)
    offsets = dict(zip((t.index for t in report.tensors), report.results[0].offsets, strict=True))
    model = parse_model(DIGITS.read_bytes())
    planned = parse_model(with_offline_plan(model, offsets))
    found = offline_plan(planned)
    assert found == [offsets.get(i, -1) for i in range(len(model.subgraphs[0].tensors))]
    again = parse_model(with_offline_plan(planned, {}))
    assert list(again.metadata).count("OfflineMemoryAllocation") == 1
    assert set(offline_plan(again) or ()) == {-1}


def test_a_picture_has_a_box_with_a_tooltip_for_each_tensor(tmp_path: Path) -> None:
    report = report_of(DIGITS, "best")
    for name in ("plan.svg", "plan.html"):
        draw_plan(report, report.results[0], tmp_path / name, "digits")
    root = ElementTree.fromstring((tmp_path / "plan.svg").read_text(encoding="utf-8"))
    assert any(text.text == "offset in the arena, kB" for text in root.iter())
    titles = [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}title")]
    boxes = [text for text in titles if text.startswith("tensor ")]
    assert len(boxes) == len(report.tensors)
    assert (tmp_path / "plan.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(ArgumentError, match=r"expected a file ending in \.svg, \.png, \.html"):
        draw_plan(report, report.results[0], tmp_path / "plan.pdf", "digits")


def test_a_picture_of_pixels_is_drawn_by_matplotlib(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = report_of(DIGITS, "best")
    draw_plan(report, report.results[0], tmp_path / "plan.png", "digits")
    assert (tmp_path / "plan.png").read_bytes()[:4] == b"\x89PNG"


def test_names_in_a_picture_are_escaped(tmp_path: Path) -> None:
    report = report_of(chain(), "best")
    draw_plan(report, report.results[0], tmp_path / "plan.svg", "<a & b>")
    root = ElementTree.fromstring((tmp_path / "plan.svg").read_text(encoding="utf-8"))
    assert any((text.text or "").startswith("<a & b>: 200 bytes by") for text in root.iter())


def test_json_is_plain(tmp_path: Path) -> None:
    import json

    shown = json.loads(json.dumps(report_of(DIGITS, "best").to_json()))
    assert shown["planners"][0]["bytes"] == shown["lower_bound"]
    assert np.sum([t["bytes"] for t in shown["tensors"]]) > shown["lower_bound"]
