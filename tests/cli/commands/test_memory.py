from __future__ import annotations

import sys
from pathlib import Path

import pytest

from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE
from delegraph.graph.loader import load_model
from delegraph.micro.offline_plans import offline_plan
from support.command import Command

DIGITS = Path(__file__).parents[3] / "docs" / "demo" / "models" / "digits_int8.tflite"


def test_a_memory_limit_is_the_users(delegraph: Command) -> None:
    ran = delegraph("memory", DIGITS, "--memory-limit", "10")
    assert ran.code == 1
    assert "more than the limit of 10 bytes; --memory-limit sets another" in ran.err
    assert delegraph("memory", DIGITS, "--memory-limit", "1M").code == 0


def test_every_planner_has_a_line_beside_the_bound(delegraph: Command) -> None:
    ran = delegraph("memory", DIGITS)
    assert (ran.code, ran.err) == (0, "")
    start = ran.lines.index("planner bytes bound ratio ms")
    planners = [line.split()[0] for line in ran.lines[start + 1 : start + 13]]
    assert planners[:3] == ["delegraph", "tflite", "naive"]
    assert planners[-1] == "best"
    assert ran.lines[start + 1].startswith("delegraph 3136 3136 1.000 ")
    assert ran.lines[start + 12].startswith("best 3072 3072 least ")
    in_place = (
        "delegraph and tflite compute in place and keep the model's inputs, so have another bound"
    )
    assert any(line.startswith(in_place) for line in ran.lines)
    assert "in place" not in delegraph("memory", DIGITS, "--planner", "best").out
    assert any(line.startswith("Most is in use at node ") for line in ran.lines)


@pytest.mark.parametrize(
    ("budget", "code"), [("4K", 0), ("0.004M", 0), ("3072", 0), ("3071", 1), ("2K", 1)]
)
def test_the_exit_code_says_whether_the_budget_holds(
    delegraph: Command, budget: str, code: int
) -> None:
    ran = delegraph("memory", DIGITS, "--planner", "best", "--budget", budget)
    assert ran.code == code
    assert ("over budget: 3072 bytes needed" in ran.err) == bool(code)
    assert ("within the budget: 3072 of " in ran.out) == (not code)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--planner", "worst"], "no planner 'worst'; there are delegraph, tflite, naive"),
        (["--budget", "much"], "'much' is no size, expected 4096, 256K or 1.5M"),
        (["--align", "3"], "3 is no power of two, expected 1, 2, 4, 8, 16, 32 or 64"),
        (["--align", "32", "--write-offline", "o.tflite"], "no effect with --write-offline: TFLM "),
        (["--align", "65"], "65 is out of range, expected 1 to 64"),
        (["--plot", "a.gif"], "'--draw' / '--plot': 'a.gif': expected a file ending in .svg or "),
    ],
)
def test_wrong_arguments_exit_with_2_and_say_what_is_right(
    delegraph: Command, words: list[str], message: str
) -> None:
    ran = delegraph("memory", DIGITS, *words)
    assert ran.code == 2
    assert message in ran.err


def test_the_micro_arena_is_estimated_with_its_uncertainty(delegraph: Command) -> None:
    shown = delegraph("memory", DIGITS, "--micro", "--json").json
    micro = shown["micro"]
    parts = micro["head_bytes"] + micro["tail_bytes"]
    assert micro["total_bytes"] + micro["uncertainty_bytes"] >= parts > 3000
    assert shown["needed"] == micro["total_bytes"]
    assert "TensorFlow Lite Micro" in delegraph("memory", DIGITS, "--micro").lines


def test_a_model_with_its_plan_is_written(delegraph: Command, tmp_path: Path) -> None:
    out = tmp_path / "planned.tflite"
    ran = delegraph("memory", DIGITS, "-d", "none", "--write-offline", out)
    assert ran.code == 0
    assert ran.err == f"model with its plan written to {out}; TFLM aligns to 16\n"
    found = offline_plan(load_model(str(out)))
    assert found is not None
    assert max(found) > 0
    refused = delegraph("memory", DIGITS, "--planner", "tflite", "--write-offline", out)
    assert refused.code == 2
    assert "computes in place" in refused.err or "compute in place" in refused.err


def test_the_core_alone_is_shown_beside_the_delegates(delegraph: Command, sines: Path) -> None:
    ran = delegraph("memory", sines, "-d", "add_sub", "--planner", "naive")
    assert "planner as it runs core alone bound ratio ms" in ran.lines
    assert "bound, ratio and all below: as it runs" in ran.lines
    assert "needs an arena of 320 bytes (as it runs, planner naive)" in ran.lines
    assert "inside the partitions, not counted" in ran.out
    assert any("steps of the execution plan, first to last" in line for line in ran.lines)
    assert any(line.startswith("Most is in use at step ") for line in ran.lines)
    shown = delegraph("memory", sines, "-d", "add_sub", "--planner", "naive", "--json").json
    assert shown["needed"] == shown["planners"][0]["bytes"]
    assert shown["without_delegates"]["planners"][0]["bytes"] == 384


def test_a_budget_is_for_the_core_alone_if_delegates_apply_by_default(
    delegraph: Command, sines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEFAULT_DELEGATES_VARIABLE, "add_sub")
    words = ("memory", sines, "--planner", "best", "--json")
    shown = delegraph(*words).json
    assert (shown["subject"], shown["plans_of"]) == ("core alone", "as it runs")
    assert shown["needed_of"] == "core alone, planner best"
    assert shown["planners"] != shown["without_delegates"]["planners"]
    assert shown["needed"] == shown["without_delegates"]["planners"][0]["bytes"]
    assert "core alone 6 132 0" in delegraph("memory", sines, "--planner", "best").lines
    alone = delegraph(*words, "-d", "none").json
    assert (alone["without_delegates"], alone["needed"]) == (None, shown["needed"])
    assert alone["plans_of"] == "core alone"


def test_a_chart_shows_the_bytes_in_use_and_suggestions_name_what_they_save(
    delegraph: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = delegraph("memory", DIGITS)
    start = ran.lines.index("Bytes in use at each of 15 nodes, first to last")
    assert ran.lines[start + 1].startswith("3.1 kB |")
    assert ran.lines[start + 7].startswith("0 |")
    shown = delegraph("memory", DIGITS.with_name("digits_float.tflite"), "--json").json
    (int8, *_) = shown["suggestions"]
    assert int8["text"].startswith("INT8 in place of FLOAT32")
    assert 0.7 < int8["saves"] / shown["lower_bound"] < 0.76
    ran = delegraph("memory", DIGITS.with_name("digits_float.tflite"))
    assert any(line.startswith(f"{int8['saves']} 75 % INT8 in place of") for line in ran.lines)


def test_limits_are_those_of_the_interpreter(delegraph: Command, sines: Path) -> None:
    words = ("memory", sines, "--planner", "naive")
    ran = delegraph(*words, "--table-limit", "1")
    assert ran.code == 1
    assert "more tables than the limit of 1" in ran.err
    assert delegraph(*words, "--micro", "--time-limit", "60", "--depth-limit", "3").code == 0
    assert delegraph(*words, "--time-limit", "0").code == 2


def test_a_missing_matplotlib_is_told_before_any_work(
    delegraph: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = delegraph("memory", DIGITS, "--draw", "plan.png")
    assert (ran.code, ran.out) == (2, "")
    assert 'drawing a plan needs matplotlib: pip install "delegraph[plot]"' in ran.err


def test_a_picture_that_cannot_be_drawn_is_told_before_any_work(
    delegraph: Command, sines: Path
) -> None:
    ran = delegraph("memory", sines, "--draw", "plan.gif")
    assert (ran.code, ran.out) == (2, "")
