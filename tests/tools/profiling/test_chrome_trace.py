"""Traces are checked by the published rules of the Trace Event Format."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from delegraph.tools import RunControl, Setup, chrome_trace, record
from delegraph.tools.profiling.chrome_trace import write_chrome_trace
from support.by_name import ByName, sines
from support.recordings import TWO_RUNS, event, recorded, run

BRIEF = RunControl(runs=3, min_seconds=0, warmup_runs=1, warmup_seconds=0)
EXACT = 0.0005
"""Half a nanosecond, in microseconds: two times that differ by less are the same."""


def require_valid(trace: dict[str, Any]) -> None:
    """Check what viewers rely on: fields of each kind, names, nesting, pairs of arrows."""
    events = json.loads(json.dumps(trace, allow_nan=False))["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices, arrows = defaultdict(list), defaultdict(list)
    for entry in events:
        assert isinstance(entry["pid"], int)
        assert isinstance(entry["name"], str)
        if entry["ph"] == "M":
            assert isinstance(entry["args"], dict)
            continue
        assert entry["ts"] >= 0
        if entry["ph"] == "X":
            assert entry["dur"] >= 0
            assert (entry["pid"], entry["tid"]) in named
            slices[entry["pid"], entry["tid"]].append(entry)
        elif entry["ph"] in "sf":
            arrows[entry["cat"], entry["id"]].append(entry)
        else:
            assert entry["ph"] == "C"
            assert all(isinstance(value, int) for value in entry["args"].values())
    for track in slices.values():
        require_nesting(track)
    for pair in arrows.values():
        start, end = pair
        assert (start["ph"], end["ph"], end["bp"]) == ("s", "f", "e")
        assert start["ts"] <= end["ts"]
        for arrow in pair:
            track = slices[arrow["pid"], arrow["tid"]]
            assert any(
                e["ts"] <= arrow["ts"] + EXACT and arrow["ts"] <= e["ts"] + e["dur"] for e in track
            )


def require_nesting(track: list[dict[str, Any]]) -> None:
    """Check that slices, in the order of the file, are apart or inside of one another."""
    ends: list[float] = []
    last = 0.0
    for entry in track:
        assert entry["ts"] >= last
        last = entry["ts"]
        while ends and ends[-1] <= entry["ts"] + EXACT:
            ends.pop()
        assert not ends or entry["ts"] + entry["dur"] <= ends[-1] + EXACT
        ends.append(entry["ts"] + entry["dur"])


def test_a_trace_follows_the_rules() -> None:
    require_valid(chrome_trace(recorded(*TWO_RUNS)))


def test_a_trace_follows_the_rules_whatever_a_delegate_tells() -> None:
    parallel = [event("SIN", 0, at, 50, "by_name") for at in (110, 130, 150)]
    trace = chrome_trace(recorded(run(0, 1000, *parallel)))
    require_valid(trace)
    assert len({e["tid"] for e in trace["traceEvents"] if e["ph"] == "X"}) == 4


@pytest.mark.parametrize("runtime", ["delegraph", "litert"])
def test_traces_of_real_runs_follow_the_rules(runtime: Any, tmp_path: Path) -> None:
    model = tmp_path / "sines.tflite"
    model.write_bytes(sines())
    trace = chrome_trace(record(Setup(str(model), runtime, delegates=[ByName("SIN")]), None, BRIEF))
    require_valid(trace)
    counters = [entry for entry in trace["traceEvents"] if entry["ph"] == "C"]
    assert bool(counters) == (runtime == "delegraph")


def test_every_track_has_a_name_and_a_place() -> None:
    found = chrome_trace(recorded(*TWO_RUNS))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert names == {1: "invoke", 2: "delegate by_name"}
    places = {e["tid"]: e["args"]["sort_index"] for e in found if e["name"] == "thread_sort_index"}
    assert places == {1: 1, 2: 2}
    (process,) = [e for e in found if e["name"] == "process_name"]
    assert process["args"]["name"] == "delegraph sines.tflite"


def test_times_are_microseconds_that_keep_nanoseconds() -> None:
    found = chrome_trace(recorded(run(0, 1001, event("ADD", 1, 7, 12))))["traceEvents"]
    whole, add = (e for e in found if e["ph"] == "X")
    assert (whole["ts"], whole["dur"]) == (0.0, 1.001)
    assert (add["ts"], add["dur"]) == (0.007, 0.012)


def test_arrows_follow_the_values_that_cross() -> None:
    found = chrome_trace(recorded(*TWO_RUNS))["traceEvents"]
    starts = sorted((e["ts"], e["tid"]) for e in found if e["ph"] == "s")
    assert starts[:3] == [(0.199, 2), (0.499, 1), (0.699, 2)]  # inside of the slices
    ends = sorted((e["ts"], e["tid"]) for e in found if e["ph"] == "f")
    assert ends[:3] == [(0.3, 1), (0.5, 2), (0.7, 1)]


def test_a_file_says_what_ran(tmp_path: Path) -> None:
    model = tmp_path / "sines.tflite"
    model.write_bytes(sines())
    path = tmp_path / "trace.json"
    write_chrome_trace(path, record(Setup(str(model), delegates=[ByName("SIN")]), control=BRIEF))
    trace = json.loads(path.read_text(encoding="utf-8"))
    require_valid(trace)
    assert trace["otherData"]["setup"] == "sines.tflite, ByName"
    assert "allocate" in trace["otherData"]["initialization_ms"]
