"""What ``networks.py`` computes of runs: differences, kept results, rows of means."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # where scripts find each other
import network_runs
import networks

from delegraph.errors import ArgumentError


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


def bytes_of(*values: int) -> Any:
    return np.array(values, np.int8)


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        ([floats(1, 4)], [floats(1, 2)], 1.0),
        ([floats(0.5)], [floats(0)], 0.5),
        ([bytes_of(-128, 5)], [bytes_of(127, 5)], 255.0),
        ([floats(2), bytes_of(3)], [floats(2), bytes_of(3)], 0.0),
        ([floats([1])], [floats(1)], None),
        ([], [], 0.0),
    ],
)
def test_differences_are_shares_for_floats_and_units_for_integers(
    found: Any, expected: Any, difference: float | None
) -> None:
    assert network_runs.difference(found, expected) == difference


def test_results_of_another_processor_are_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    assert networks.read_kept(path, {"numba_cpu": "generic"})["networks"] == []
    kept = networks.read_kept(None, {"numba_cpu": "generic"})
    networks.write_kept(path, kept)
    assert networks.read_kept(path, {"more": "avx2"})["levels"] == {
        "numba_cpu": "generic",
        "more": "avx2",
    }
    with pytest.raises(SystemExit, match="another processor"):  # which may have the same name
        networks.read_kept(path, {"numba_cpu": "avx2"})
    kept["machine"]["processor"]["name"] = "another"
    path.write_text(json.dumps(kept))
    with pytest.raises(SystemExit, match="another processor"):
        networks.read_kept(path, {})


def test_means_are_of_a_level_and_a_number_of_threads() -> None:
    def entry(name: str, threads: int, value: float | None) -> dict[str, Any]:
        ratio = None if value is None else {"value": value, "low": value, "high": value}
        return {
            "network": name,
            "threads": threads,
            "results": [{"runtime": "numba_cpu", "ratio": ratio}],
        }

    entries = [entry("a", 1, 0.5), entry("b", 1, 2.0), entry("c", 1, None), entry("a", 2, 3.0)]
    found = {row.what: row.value for row in networks.rows(entries, {"numba_cpu": "avx2"})}
    assert found == {
        "networks, avx2, 1 thread, mean of 2": pytest.approx(1.0),
        "networks, avx2, 1 thread: b": 2.0,
        "networks, avx2, 1 thread: a": 0.5,
        "networks, avx2, 2 threads, mean of 1": pytest.approx(3.0),
        "networks, avx2, 2 threads: a": 3.0,
    }


def test_roofs_take_the_place_of_those_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def roofs(model: Path) -> dict[str, Any]:
        if model.stem == "c":
            raise ArgumentError("numba_cpu takes no node")
        return {"network": model.stem, "operators": ["new"]}

    monkeypatch.setattr(networks, "roofs", roofs)
    kept: dict[str, Any] = {"roofs": [{"network": "b", "operators": ["old"]}]}
    for name in "bac":
        networks.add_roofs(kept, network_runs.Job(Path(f"{name}.tflite"), 1, {}, 1.0))
    assert kept["roofs"] == [{"network": name, "operators": ["new"]} for name in "ab"]
