"""What notebooks show of the records of tools, as a browser reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from delegraph import Interpreter
from delegraph.delegation.tolerance import Tolerance
from delegraph.tools import (
    RunControl,
    Setup,
    benchmark,
    bisect,
    diff,
    diff_layers,
    op_profile,
    report,
)
from support.hostile_model import hostile_model

DEMO = Path(__file__).parents[3] / "docs" / "demo"
WRONG = "wrong_sines.py"


def rows_of(browser: Any, html: str) -> list[list[str]]:
    page = browser.new_page()
    page.set_content(html)
    found: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    page.close()
    return found


def test_a_benchmark_shows_statistics_and_stages(browser: Any, sines: Path) -> None:
    control = RunControl(runs=4, min_seconds=0, warmup_runs=1, warmup_seconds=0)
    rows = rows_of(browser, benchmark(Setup(str(sines)), control=control)._repr_html_())
    assert rows[2][:2] == ["runs", "4"]
    assert rows[-1][0] == "invoke"


def test_an_operator_profile_shows_the_slowest_first(browser: Any, sines: Path) -> None:
    control = RunControl(runs=2, min_seconds=0, warmup_runs=1, warmup_seconds=0)
    rows = rows_of(browser, op_profile(Setup(str(sines)), control=control)._repr_html_())
    assert sorted(row[0] for row in rows[1:]) == ["ADD", "ADD", "MUL", "SIN", "SIN"]
    times = [float(row[4]) for row in rows[1:]]
    assert times == sorted(times, reverse=True)


def test_a_difference_shows_the_worst_of_each_output(browser: Any, sines: Path) -> None:
    setup = Setup(str(sines), delegates=("add_sub",))
    rows = rows_of(browser, diff(setup, runs=2)._repr_html_())
    assert rows[0] == ["output", "type", "mean", "max", "p999", "snr_db", "cosine", "remark"]
    assert rows[1] == ["y", "float32", "0", "0", "0", "inf", "1", ""]
    rows = rows_of(browser, diff_layers(setup, runs=1)._repr_html_())
    assert [row[1] for row in rows[1:]] != []
    assert all(row[4] in ("0", "") for row in rows[1:])


def test_a_bisection_shows_the_nodes_that_are_to_blame(browser: Any) -> None:
    setup = Setup(str(DEMO / "models" / "sines.tflite"), delegate_files=(str(DEMO / WRONG),))
    rows = rows_of(browser, bisect(setup, tolerance=Tolerance(absolute=1e-3))._repr_html_())
    assert rows[1][:5] == ["1", "0", "3", "SIN", "sines"]
    assert rows[1][5].startswith("differs: y: 1 of 1 elements")
    assert len(rows) == 2


def test_a_report_shows_its_page_in_a_frame(browser: Any, sines: Path) -> None:
    page = browser.new_page()
    page.set_content(report(Setup(str(sines), delegates=("sin",)))._repr_html_())
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="node 2, MUL").click()
    assert frame.locator(".panel h3").inner_text() == "MUL"
    page.close()


def test_nothing_runs_what_a_hostile_model_says(browser: Any, tmp_path: Path) -> None:
    page = browser.new_page()
    page.set_content(Interpreter(hostile_model(tmp_path))._repr_html_())
    assert page.locator("td").count() > 10
    assert page.locator("script, img, svg").count() == 0
    assert page.evaluate("window.hacked") is None
    page.close()
