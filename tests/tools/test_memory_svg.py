"""Pictures of memory plans show tensors for as long as the plan keeps them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from delegraph import Interpreter
from delegraph.tools.memory_report import memory_report
from delegraph.tools.memory_svg import bytes_in_use, last_positions, plan_svg

DIGITS = Path(__file__).parents[2] / "docs" / "demo" / "models" / "digits_int8.tflite"


@pytest.mark.parametrize(("planner", "last"), [("delegraph", 14), ("tflite", 14), ("best", 0)])
def test_a_plan_that_keeps_the_inputs_is_drawn_so(planner: str, last: int) -> None:
    with Interpreter(DIGITS, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        report = memory_report(interpreter, [planner])
    result = report.results[0]
    assert (report.tensors[0].made_by, last_positions(report, result)[0]) == ("input", last)
    box = rf"tensor 0 \w+ of input: 64 bytes at [\d,]+, nodes 0 to {last}<"
    assert re.search(box, plan_svg(report, result, ""))
    assert max(bytes_in_use(report, result)) == result.bound
