"""Pictures of memory plans show tensors for as long as the plan keeps them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph.tools.memory_report import memory_report
from delegraph.tools.memory_svg import plan_svg, round_ticks

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.mark.parametrize(("planner", "last"), [("delegraph", 14), ("tflite", 14), ("best", 0)])
def test_a_plan_that_keeps_the_inputs_is_drawn_so(planner: str, last: int) -> None:
    with Interpreter(DIGITS, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, [planner])
    result = report.results[0]
    assert (report.tensors[0].made_by, report.last_positions(result)[0]) == ("input", last)
    box = rf"tensor 0 \w+ of input: 64 bytes at [\d,]+, nodes 0 to {last}<"
    assert re.search(box, plan_svg(report, result, ""))
    assert max(report.bytes_in_use(result)) == result.bound


@pytest.mark.parametrize(
    ("planner", "words"),
    [
        ("delegraph", "no plan that keeps inputs needs less"),
        ("best", "no plan needs less without computing in place"),
    ],
)
def test_the_legend_says_of_which_plans_the_bound_is(planner: str, words: str) -> None:
    with Interpreter(DIGITS, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, [planner])
    assert f">{words}<" in plan_svg(report, report.results[0], "")


def test_the_bytes_in_use_end_where_shapes_become_unknown() -> None:
    nodes = [("SIN", "x", "s"), ("FILL", "n v", "a"), ("SIN", "a", "y")]
    tensors = {"x": tensor((100,)), "n": tensor((1,), "INT32"), "v": constant(np.float32(1))}
    model = graph_model(nodes, inputs="x n", outputs="s y", tensors=tensors)
    with Interpreter(model_content=model, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, ["delegraph"])
    assert len(report.operators) == 3
    assert len(report.bytes_in_use(report.results[0])) == len(report.in_use) == 2


@pytest.mark.parametrize(
    ("top", "least", "ticks"),
    [(66, 1, [0, 10, 20, 30, 40, 50, 60]), (1, 1, [0, 1]), (2.2, 0, [0, 0.5, 1, 1.5, 2])],
)
def test_ticks_are_round_numbers(top: float, least: float, ticks: list[float]) -> None:
    assert round_ticks(top, least) == ticks


@pytest.mark.parametrize(("elements", "colour"), [((100, 100), "white"), ((1, 9), "black")])
def test_letters_are_dark_on_light_boxes(elements: tuple[int, int], colour: str) -> None:
    shown = picture_of(*elements)
    boxes = re.findall(r'60% (\d+)%\)"/><g fill="(\w+)">', shown)
    assert colour in {found for _, found in boxes}
    assert all(found == ("white" if int(light) <= 38 else "black") for light, found in boxes)


def test_the_legend_shows_its_lines() -> None:
    shown = picture_of(100, 100)
    assert 'stroke-dasharray="6 4"/>\n<text' in shown
    assert "most in use: node 0, TILE<" in shown


def picture_of(before: int, after: int) -> str:
    """Picture of a plan of two tensors with these numbers of elements."""
    times = constant(np.array([after // before], np.int32))
    model = one_op_model("TILE", [tensor((before,)), times], [tensor((after,))])
    with Interpreter(model_content=model, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, ["best"])
    return plan_svg(report, report.results[0], "")
