from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from delegraph.cli.answers.benchmark_comparison import Against, print_comparison, with_whole_time
from delegraph.cli.answers.printing import console
from delegraph.cli.failure import CheckFailed
from delegraph.tools import Setup, compare
from delegraph.tools.benchmarking.comparison import Comparison, Timed
from delegraph.tools.benchmarking.verdicts import judge
from delegraph.tools.progress import untold
from support.command import Command

BRIEF = ("--blocks", 5, "--seconds", 0.1)


def test_each_other_set_up_has_a_verdict(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    against = ("--against", "--runtime litert", "--against", "-d sin:a=1")
    ran = delegraph("benchmark", sines, *against, *BRIEF, "--result-json", path)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith("error: delegate 'sin' has no options")
    assert ran.lines[1].startswith("sines.tflite: ")
    assert "MODEL is" in ran.out
    assert "  sin:a=1: failed: delegate 'sin' has no options" in ran.out
    written = json.loads(path.read_text(encoding="utf-8"))
    assert [other["name"] for other in written["others"]] == [
        "sines.tflite, litert",
        "sines.tflite, sin:a=1",
    ]
    assert written["others"][0]["verdict"]["text"] in ran.out
    assert len(written["one"]["blocks"]) == 5


def test_the_help_tells_the_least_and_the_usual_number_of_blocks(delegraph: Command) -> None:
    text = " ".join(delegraph("benchmark", "--help").out.split())
    assert "at least 5; all take turns in each. [default: 12]" in text


def test_what_the_set_up_itself_fails_with_is_the_exit_code(
    delegraph: Command, sines: Path
) -> None:
    ran = delegraph("benchmark", sines, "-d", "unknown", "--against", "-d none", *BRIEF)
    assert ran.code == 3
    assert "no installed plugin provides delegate 'unknown'" in ran.err


def test_the_first_block_tells_the_whole_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter((0.0, 2.5, 2.6))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    tell = with_whole_time(untold, 12, announced=12.0)
    for done in (0.5, 1.0, 2.0):
        tell("block", done, 12)
    assert capsys.readouterr().err == "by its first block, it takes about 30 s in all\n"


@cache
def comparison(path: Path) -> Comparison:
    """Comparison of a set-up of a model with itself."""
    setup = Setup(str(path))
    return compare(setup, [setup], blocks=5, seconds=0, processes=False)


@pytest.mark.parametrize(("percent", "fails"), [(None, False), (5, True), (10, False), (30, False)])
def test_only_slower_by_more_than_so_much_fails(
    sines: Path, percent: float | None, fails: bool
) -> None:
    setup = Setup(str(sines))
    slower = Timed("the other", {}, verdict=judge(np.full(5, np.log(1.1)), np.zeros(5)))
    against = Against(setup, (setup,), 5, 0, 5, percent, None)
    made = replace(comparison(sines), others=(slower,))
    if fails:
        with pytest.raises(CheckFailed, match="slower by more than 5 % than the other"):
            against.check(made)
    else:
        against.check(made)


def test_ratios_and_their_heading_are_whole_beside_a_long_name(
    sines: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "mobilenet_v2_1.0_224_trained_on_other_data_quant.tflite, litert, no delegates"
    verdict = judge(np.full(5, np.log(1.1)), np.zeros(5))
    other = Timed(name, {}, memory=7_000_000, threads=2, verdict=verdict)
    print_comparison(console(), replace(comparison(sines), others=(other,)))
    shown = capsys.readouterr().out
    for whole in (str(verdict.ratio), "ratio [95 %]  MODEL is", name.split(",")[0]):
        assert whole in shown


def test_a_name_without_room_stands_above_its_row(
    sines: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    verdict = judge(np.full(5, np.log(1.1)), np.zeros(5))
    other = Timed("sines.tflite, litert2, numba_cpu", {}, threads=4, verdict=verdict)
    print_comparison(console(), replace(comparison(sines), others=(other,)))
    lines = capsys.readouterr().out.splitlines()
    name = lines.index("  litert2, numba_cpu")
    assert "MODEL is" in lines[name - 1]
    assert str(verdict.ratio) in lines[name + 1]
