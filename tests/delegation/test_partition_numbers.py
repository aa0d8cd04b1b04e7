from __future__ import annotations

from delegraph.delegation.partition_numbers import default_delegate_last, placement_of_subgraphs
from delegraph.delegation.placement import Crossing, NodePlacement, PartitionPlacement, Placement

OWNERS = ["cpu", "npu", "cpu", "npu"]
PLACEMENT = Placement(
    tuple(NodePlacement(i // 2, i, "ADD", owner, i) for i, owner in enumerate(OWNERS)),
    tuple(
        PartitionPlacement(
            i // 2, owner, i, 9 + i, (i,), (), (), overlaps=(3 - i,), is_by_default=owner == "cpu"
        )
        for i, owner in enumerate(OWNERS)
    ),
    ("npu", "cpu"),
    (Crossing(0, 1, "x", 4, 0, 1), Crossing(1, 2, "y", 4, None, 2)),
    default_delegate="cpu",
)


def test_partitions_of_the_default_delegate_have_the_last_numbers() -> None:
    found = default_delegate_last(PLACEMENT)
    assert [(p.index, p.delegate, p.nodes, p.overlaps) for p in found.partitions] == [
        (0, "npu", (1,), (3,)),
        (1, "npu", (3,), (2,)),
        (2, "cpu", (0,), (1,)),
        (3, "cpu", (2,), (0,)),
    ]
    assert [node.partition for node in found.nodes] == [2, 0, 3, 1]
    assert [(c.source, c.target) for c in found.crossings] == [(2, 0), (None, 3)]
    assert default_delegate_last(found) is found


def test_a_part_of_the_subgraphs_has_its_partitions_only() -> None:
    found = placement_of_subgraphs(PLACEMENT, {1})
    assert [(p.index, p.nodes, p.overlaps) for p in found.partitions] == [
        (0, (2,), ()),
        (1, (3,), ()),
    ]
    assert [(c.source, c.target) for c in found.crossings] == [(None, 0)]
