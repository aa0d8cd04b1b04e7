"""Files are checked by the published schema of speedscope, and by what its importer asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delegraph.tools.profiling.speedscope import SCHEMA, speedscope, write_speedscope
from support.recordings import TWO_RUNS, event, recorded, run


def require_valid(file: dict[str, Any]) -> None:
    """Check the fields that the schema asks for, and that events are ordered and balanced."""
    assert file["$schema"] == SCHEMA
    frames = file["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        assert profile["type"] == "evented"
        assert isinstance(profile["name"], str)
        assert profile["unit"] == "nanoseconds"
        opened: list[int] = []
        last = profile["startValue"]
        for entry in profile["events"]:
            assert last <= entry["at"] <= profile["endValue"]
            last = entry["at"]
            assert 0 <= entry["frame"] < len(frames)
            if entry["type"] == "O":
                opened.append(entry["frame"])
            else:
                assert entry["type"] == "C"
                assert opened.pop() == entry["frame"]
        assert opened == []


def test_runs_nodes_and_insides_are_one_in_the_other() -> None:
    file = speedscope(recorded(*TWO_RUNS))
    require_valid(file)
    (profile,) = file["profiles"]
    names = [frame["name"] for frame in file["shared"]["frames"]]
    told = [(e["type"], names[e["frame"]], e["at"]) for e in profile["events"]]
    assert told[:6] == [
        ("O", "run", 0),
        ("O", "by_name [node 5]", 100),
        ("O", "SIN [node 0]", 110),
        ("C", "SIN [node 0]", 190),
        ("C", "by_name [node 5]", 200),
        ("O", "ADD [node 1]", 300),
    ]
    assert (profile["startValue"], profile["endValue"]) == (0, 3200)


def test_a_frame_is_the_same_in_all_runs() -> None:
    names = [frame["name"] for frame in speedscope(recorded(*TWO_RUNS))["shared"]["frames"]]
    assert len(names) == len(set(names)) == 7


def test_what_runs_at_a_time_is_in_further_profiles() -> None:
    parallel = [event("SIN", 0, at, 50, "by_name") for at in (110, 130)]
    file = speedscope(recorded(run(0, 1000, *parallel)))
    require_valid(file)
    assert len(file["profiles"]) == 2


def test_an_end_that_is_also_a_beginning_is_told_first() -> None:
    file = speedscope(recorded(run(0, 100, event("ADD", 1, 0, 50), event("MUL", 2, 50, 50))))
    require_valid(file)
    kinds = [(e["type"], e["at"]) for e in file["profiles"][0]["events"]]
    assert kinds == [("O", 0), ("O", 0), ("C", 50), ("O", 50), ("C", 100), ("C", 100)]


def test_the_file_is_json(tmp_path: Path) -> None:
    path = tmp_path / "profile.speedscope.json"
    write_speedscope(path, recorded(*TWO_RUNS))
    require_valid(json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail))
