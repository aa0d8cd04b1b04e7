from __future__ import annotations

import pytest

from delegraph.memory.arena_planner import ArenaPlanner, PlanNode, TensorKind
from delegraph.memory.arena_text import arena_dump, ranges
from support.planner_graphs import Graph


def planner(sizes, nodes, variables=()):
    kinds = dict.fromkeys(variables, TensorKind.ARENA_RW_PERSISTENT)
    made = [PlanNode(*node) for node in nodes]
    return ArenaPlanner(Graph(made, [0], [len(sizes) - 1], sizes, list(variables), kinds))


def test_each_arena_with_places_has_its_section():
    planned = planner([100, 8, 40, 100], [([0, 1], [2]), ([2], [3])], variables=[1])
    planned.plan_allocations()
    planned.execute_allocations(0, 1)
    # whole-life tensors first: 0 at 0; then 3 (100 bytes) at 128, and 2 (40 bytes) behind it
    assert arena_dump(planned).splitlines() == [
        "kTfLiteArenaRw Dump:",
        "Total memory usage: 296 bytes, 3 tensors",
        "tensor 0: life_span: node [0, 1], size: 100 bytes, offset: 0",
        "tensor 2: life_span: node [0, 1], size: 40 bytes, offset: 256",
        "tensor 3: life_span: node [1, 1], size: 100 bytes, offset: 128",
        "Largest tensors, of 100 bytes: 0,3",
        "node 0: 140 bytes, utilization 47.3%, live tensors: 0,2",
        "node 1: 240 bytes, utilization 81.1%, live tensors: 0,2,3",
        "Top 2 nodes: 1 (240 bytes), 0 (140 bytes)",
        "kTfLiteArenaRwPersistent Dump:",
        "Total memory usage: 8 bytes, 1 tensors",
        "tensor 1: life_span: node [0, 1], size: 8 bytes, offset: 0",
        "Largest tensors, of 8 bytes: 1",
        "node 0: 8 bytes, utilization 100.0%, live tensors: 1",
        "node 1: 8 bytes, utilization 100.0%, live tensors: 1",
        "Top 2 nodes: 0 (8 bytes), 1 (8 bytes)",
    ]


def test_a_plan_without_places_has_nothing_to_tell():
    planned = planner([100, 100], [([0], [1])])
    planned.plan_allocations()
    assert arena_dump(planned) == ""


def test_only_the_five_fullest_nodes_are_named():
    planned = planner([64] * 8, [([i], [i + 1]) for i in range(7)])
    planned.plan_allocations()
    planned.execute_allocations(0, 6)
    last = arena_dump(planned).splitlines()[-1]
    assert last.startswith("Top 5 nodes: 1 (192 bytes), 2 (192 bytes), 3 (192 bytes)")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([4, 5], "4,5"), ([4, 5, 6], "4-6"), ([1, 3, 4, 5, 9], "1,3-5,9")],
)
def test_three_neighbours_are_a_range(numbers, text):
    assert ranges(numbers) == text
