from __future__ import annotations

import csv
import json
from pathlib import Path

from support.command import Command

BRIEF = ("--runs", 3, "--min-seconds", 0, "--warmup-runs", 1, "--warmup-seconds", 0)


def test_each_file_that_is_asked_for_is_written(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    table, trace = tmp_path / "nodes.csv", tmp_path / "trace.json"
    flame, folder = tmp_path / "flame.json", tmp_path / "nodes"
    files = ("--op-profile-csv", table, "--trace", trace, "--speedscope", flame)
    ran = delegraph("benchmark", sines, "-d", "sin", *BRIEF, *files, "--node-data", folder)
    assert (ran.code, ran.err) == (0, "")
    assert not any(line.startswith("Profile") for line in ran.lines)
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["node_type"] for row in rows][:2] == ["sin", "ADD"]
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(entry["name"].startswith("run ") for entry in events) == 3
    assert json.loads(flame.read_text())["profiles"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "delegate.json",
        "latency_us.json",
        "rejection.json",
    ]


def test_json_has_the_profile_only_where_it_is_asked_for(delegraph: Command, sines: Path) -> None:
    shown = delegraph("benchmark", sines, "-d", "sin", *BRIEF, "--op-profile", "--json").json
    nodes = shown["op_profile"]["sections"][0]["nodes"]
    assert [node["node_type"] for node in nodes] == ["sin", "ADD", "MUL", "sin", "ADD"]
    assert shown["op_profile"]["runs"]["count"] == 3
    assert "op_profile" not in delegraph("benchmark", sines, *BRIEF, "--json").json


def test_the_runs_that_count_are_not_profiled(delegraph: Command, sines: Path) -> None:
    shown = delegraph("benchmark", sines, *BRIEF, "--op-profile", "--json").json
    assert len(shown["samples"]["runs"]) == 3
    assert shown["op_profile"]["runs"]["first"] not in shown["samples"]["runs"]


def test_a_folder_that_cannot_be_made_is_named(
    delegraph: Command, sines: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ran = delegraph("benchmark", sines, *BRIEF, "--node-data", tmp_path / "file" / "nodes")
    assert ran.code == 2
    assert "--node-data" in ran.err
    assert "nodes" in ran.err
