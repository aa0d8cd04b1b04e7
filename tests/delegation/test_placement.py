"""Reasons and sums of a placement; those of real models are tested beside the runtime."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delegraph import Rejection
from delegraph.delegation.placement import (
    Crossing,
    NodePlacement,
    PartitionPlacement,
    Placement,
    reason_in_words,
    refusals_in_words,
)

OP = Rejection("op", actual="ADD", expected="SIN")


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (NodePlacement(0, 0, "ADD", rejections={"npu": OP}), "op: is ADD, needs SIN"),
        (NodePlacement(0, 0, "ADD", "gpu", 0, {"npu": OP}), "op: is ADD, needs SIN"),
        (NodePlacement(0, 0, "ADD", "gpu", 0), "gpu has it"),
        (NodePlacement(0, 0, "ADD"), "no reason given"),
    ],
    ids=["refused", "refused, then taken", "taken before", "silent"],
)
def test_why_a_delegate_does_not_run_a_node(node: NodePlacement, reason: str) -> None:
    assert reason_in_words(node, "npu") == reason


def test_refusals_of_several_delegates_are_one_phrase() -> None:
    node = NodePlacement(0, 0, "ADD", rejections={"npu": OP})
    assert refusals_in_words(node, ("npu", "gpu", "npu")) == (
        "npu says op: is ADD, needs SIN, gpu says no reason given"
    )
    assert refusals_in_words(node, ()) == "no delegate is applied"


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ((), "0 nodes: 0 stay with Delegraph's kernels"),
        ((NodePlacement(0, 0, "ADD"),), "1 node: 1 stays with Delegraph's kernels"),
        ((NodePlacement(0, 0, "Odd", is_unresolved=True),), "1 node: 1 that nothing can run"),
        (
            (NodePlacement(0, 0, "edgetpu-custom-op", plugin="edgetpu"),),
            "1 node: 1 runs on kernels of plugin edgetpu",
        ),
        (
            (NodePlacement(0, 0, "ADD"), NodePlacement(0, 1, "Odd", plugin="odd")),
            "2 nodes: 1 stays with Delegraph's kernels, 1 runs on kernels of plugin odd",
        ),
    ],
)
def test_counts_agree_with_their_nouns(nodes: tuple[NodePlacement, ...], text: str) -> None:
    assert str(Placement(nodes, ())) == text


@pytest.mark.parametrize(
    ("owners", "delegates", "text"),
    [
        (
            ["npu", "cpu", None],
            ("npu", "cpu"),
            "3 nodes: npu takes 1 in 1 partition; the rest: 1 on cpu (by default), "
            "1 on Delegraph's kernels",
        ),
        (["npu"], ("npu", "cpu"), "1 node: npu takes 1 in 1 partition"),
        (
            ["npu", "cpu"],
            ("npu", "cpu"),
            "2 nodes: npu takes 1 in 1 partition; the rest: cpu, by default",
        ),
        ([None], ("npu", "cpu"), "1 node: npu takes none, 1 stays with Delegraph's kernels"),
        (["cpu"], ("cpu",), "1 node: cpu takes 1 in 1 partition"),
    ],
    ids=["both", "nothing left", "all of the rest", "neither", "nothing asked for"],
)
def test_the_default_delegate_has_the_rest_beside_what_is_asked_for(
    owners: list[str | None], delegates: tuple[str, ...], text: str
) -> None:
    placement = placed_by_default(owners, delegates)
    assert str(placement) == text
    assert placement.requested_delegates == tuple(d for d in delegates if d != "cpu")


def placed_by_default(owners: list[str | None], delegates: tuple[str, ...]) -> Placement:
    """Return a placement of one node a partition, in which ``cpu`` is the default delegate."""
    nodes = [
        NodePlacement(0, i, "ADD", owner, i if owner else None, is_by_default=owner == "cpu")
        for i, owner in enumerate(owners)
    ]
    partitions = [
        PartitionPlacement(0, owner, i, 9 + i, (i,), (), (), is_by_default=owner == "cpu")
        for i, owner in enumerate(owners)
        if owner
    ]
    return Placement(tuple(nodes), tuple(partitions), delegates, default_delegate="cpu")


def test_what_the_default_delegate_runs_was_left_by_those_asked_for() -> None:
    told = placed_by_default(["npu", "cpu"], ("npu", "cpu")).to_json()
    assert [list(node["rejections"]) for node in told["nodes"]] == [[], ["npu"]]
    assert told["nodes"][1]["rejections"]["npu"]["constraint"] == "no-reason"
    assert (told["default_delegate"], told["totals"]["by_default"]) == ("cpu", 1)


def test_the_default_delegate_takes_nothing_in_sums_and_tables() -> None:
    placement = placed_by_default(["cpu", "npu"], ("npu", "cpu"))
    crossings = (Crossing(0, 5, "x", 8, None, 0), Crossing(0, 6, "y", 4, 0, 1))
    placement = replace(placement, crossings=crossings)
    told = placement.to_json()["totals"]
    assert (told["delegated"], told["by_default"], told["partitions"]) == (1, 1, 1)
    assert (told["crossings"], told["crossing_bytes"]) == (1, 4)
    others = placement.to_json()["default_totals"]
    assert (others["partitions"], others["crossings"], others["crossing_bytes"]) == (1, 1, 8)
    assert [row["is_delegated"] for row in placement.rows()] == [False, True]
    assert '<td style="text-align:left">cpu, by default</td>' in placement._repr_html_()


def test_a_note_stands_behind_what_its_delegate_takes() -> None:
    nodes = (NodePlacement(0, 0, "ADD", "npu", 0), NodePlacement(0, 1, "ADD"))
    placement = Placement(nodes, (), ("npu", "gpu"), notes={"npu": "within 1 unit", "gpu": "slow"})
    assert str(placement) == (
        "2 nodes: npu takes 1 in 0 partitions (within 1 unit), gpu takes none, "
        "1 stays with Delegraph's kernels"
    )
    assert placement.to_json()["notes"] == {"npu": "within 1 unit", "gpu": "slow"}
    assert "(quarantined; within 1 unit)" in str(replace(placement, quarantined=("npu",)))
