from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from delegraph.tools import InputRequest, RunControl, Setup, op_profile
from delegraph.tools.profiling.op_profile import COLUMNS, OpProfile, profile_of
from support.by_name import doubling_while
from support.recordings import ADD, FIRST_PARTITION, LAST, MUL, TWO_RUNS, event, recorded, run

NS = 1e-9
BRIEF = RunControl(runs=2, min_seconds=0, warmup_runs=1, warmup_seconds=0)
ONE = InputRequest(values=("1",))


def profile() -> OpProfile:
    return profile_of(recorded(*TWO_RUNS))


def test_nodes_are_in_run_order_with_the_mean_of_their_calls() -> None:
    main, _ = profile().sections
    assert [(n.node_type, n.node_index, n.run_order) for n in main.nodes] == [
        ("by_name", 5, 0),
        ("ADD", ADD, 1),
        ("MUL", MUL, 2),
        ("by_name", 6, 3),
        ("ADD", LAST, 4),
    ]
    first = main.nodes[0]
    assert first.calls.mean == pytest.approx(125 * NS)
    assert (first.calls.first, first.calls.max) == (
        pytest.approx(100 * NS),
        pytest.approx(150 * NS),
    )
    assert first.times_called == 1
    assert (first.delegate, first.partition, first.model_nodes) == ("by_name", 0, (0,))


def test_a_name_is_that_of_the_outputs_and_the_index() -> None:
    found = recorded(*TWO_RUNS)
    output = found.model.subgraphs[0].operators[LAST].outputs[0]
    name = found.model.subgraphs[0].tensors[output].name
    last = profile_of(found).sections[0].nodes[-1]
    assert last.name == f"[{name}]:{LAST}"
    assert last.output_bytes == 4 * (output + 1)


def test_the_inside_of_a_delegate_is_not_counted_twice() -> None:
    found = profile()
    main, inside = found.sections
    assert main.seconds == pytest.approx((600 + 770) / 2 * NS)
    assert (inside.delegate, inside.subgraph) == ("by_name", None)
    assert inside.seconds == pytest.approx(100 * NS)
    assert found.outside == pytest.approx((1000 + 1200 - 600 - 770) / 2 * NS)


def test_time_in_which_nodes_overlap_is_saved_and_not_outside() -> None:
    assert profile().saved == 0
    overlapping = run(
        0,
        1000,
        event("by_name", FIRST_PARTITION, 100, 600, "by_name"),
        event("ADD", ADD, 200, 300),
        event("MUL", MUL, 600, 200),
    )
    found = profile_of(recorded(overlapping))
    assert found.sections[0].seconds == pytest.approx(1100 * NS)
    assert found.saved == found.to_json()["saved_seconds"] == pytest.approx(400 * NS)
    assert found.outside == pytest.approx(300 * NS)


def test_types_are_summed_the_slowest_first() -> None:
    kinds = profile().sections[0].by_type()
    assert [(k.node_type, k.count, k.times_called) for k in kinds] == [
        ("by_name", 2, 2),
        ("ADD", 2, 2),
        ("MUL", 1, 1),
    ]
    assert kinds[0].seconds == pytest.approx(325 * NS)


def test_shares_add_up_in_the_order_of_the_rows() -> None:
    main = profile().sections[0]
    slowest = main.by_time()
    assert [n.node_index for n in slowest][:2] == [6, LAST]
    shares = main.shares(slowest)
    assert shares[0][0] == pytest.approx(200 / 685)
    assert shares[0][0] == shares[0][1]
    assert shares[-1][1] == pytest.approx(1)


def test_one_slow_run_changes_neither_order_nor_sums() -> None:
    """The third run was disturbed while ADD ran."""
    runs = [
        run(at, 200, event("ADD", ADD, at, add), event("MUL", MUL, at + 100, 30))
        for at, add in ((0, 10), (300, 10), (600, 190))
    ]
    found = profile_of(recorded(*runs))
    (main,) = found.sections
    assert [node.node_type for node in main.by_time()] == ["MUL", "ADD"]
    assert main.shares(main.by_time())[0][0] == pytest.approx(30 / 40)
    assert main.seconds == pytest.approx(40 * NS)
    assert [kind.seconds for kind in main.by_type()] == pytest.approx([30 * NS, 10 * NS])
    assert found.outside == pytest.approx(160 * NS)
    assert found.saved == 0


def test_the_time_of_a_partition_beside_its_rows_is_told() -> None:
    found = profile()
    inside = found.sections[1]
    assert found.between_rows(inside) == pytest.approx((125 - 100) * NS)  # of the one that tells


def test_a_node_that_is_called_several_times_a_run_counts_each_call() -> None:
    calls = [event("ADD", ADD, at, 10) for at in (0, 20, 40)]
    (main,) = profile_of(recorded(run(0, 100, *calls), run(200, 100))).sections
    (node,) = main.nodes
    assert node.calls.count == 3
    assert node.times_called == 1.5
    assert node.seconds == pytest.approx(15 * NS)


def test_run_order_is_that_of_the_beginnings() -> None:
    """Events come when they end; an operator that calls others ends after them."""
    events = event("ADD", ADD, 50, 10), event("MUL", MUL, 20, 70)
    (main,) = profile_of(recorded(run(0, 100, *events))).sections
    assert [node.node_type for node in main.nodes] == ["MUL", "ADD"]


def test_fused_nodes_are_one_row() -> None:
    fused = event("MUL+SIN", MUL, 0, 10, "by_name", (3,))
    found = recorded(run(0, 100, fused), ops=("SIN", "ADD", "MUL"))
    (section,) = profile_of(found).sections
    assert section.nodes[0].model_nodes == (MUL, 3)


def test_other_subgraphs_have_sections_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(doubling_while())
    found = op_profile(Setup(str(path), delegates=("none",)), ONE, BRIEF)
    assert [section.subgraph for section in found.sections] == [0, 1, 2]
    body = found.sections[2]
    assert body.nodes[0].times_called > 1
    assert body.seconds < found.sections[0].seconds


def test_csv_has_a_row_for_each_node_and_json_is_plain() -> None:
    found = profile()
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["node"] for row in rows] == ["5", "1", "2", "6", "4", "0"]
    assert float(rows[0]["avg_ms"]) == pytest.approx(0.000125)
    assert rows[-1]["section"] == "inside of by_name"
    shown = json.loads(json.dumps(found.to_json()))
    assert shown["sections"][0]["by_type"][-1]["cdf"] == pytest.approx(1)
    assert shown["sections"][0]["nodes"][0]["share"] == pytest.approx(125 / 685)


def test_litert_says_what_it_does_not_tell(tmp_path: Path) -> None:
    path = tmp_path / "loop.tflite"
    path.write_bytes(doubling_while())
    found = op_profile(Setup(str(path), "litert", delegates=("none",)), ONE, BRIEF)
    assert found.sections == ()
    assert found.outside == pytest.approx(found.runs.median)
    assert "LiteRT does not tell" in found.notes[0]
