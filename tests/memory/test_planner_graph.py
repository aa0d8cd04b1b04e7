"""The last reads of memory, by which the planner decides what a node may overwrite."""

from __future__ import annotations

from delegraph.memory.planner_graph import LastReads, PlanNode


def test_absent_inputs_are_no_reads() -> None:
    reads = LastReads([PlanNode((0, -1), (1,)), PlanNode((0,), (2,)), PlanNode((-1,), ())], 3)
    assert reads.counts == [2, 0, 0]
    assert reads.of_memory == [1, -1, -1]


def test_what_asynchronous_nodes_may_still_read_is_read_by_the_node_at_hand() -> None:
    reads = LastReads([PlanNode((0,), (1,)), PlanNode((), (2,), held=(0,))], 3)
    assert reads.of_memory[0] == 1
    assert reads.forbid(0, 0, {})
    assert not reads.forbid(1, 0, {})
