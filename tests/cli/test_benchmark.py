from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Command

BRIEF = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 2, "--warmup-seconds", 0)


@pytest.mark.parametrize("runtime", ["delegraph", "litert"])
def test_it_runs_so_often_on_either_runtime(delegraph: Command, sines: Path, runtime: str) -> None:
    shown = delegraph("benchmark", sines, "--runtime", runtime, *BRIEF, "--json").json
    assert (len(shown["samples"]["warmup"]), len(shown["samples"]["runs"])) == (2, 3)
    assert shown["setup"]["runtime"] == runtime
    assert shown["latency"]["count"] == 3


def test_a_dry_run_has_stages_and_no_times(delegraph: Command, sines: Path) -> None:
    ran = delegraph("benchmark", sines, "--dry-run", "-d", "sin")
    assert (ran.code, ran.err) == (0, "")
    assert "Stages" in ran.lines
    assert "Times" not in ran.lines


def test_the_result_is_written(delegraph: Command, sines: Path, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    assert delegraph("benchmark", sines, *BRIEF, "--result-json", path, "--name", "mine").code == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["name"] == "mine"
    assert written["official"]["misc_metrics"]["num_runs"] == 3
