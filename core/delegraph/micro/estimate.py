"""Estimates the arena size that a model needs on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from delegraph.errors import ArenaTooSmallError
from delegraph.graph.model import Model
from delegraph.json_records import JsonRecord
from delegraph.micro.allocator import MicroAllocator, PlannerKind
from delegraph.micro.kernel_memory import kernel_memory
from delegraph.micro.layout import Layout
from delegraph.micro.supported_operators import unsupported_operators
from delegraph.micro.targets import ARENA_ALIGNMENT, TARGET_32, MicroTarget

_LARGEST = 2**40
_UNCERTAIN_SHARE = 0.03  # share by which structures may grow, from TFLM's test
_UNKNOWN_KERNEL_SPREAD = 64  # uncertainty of an unknown kernel's memory, in bytes


@dataclass(frozen=True, slots=True)
class ArenaEstimate(JsonRecord):
    """Arena bytes that a model needs on a device: the total, and its parts.

    Attributes:
        total_bytes: size of the smallest sufficient arena, a multiple of 16; the sum of head,
            tail and free bytes.
        head_bytes: size of the plan of tensors and scratch buffers; exact, unless ``is_least``.
        tail_bytes: size of variables (exact) and structures (estimated).
        free_bytes: number of bytes between head and tail, which the planner needs while it plans.
        uncertainty_bytes: largest expected error of the total: 15 bytes for the alignment of the
            arena, 3 % of the structures, and 64 bytes for each operator with an unknown kernel.
        unknown_operators: sorted names of the operators with unknown kernels. Their scratch memory
            is unknown and not included in the uncertainty.
        unsupported_operators: sorted operators that TFLM cannot run; with the types of the first
            inputs if it has the operator in other types. The sizes are those that the model would
            need if TFLM ran them.
        assumes: the device and kernels for which the sizes are, in words.
    """

    json_properties: ClassVar = {"is_least": "is_least"}

    total_bytes: int
    head_bytes: int
    tail_bytes: int
    free_bytes: int
    uncertainty_bytes: int
    unknown_operators: tuple[str, ...]
    unsupported_operators: tuple[str, ...]
    assumes: str

    @property
    def is_least(self) -> bool:
        """Whether head and total are only least numbers, because scratch memory is unknown."""
        return bool(self.unknown_operators)


def estimate_arena(
    model: Model, *, target: MicroTarget = TARGET_32, planner: PlannerKind = "greedy"
) -> ArenaEstimate:
    """Return the arena size that *model* needs with TFLM's reference kernels.

    Args:
        model: the model.
        target: sizes of TFLM's structures on the device.
        planner: ``"greedy"``, or ``"linear"`` to keep every tensor.

    Raises:
        MalformedModelError: the model's offline plan, or its calls of subgraphs, are invalid.
        StateError: the model has more buffers than the linear planner accepts.
    """
    head, tail = _parts(model, _LARGEST, target, planner)
    low, high = 0, (2 * (head + tail) + 4096 * (1 + _node_count(model))) // ARENA_ALIGNMENT
    while low < high:
        middle = (low + high) // 2
        if _fits(model, middle * ARENA_ALIGNMENT, target, planner):
            high = middle
        else:
            low = middle + 1
    total = high * ARENA_ALIGNMENT  # the tail's padding depends on where the arena ends
    unknown = [
        operator.name
        for subgraph in model.subgraphs
        for operator in subgraph.operators
        if not kernel_memory(operator, subgraph.tensors, target).is_known
    ]
    spread = int(_UNCERTAIN_SHARE * tail) + _UNKNOWN_KERNEL_SPREAD * len(unknown)
    return ArenaEstimate(
        total_bytes=total,
        head_bytes=head,
        tail_bytes=tail,
        free_bytes=total - head - tail,
        uncertainty_bytes=ARENA_ALIGNMENT - 1 + spread,
        unknown_operators=tuple(sorted(set(unknown))),
        unsupported_operators=unsupported_operators(model),
        assumes=f"a {target.bits}-bit target and TFLM's reference kernels; those of CMSIS-NN and "
        "ESP-NN need other scratch memory",
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
    """Allocate the model in *size* bytes without real memory; return bytes of head and tail.

    *target* has the sizes of TFLM's structures; *planner* is the kind of memory planner.
    """
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
