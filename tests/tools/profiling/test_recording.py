from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delegraph.tools import RunControl, Setup, record
from delegraph.tools.profiling import recording as recording_module
from support.by_name import ByName, sines
from support.recordings import FIRST_PARTITION, SIN_0, TWO_RUNS, event, recorded
from support.signatures import two_signatures

BRIEF = RunControl(runs=3, min_seconds=0, warmup_runs=2, warmup_seconds=0)


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "sines.tflite"
    path.write_bytes(sines())
    return str(path)


def test_runs_hold_what_ran_in_them_and_the_warm_up_is_not_among_them(model: str) -> None:
    found = record(Setup(model, delegates=[ByName("SIN")]), control=BRIEF)
    assert len(found.runs) == 3
    for run in found.runs:
        assert [e.name for e in run.events] == ["by_name", "ADD", "MUL", "by_name", "ADD"]
        assert all(e.start >= run.start for e in run.events)
        assert all(e.start + e.duration <= run.start + run.duration for e in run.events)
    assert [stage.name for stage in found.stages][-1] == "allocate"
    assert found.placement.partitions[0].nodes == (0,)
    assert found.tensors[0, 0].bytes == 4 * found.tensors[0, 0].shape[0]


def test_no_more_runs_are_kept_than_a_viewer_can_open(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording_module, "MOST_EVENTS", 12)  # five a run
    assert len(record(Setup(model, delegates=("none",)), control=BRIEF).runs) == 2
    monkeypatch.setattr(recording_module, "MOST_EVENTS", 1)
    assert len(record(Setup(model, delegates=("none",)), control=BRIEF).runs) == 1


def test_it_runs_at_least_once(model: str) -> None:
    none = RunControl(runs=0, min_seconds=0, warmup_runs=0, warmup_seconds=0)
    assert len(record(Setup(model, delegates=("none",)), control=none).runs) == 1


def test_the_subgraph_of_the_signature_is_the_entry(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_signatures())
    found = record(Setup(str(path), delegates=("none",)), control=BRIEF, signature="wave")
    assert found.entry == 1
    assert {e.subgraph for run in found.runs for e in run.events} == {1}


def test_an_event_is_of_a_partition_or_inside_of_one_or_the_hosts() -> None:
    found = recorded(*TWO_RUNS)
    inner, whole, host, *_ = TWO_RUNS[0].events
    assert [found.is_inside(e) for e in (inner, whole, host)] == [True, False, False]
    assert [found.model_nodes(e) for e in (inner, whole, host)] == [(SIN_0,), (0,), (1,)]
    partition = found.partition(whole)
    assert partition is not None
    assert found.partition(inner) == partition
    assert found.partition(host) is None
    assert found.node(whole) is None
    assert found.borders(whole) == (partition.inputs, partition.outputs)
    operator = found.model.subgraphs[0].operators[1]
    assert found.borders(host) == (operator.inputs, operator.outputs)


def test_what_is_handed_on_inside_of_fused_nodes_is_not_at_their_border() -> None:
    found = recorded(*TWO_RUNS, ops=("SIN", "ADD", "MUL"))
    operators = found.model.subgraphs[0].operators
    inputs, outputs = found.borders(event("MUL+SIN", 2, 0, 1, "by_name", (3,)))
    assert set(inputs) == set(operators[2].inputs)
    assert outputs == operators[3].outputs


def notes(**how: Any) -> str:
    return " ".join(recorded(*TWO_RUNS, **how).notes())


def test_notes_say_what_is_missing() -> None:
    assert notes() == ""  # the first partition tells of its node
    untold = recorded(*(run_without_insides(run) for run in TWO_RUNS))
    assert list(untold.notes()) == [
        "by_name does not tell how long each node inside of its partitions takes"
    ]
    assert "LiteRT does not tell" in notes(runtime="litert")


def run_without_insides(run: Any) -> Any:
    kept = tuple(e for e in run.events if e.node_index >= FIRST_PARTITION or e.delegate is None)
    return type(run)(run.start, run.duration, kept)
