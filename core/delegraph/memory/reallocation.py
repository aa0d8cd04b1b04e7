"""Finds which tensors can share memory in every possible order of the tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from delegraph.memory.arena_planner import PlanNode


def usage_graph(nodes: Sequence[PlanNode], tensors: Sequence[int]) -> list[list[int]]:
    """Return, for each of *tensors*, the tensors that nodes compute directly from it.

    The result has their positions in *tensors*, ascending.

    Args:
        nodes: nodes of the plan, in any order.
        tensors: indices of the tensors that share memory; see
            :func:`~delegraph.memory.usage.usage_records`.

    >>> usage_graph([PlanNode([5], [6]), PlanNode([6, 5], [7])], tensors=[5, 6, 7])
    [[1, 2], [2], []]
    """
    place = {tensor: i for i, tensor in enumerate(tensors)}
    graph: list[set[int]] = [set() for _ in tensors]
    for node in nodes:
        made = {place[tensor] for tensor in node.outputs if tensor in place}
        for tensor in node.inputs:
            if tensor in place:
                graph[place[tensor]] |= made
    return [sorted(row) for row in graph]


def reallocation_graph(dependencies: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return, for each tensor, the tensors that can share its memory in any task order.

    A tensor's memory is free once all tensors computed directly from it exist. So the memory can be
    reused by tensors that depend, directly or not, on each of these tensors. The result lists each
    pair for both of its tensors.

    Args:
        dependencies: for each tensor, the tensors that are computed from it; see
            :func:`usage_graph`.

    Source:
        ReallocationGraph, tflite/delegates/gpu/common/memory_management/types.cc.

    >>> reallocation_graph([[1, 2], [3], [3], [4], []])  # a fork that joins in 3
    [[3, 4], [4], [4], [0], [0, 1, 2]]
    """
    graph: list[list[int]] = [[] for _ in dependencies]
    for tensor, dependents in enumerate(dependencies):
        if not dependents:
            continue
        visits = np.zeros(len(dependencies), np.int64)
        for dependent in dependents:
            visits[_reached(dependent, dependencies)] += 1
        for other in np.flatnonzero(visits == len(dependents)).tolist():
            graph[tensor].append(other)
            graph[other].append(tensor)
    return [sorted(row) for row in graph]


def _reached(start: int, dependencies: Sequence[Sequence[int]]) -> list[int]:
    """Return the tensors that are computed from *start*, directly or through others.

    *dependencies* lists, for each tensor, the tensors that are computed from it.
    """
    seen = {start}
    queue = deque(seen)
    while queue:
        new = [tensor for tensor in dependencies[queue.popleft()] if tensor not in seen]
        seen.update(new)
        queue.extend(new)
    return [*seen - {start}]
