from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from delegraph.cli.answers.op_profile import node_names, print_op_profile
from delegraph.cli.answers.printing import console
from delegraph.tools.profiling.op_profile import profile_of
from support.command import Command
from support.recordings import TWO_RUNS, recorded

TITLES = ("Run order", "Top by time", "By type")
BRIEF = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 1, "--warmup-seconds", 0)


def test_tables_are_in_run_order_by_time_and_by_type(delegraph: Command, sines: Path) -> None:
    ran = delegraph("benchmark", sines, "-d", "sin", *BRIEF, "--op-profile")
    assert (ran.code, ran.err) == (0, "")
    shown = [line.strip() for line in ran.lines]
    assert "Profile: initialization" in shown
    first = shown.index("Run order")
    kinds = [line.split()[0] for line in shown[first + 2 : first + 7]]
    assert kinds == ["sin", "ADD", "MUL", "sin", "ADD"]
    by_type = first + 7
    assert shown[by_type] == "By type"  # so few nodes need no order by time
    assert {line.split()[0] for line in shown[by_type + 2 : by_type + 5]} == {"sin", "ADD", "MUL"}
    assert any(line.startswith("3 profiled runs, ") for line in shown)
    assert any(line.startswith("note: sin does not tell") for line in shown)


def test_many_nodes_are_ordered_by_time_too(delegraph: Command, sines: Path) -> None:
    shown = delegraph(
        "benchmark", sines.with_name("digits_int8.tflite"), "-d", "none", *BRIEF, "--op-profile"
    ).lines
    top = [line.strip() for line in shown].index("Top by time")
    assert len(shown[top + 2 :][:10]) == 10


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (60, "node type median share name"),
        (140, "node type median mean min std first share so far calls output name"),
    ],
)
def test_times_have_their_spread_and_units(
    fresh_delegraph: Command, sines: Path, width: int, heads: str
) -> None:
    model = sines.with_name("digits_int8.tflite")
    words = ("benchmark", model, "-d", "none", *BRIEF, "--op-profile")
    shown = fresh_delegraph(*words, COLUMNS=str(width)).lines
    assert heads in shown
    assert any(re.search(r"ADD .* us .* %", line) for line in shown)
    omitted = [line for line in shown if line.startswith("no room for ")]
    columns = "mean, min, std, first, so far, calls, output"
    assert omitted == ([f"no room for {columns}:"] if width == 60 else [])


def test_a_busy_machine_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    profile = replace(profile_of(recorded(*TWO_RUNS)), cautions=("busy machine: very",))
    print_op_profile(console(), profile, unprofiled=1e-9)
    shown = capsys.readouterr().out
    assert "caution: busy machine: very" in shown
    assert "note: timing each node takes time, too: a run without it took 0.001 us" in shown


def test_names_of_nodes_end_in_their_index(delegraph: Command, sines: Path) -> None:
    shown = delegraph("benchmark", sines, "-d", "sin", *BRIEF, "--op-profile").lines
    assert any(line.endswith("]:1") and line.split()[0] == "ADD" for line in shown)


def test_a_node_has_one_name_in_all_tables(fresh_delegraph: Command, sines: Path) -> None:
    model = sines.with_name("digits_int8.tflite")
    words = ("benchmark", model, "-d", "none", *BRIEF, "--op-profile")
    shown = fresh_delegraph(*words, COLUMNS="60").lines
    run_order, top, by_type = (shown.index(title) for title in TITLES)
    in_order, slowest = (
        {line.split()[-1] for line in shown[begin + 2 : end]}
        for begin, end in ((run_order, top), (top, by_type))
    )
    assert slowest < in_order
    assert shown[run_order + 1] == shown[top + 1]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("[V1/V1/conv/Relu6;V1/V1/conv/bias]:3", "[V1/conv/Relu6]:3"),
        ("[a, x/y;x/z]:4", "[a, x/y]:4"),
        ("[V1/V11/x]:5", "[V1/V11/x]:5"),
        ("[;a]:6", "[;a]:6"),
    ],
)
def test_names_of_nodes_tell_the_node(name: str, short: str) -> None:
    assert node_names([name, "[other]:0"]) == [short, "[other]:0"]


def test_litert_has_the_time_outside_of_nodes_only(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ai_edge_litert")
    litert = ("--runtime", "litert", "-d", "none")
    csv = tmp_path / "nodes.csv"
    nodes = tmp_path / "nodes"
    files = ("--op-profile-csv", csv, "--node-data", nodes)
    ran = delegraph("benchmark", sines, *litert, *BRIEF, "--op-profile", *files)
    shown = ran.lines
    assert f"note: {csv} is not written: no node tells its time" in ran.err
    assert f"note: {nodes / 'latency_us.json'} is not written: no node tells its" in ran.err
    assert not csv.exists()
    assert sorted(path.name for path in nodes.iterdir()) == ["delegate.json", "rejection.json"]
    assert any(line.endswith("; no node tells its time") for line in shown)
    assert not any("of it outside of nodes" in line for line in shown)
    assert "Profile: initialization" in shown
    assert not any("Run order" in line for line in shown)
    assert any("LiteRT does not tell how long its own kernels" in line for line in shown)
