from __future__ import annotations

import json
from pathlib import Path

import pytest

from delegraph.tools.profiling.node_files import (
    delegate_data,
    latency_data,
    rejection_data,
    write_node_files,
)
from delegraph.tools.profiling.op_profile import profile_of
from delegraph.tools.profiling.recording import Recording
from support.recordings import ADD, LAST, MUL, SIN_0, SIN_3, TWO_RUNS, event, recorded, run


def latency(recording: Recording) -> dict[int, float | str]:
    data = latency_data(profile_of(recording), recording)
    return {index: value for (_, index), value in data.values.items()}


def test_a_node_has_its_microseconds_a_run() -> None:
    found = latency(recorded(*TWO_RUNS))
    assert found[ADD] == pytest.approx(0.060)
    assert found[SIN_0] == pytest.approx(0.100)  # told from inside of the partition
    assert found[LAST] == pytest.approx(0.200)


def test_a_partition_that_tells_a_sum_only_says_so_at_its_nodes() -> None:
    found = latency(recorded(*TWO_RUNS))
    assert found[SIN_3] == "partition 1: 0.2 us together"
    assert set(found) == {SIN_0, ADD, MUL, SIN_3, LAST}


def test_nodes_that_are_computed_together_have_the_time_once() -> None:
    fused = event("MUL+SIN", MUL, 0, 10, "by_name", (SIN_3,))
    alone = event("SIN", SIN_0, 20, 10, "by_name")
    whole = event("by_name", 5, 0, 100, "by_name")
    found = latency(recorded(run(0, 100, fused, alone, whole), ops=("SIN", "ADD", "MUL")))
    assert found[MUL] == pytest.approx(0.010)
    assert found[SIN_3] == f"with node {MUL}"
    assert ADD not in found  # nothing is told of it


def test_delegates_and_reasons_are_those_of_the_placement() -> None:
    placement = recorded(*TWO_RUNS).placement
    delegates = {index: value for (_, index), value in delegate_data(placement).values.items()}
    assert delegates == {0: "by_name", 1: "Delegraph", 2: "Delegraph", 3: "by_name", 4: "Delegraph"}
    reasons = {index: value for (_, index), value in rejection_data(placement).values.items()}
    assert reasons == {
        1: "by_name: op: is ADD, needs SIN",
        2: "by_name: op: is MUL, needs SIN",
        4: "by_name: op: is ADD, needs SIN",
    }


def test_files_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    files = write_node_files(tmp_path / "a" / "nodes", recorded(*TWO_RUNS))
    assert [path.name for path in files] == ["latency_us.json", "delegate.json", "rejection.json"]
    shown = json.loads(files[0].read_text())
    (graph,) = shown.values()
    assert graph["results"]["1"]["value"] == pytest.approx(0.06)
    assert graph["results"]["3"]["value"].startswith("partition 1")
    assert "gradient" in graph
