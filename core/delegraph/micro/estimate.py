"""How large the arena of a device must be, from the model alone."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.errors import ArenaTooSmallError
from delegraph.graph.model import Model
from delegraph.micro.allocator import MicroAllocator, PlannerKind
from delegraph.micro.kernel_memory import kernel_memory
from delegraph.micro.layout import Layout
from delegraph.micro.targets import ARENA_ALIGNMENT, TARGET_32, MicroTarget

_LARGEST = 2**40
_UNCERTAIN_SHARE = 0.03  # of the tail: what TFLM's own test lets its structures grow by
_UNKNOWN_KERNEL_SPREAD = 64  # bytes that a kernel that is not listed may take more or less


@dataclass(frozen=True, slots=True)
class ArenaEstimate:
    """Number of arena bytes that a model needs on a device, with the parts.

    Attributes:
        total_bytes: the smallest arena that does. It may be more than head and tail: while the plan
            is made, its working memory needs room too.
        head_bytes: the plan of tensors and scratch buffers; exact.
        tail_bytes: variables and structures, the latter estimated.
        uncertainty_bytes: how far the total may be off: 15 for the alignment of the arena's first
            byte, 3 % of the structures, and 64 for each operator whose kernel is not known.
        unknown_operators: names of those operators, sorted. What scratch memory they need is not
            known and not in the uncertainty.
    """

    total_bytes: int
    head_bytes: int
    tail_bytes: int
    uncertainty_bytes: int
    unknown_operators: tuple[str, ...]


def estimate_arena(
    model: Model, *, target: MicroTarget = TARGET_32, planner: PlannerKind = "greedy"
) -> ArenaEstimate:
    """Arena that *model* needs with TFLM's reference kernels.

    Args:
        model: the model.
        target: the device's structures.
        planner: ``"greedy"``, or ``"linear"`` to keep every tensor.

    Raises:
        MalformedModelError: its offline plan, or its calls, make no sense.
        StateError: more buffers than the linear planner takes.
    """
    head, tail = _parts(model, _LARGEST, target, planner)
    low, high = 0, 2 * (head + tail) + 4096 * (1 + _node_count(model))
    while low < high:
        middle = (low + high) // 2
        if _fits(model, middle, target, planner):
            high = middle
        else:
            low = middle + 1
    unknown = [
        operator.name
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if not kernel_memory(operator, subgraph.tensors, target).is_known
    ]
    spread = int(_UNCERTAIN_SHARE * tail) + _UNKNOWN_KERNEL_SPREAD * len(unknown)
    return ArenaEstimate(
        high, head, tail, ARENA_ALIGNMENT - 1 + spread, tuple(sorted(set(unknown)))
    )


def _node_count(model: Model) -> int:
    return sum(len(subgraph.operators) for subgraph in model.subgraphs)


def _fits(model: Model, size: int, target: MicroTarget, planner: PlannerKind) -> bool:
    try:
        _parts(model, size, target, planner)
    except ArenaTooSmallError:
        return False
    return True


def _parts(model: Model, size: int, target: MicroTarget, planner: PlannerKind) -> tuple[int, int]:
    """Lay the model out in an arena of *size* bytes on paper; return the bytes of head and tail."""
    allocator = MicroAllocator.create(size, planner=planner, target=target)
    layout = Layout(model, allocator)
    layout.start()
    nodes = [(s.index, operator) for s in model.subgraphs for operator in s.operators]
    for subgraph, operator in nodes:
        layout.init(subgraph, operator)
    for subgraph, operator in nodes:
        layout.prepare(subgraph, operator)
        layout.finish_prepare(operator)
    memory = layout.finish()
    return memory.planned_bytes, allocator.persistent_used_bytes
