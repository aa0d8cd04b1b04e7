"""Converts the lifetimes of a graph's tensors to usage records, for planners."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from delegraph.graph.lifetimes import Lifetime, tensor_lifetimes
from delegraph.graph.model import SubgraphSpec
from delegraph.memory.arena_planner import PlannerGraph, TensorKind
from delegraph.memory.best_fit import align
from delegraph.memory.declared_graph import DeclaredGraph
from delegraph.memory.records import TensorUsageRecord


def usage_records(
    graph: PlannerGraph | SubgraphSpec,
    *,
    alignment: int = 1,
    keep_inputs: bool = False,
    root_of: Callable[[int], int] | None = None,
) -> tuple[list[TensorUsageRecord], list[int]]:
    """Return usage records of all tensors in the shared arena, and the tensors' indices.

    A tensor is in use from the node that writes it, or the first node for a graph input. Its use
    ends at the last node that reads it, or the last node of the plan for a graph output. The use
    ends later if an asynchronous node may still read the tensor. Constants, variables, strings and
    empty tensors are omitted. Records are sorted by first task, as strategies require.

    Args:
        graph: subgraph of an interpreter, with delegates applied, or a declared subgraph.
        alignment: sizes are rounded up to a multiple of this number of bytes, so that tensors
            packed without gaps are aligned.
        keep_inputs: whether graph inputs and unread tensors are in use to the end, as in TFLite.
        root_of: function that returns the tensor (root) whose memory a tensor uses, such as
            ``ArenaPlanner.shared_root``; tensors with one root share one record.

    >>> from types import SimpleNamespace
    >>> from delegraph.memory.arena_planner import PlanNode
    >>> graph = SimpleNamespace(
    ...     nodes=[PlanNode([0], [1]), PlanNode([1], [2])], inputs=[0], outputs=[2],
    ...     tensor_bytes=lambda i: 10 * i + 10, tensor_kind=lambda i: TensorKind.ARENA_RW)
    >>> records, tensors = usage_records(graph)
    >>> [tuple(record) for record in records], tensors
    ([(10, 0, 0), (20, 0, 1), (30, 1, 1)], [0, 1, 2])
    """
    if isinstance(graph, SubgraphSpec):
        graph = DeclaredGraph(graph)
    lifetimes = dict(_lifetimes(graph))
    if keep_inputs:
        read = {tensor for node in graph.nodes for tensor in (*node.inputs, *node.temporaries)}
        for tensor in lifetimes.keys() - read | lifetimes.keys() & set(graph.inputs):
            # A tensor that shares memory ends with its root.
            if root_of is None or root_of(tensor) == tensor:
                lifetimes[tensor] = lifetimes[tensor]._replace(last=max(len(graph.nodes) - 1, 0))
    if root_of is not None:
        lifetimes = _merged(lifetimes, root_of)
    tensors = sorted(lifetimes, key=lambda tensor: (lifetimes[tensor].first, tensor))
    records = [
        TensorUsageRecord(align(graph.tensor_bytes(tensor), alignment), *lifetimes[tensor])
        for tensor in tensors
    ]
    return records, tensors


def _lifetimes(graph: PlannerGraph) -> Iterator[tuple[int, Lifetime]]:
    """Yield the tensors of *graph*'s arena, and its temporaries, with their lifetimes."""
    end = max(len(graph.nodes) - 1, 0)
    held = {tensor: position for position, node in enumerate(graph.nodes) for tensor in node.held}
    there = {tensor for node in graph.nodes for tensor in node.outputs} | set(graph.inputs)
    for tensor, (first, last) in tensor_lifetimes(graph.nodes, graph.inputs, graph.outputs).items():
        if tensor in there and _needs_place(graph, tensor):
            last = max(last, held.get(tensor, 0))
            yield tensor, Lifetime(max(first, 0), min(last, end))
    for position, node in enumerate(graph.nodes):
        for tensor in node.temporaries:
            if _needs_place(graph, tensor):
                yield tensor, Lifetime(position, position)


def _needs_place(graph: PlannerGraph, tensor: int) -> bool:
    return graph.tensor_kind(tensor) is TensorKind.ARENA_RW and graph.tensor_bytes(tensor) > 0


def _merged(lifetimes: dict[int, Lifetime], root_of: Callable[[int], int]) -> dict[int, Lifetime]:
    """Return *lifetimes* joined by root: from the first begin to the last end of its tensors.

    *root_of* maps each tensor to its root, whose memory it uses.
    """
    merged: dict[int, Lifetime] = {}
    for tensor, lifetime in lifetimes.items():
        root = root_of(tensor)
        known = merged.get(root, lifetime)
        merged[root] = Lifetime(min(known.first, lifetime.first), max(known.last, lifetime.last))
    return merged
