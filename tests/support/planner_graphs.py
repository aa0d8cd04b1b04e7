"""Graphs as memory planners see them, written down as lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from delegraph.memory.arena_planner import ArenaPlanner, PlannerGraph, PlanNode, TensorKind


@dataclass
class Graph:
    """Subgraph of tensors with sizes in bytes; their allocation type is the arena by default."""

    nodes: list[PlanNode]
    inputs: list[int]
    outputs: list[int]
    sizes: list[int]
    variables: list[int] = field(default_factory=list)
    kinds: dict[int, TensorKind] = field(default_factory=dict)

    @property
    def num_tensors(self) -> int:
        return len(self.sizes)

    def tensor_bytes(self, index: int) -> int:
        return self.sizes[index]

    def tensor_kind(self, index: int) -> TensorKind:
        return self.kinds.get(index, TensorKind.ARENA_RW)


def planned(graph: PlannerGraph, **options: Any) -> ArenaPlanner:
    """Return a planner that has placed all tensors."""
    planner = ArenaPlanner(graph, **options)
    planner.plan_allocations()
    planner.execute_allocations(0, max(len(graph.nodes) - 1, 0))
    return planner
