from __future__ import annotations

from pathlib import Path

import pytest

from support.command import Command

BRIEF = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 1, "--warmup-seconds", 0)


def test_tables_are_in_run_order_by_time_and_by_type(delegraph: Command, sines: Path) -> None:
    ran = delegraph("benchmark", sines, "-d", "sin", *BRIEF, "--op-profile")
    assert (ran.code, ran.err) == (0, "")
    shown = [line.strip() for line in ran.lines]
    assert "Profile: initialization" in shown
    first = shown.index("Run order")
    kinds = [line.split()[0] for line in shown[first + 2 : first + 7]]
    assert kinds == ["sin", "ADD", "MUL", "sin", "ADD"]
    assert shown[first + 7] == "Top by time"
    by_type = shown.index("By type")
    assert {line.split()[0] for line in shown[by_type + 2 : by_type + 5]} == {"sin", "ADD", "MUL"}
    assert any(line.startswith("3 profiled runs, ") for line in shown)
    assert any(line.startswith("note: sin does not tell") for line in shown)


def test_names_of_nodes_end_in_their_index(delegraph: Command, sines: Path) -> None:
    shown = delegraph("benchmark", sines, "-d", "sin", *BRIEF, "--op-profile").lines
    assert any(line.endswith("]:1") and line.split()[0] == "ADD" for line in shown)


def test_litert_has_the_time_outside_of_nodes_only(delegraph: Command, sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    litert = ("--runtime", "litert", "-d", "none")
    shown = delegraph("benchmark", sines, *litert, *BRIEF, "--op-profile").lines
    assert "Profile: initialization" in shown
    assert not any("Run order" in line for line in shown)
    assert any("LiteRT does not tell how long its own kernels" in line for line in shown)
