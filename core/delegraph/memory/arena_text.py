"""An arena plan as text, for logs and bug reports.

Source:
    DumpArenaInfo, tflite/simple_memory_arena_debug_dump.cc. The facts are the same, except that a
    life span never exceeds the plan here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delegraph.memory.arena import Allocation
from delegraph.memory.arena_planner import ArenaPlanner, TensorKind

_TITLES = {
    TensorKind.ARENA_RW: "kTfLiteArenaRw",
    TensorKind.ARENA_RW_PERSISTENT: "kTfLiteArenaRwPersistent",
}
_TOP = 5


def arena_dump(planner: ArenaPlanner) -> str:
    """Return text about each arena of *planner* that contains tensors.

    The text lists all tensors with lifetime, size and offset; the largest tensors; the live tensors
    at each node; and the five nodes with most live bytes. Utilization is the ratio of live bytes to
    bytes of the plan.

    >>> from types import SimpleNamespace
    >>> from delegraph.memory.arena_planner import PlanNode
    >>> graph = SimpleNamespace(
    ...     nodes=[PlanNode([0], [1]), PlanNode([1], [2])], inputs=[0], outputs=[2], variables=[],
    ...     num_tensors=3, tensor_bytes=lambda i: 64, tensor_kind=lambda i: TensorKind.ARENA_RW)
    >>> planner = ArenaPlanner(graph)
    >>> planner.plan_allocations()
    >>> _ = planner.execute_allocations(0, 1)
    >>> print(arena_dump(planner))
    kTfLiteArenaRw Dump:
    Total memory usage: 192 bytes, 3 tensors
    tensor 0: life_span: node [0, 1], size: 64 bytes, offset: 0
    tensor 1: life_span: node [0, 1], size: 64 bytes, offset: 64
    tensor 2: life_span: node [1, 1], size: 64 bytes, offset: 128
    Largest tensors, of 64 bytes: 0-2
    node 0: 128 bytes, utilization 66.7%, live tensors: 0,1
    node 1: 192 bytes, utilization 100.0%, live tensors: 0-2
    Top 2 nodes: 1 (192 bytes), 0 (128 bytes)
    """
    end = max(len(planner.graph.nodes) - 1, 0)
    texts = []
    for kind, title in _TITLES.items():
        blocks = [b._replace(last_node=min(b.last_node, end)) for b in planner.placed(kind)]
        if blocks:
            texts.append("\n".join((f"{title} Dump:", *_lines(blocks, end + 1))))
    return "\n".join(texts)


def _lines(blocks: Sequence[Allocation], nodes: int) -> Iterator[str]:
    total = max(block.offset + block.size for block in blocks)
    yield f"Total memory usage: {total} bytes, {len(blocks)} tensors"
    for block in blocks:
        span = f"[{block.first_node}, {block.last_node}]"
        place = f"size: {block.size} bytes, offset: {block.offset}"
        yield f"tensor {block.tensor}: life_span: node {span}, {place}"
    largest = max(block.size for block in blocks)
    names = ranges([block.tensor for block in blocks if block.size == largest])
    yield f"Largest tensors, of {largest} bytes: {names}"
    live_bytes = []
    for node in range(nodes):
        live = [block for block in blocks if block.first_node <= node <= block.last_node]
        live_bytes.append(sum(block.size for block in live))
        names = ranges([block.tensor for block in live])
        share = f"{live_bytes[-1] / total:.1%}"
        yield f"node {node}: {live_bytes[-1]} bytes, utilization {share}, live tensors: {names}"
    top = sorted(range(nodes), key=lambda node: -live_bytes[node])[:_TOP]
    fullest = ", ".join(f"{node} ({live_bytes[node]} bytes)" for node in top)
    yield f"Top {len(top)} nodes: {fullest}"


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, with ranges for three or more consecutive numbers.

    >>> ranges([1, 2, 3, 5, 6, 9])
    '1-3,5,6,9'
    """
    parts: list[str] = []
    start = 0
    for i in range(1, len(numbers) + 1):
        if i < len(numbers) and numbers[i] == numbers[i - 1] + 1:
            continue
        run = numbers[start:i]
        parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
        start = i
    return ",".join(parts)
