from __future__ import annotations

import random
from itertools import combinations

from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import graph_model
from delegraph.tools.profiling.tracks import HOST, Slice, flows, lanes, tracks
from support.recordings import (
    ADD,
    LAST,
    MUL,
    SECOND_PARTITION,
    SIN_3,
    TWO_RUNS,
    event,
    recorded,
    run,
)


def test_the_host_has_a_track_and_each_delegate_another() -> None:
    host, delegate = tracks(recorded(*TWO_RUNS))
    assert (host.name, host.delegate) == (HOST, None)
    assert (delegate.name, delegate.delegate) == ("delegate by_name", "by_name")
    names = [one.name for one in host.slices]
    assert names == ["run 0", "ADD", "MUL", "ADD", "run 1", "ADD", "MUL", "ADD"]
    inside = [(one.name, one.start, one.end) for one in delegate.slices][:3]
    assert inside == [("by_name", 100, 200), ("SIN", 110, 190), ("by_name", 500, 700)]


def test_times_count_from_the_first_run() -> None:
    host, _ = tracks(recorded(*TWO_RUNS))
    assert (host.slices[0].start, host.slices[0].end) == (0, 1000)
    assert (host.slices[4].start, host.slices[4].end) == (2000, 3200)


def test_what_a_delegate_does_at_a_time_is_on_tracks_of_workers() -> None:
    """Slices of a track must nest, whatever a delegate tells."""
    parallel = [event("SIN", 0, at, 50, "by_name") for at in (110, 130, 150)]
    found = tracks(recorded(run(0, 1000, *parallel)))
    assert [track.name for track in found] == [
        HOST,
        "delegate by_name",
        "delegate by_name, worker 1",
        "delegate by_name, worker 2",
    ]


def test_lanes_hold_every_slice_once_and_nest() -> None:
    generator = random.Random(0)
    for _ in range(50):
        slices = []
        for number in range(generator.randrange(1, 30)):
            start = generator.randrange(50)
            slices.append(Slice(str(number), start, start + generator.randrange(20)))
        found = lanes(slices)
        assert sorted(one.name for lane in found for one in lane) == sorted(s.name for s in slices)
        for lane in found:
            for a, b in combinations(lane, 2):
                assert b.start >= a.start
                assert b.end <= a.end or b.start >= a.end or a.start == a.end


def test_arguments_say_what_a_slice_is() -> None:
    host, delegate = tracks(recorded(*TWO_RUNS))
    add, whole, inner = host.slices[1].args, delegate.slices[0].args, delegate.slices[1].args
    assert (add["node"], add["operator"]) == (ADD, "ADD")
    assert add["reason"] == "by_name says op: is ADD, needs SIN"
    assert add["inputs"] == "FLOAT32[4], FLOAT32[4]"
    assert add["bytes out"] > 0
    assert "delegate" not in add
    assert (whole["delegate"], whole["partition"], whole["model nodes"]) == ("by_name", 0, "0")
    assert (whole["bytes in"], whole["bytes out"]) == (16, 16)
    assert "reason" not in whole
    assert (inner["node"], inner["partition"]) == (0, 0)


def test_values_that_cross_a_boundary_flow_from_the_last_writer() -> None:
    found = recorded(*TWO_RUNS)
    all_flows = [
        (flow.source.name, flow.source.start, flow.target.name, flow.target.start)
        for flow in flows(found, tracks(found))
    ]
    assert sorted(all_flows, key=lambda flow: flow[1]) == [
        ("by_name", 100, "ADD", 300),
        ("MUL", 400, "by_name", 500),
        ("by_name", 500, "ADD", 700),
        ("by_name", 2100, "ADD", 2300),
        ("MUL", 2400, "by_name", 2500),
        ("by_name", 2500, "ADD", 2700),
    ]
    assert {flow.bytes for flow in flows(found, tracks(found))} == {16}


def test_a_value_flows_into_the_partition_and_not_into_what_is_told_of_its_inside() -> None:
    mul = event("MUL", MUL, 0, 10)
    inner = event("SIN", SIN_3, 25, 5, "by_name")
    whole = event("by_name", SECOND_PARTITION, 20, 20, "by_name")
    found = recorded(run(0, 100, mul, inner, whole))
    assert [flow.target.start for flow in flows(found, tracks(found))] == [20]


def test_a_value_flows_where_parties_change_only() -> None:
    """The host computes a, which the delegate reads, and the host itself, too."""
    content = graph_model(
        [("SIN", "x", "a"), ("MUL", "a a", "m", MulOptions()), ("ADD", "a m", "y", AddOptions())],
        inputs="x",
        outputs="y",
    )
    events = (
        event("SIN", 0, 0, 10),
        event("by_name", 3, 20, 10, "by_name"),
        event("ADD", 2, 40, 10),
    )
    found = recorded(run(0, 100, *events), ops=("MUL",), content=content)
    told = [(flow.tensor, flow.target.name) for flow in flows(found, tracks(found))]
    assert told == [("a", "by_name"), ("m", "ADD")]


def test_a_value_flows_between_partitions_of_one_delegate() -> None:
    content = graph_model(
        [("SIN", "x", "a"), ("COS", "a", "b"), ("ADD", "a b", "y", AddOptions())],
        inputs="x",
        outputs="y",
    )
    first = event("by_name", 3, 0, 10, "by_name")
    cos, second = event("COS", 1, 20, 10), event("by_name", 4, 40, 10, "by_name")
    found = recorded(run(0, 100, first, cos, second), ops=("SIN", "ADD"), content=content)
    told = [(f.tensor, f.source.start, f.target.start) for f in flows(found, tracks(found))]
    assert sorted(told) == [("a", 0, 20), ("a", 0, 40), ("b", 20, 40)]


def test_a_value_does_not_flow_back_in_time() -> None:
    found = recorded(run(0, 100, event("ADD", LAST, 0, 10)))
    assert list(flows(found, tracks(found))) == []
