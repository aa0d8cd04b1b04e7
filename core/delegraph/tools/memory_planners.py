"""The planners that memory reports compare, by name, and the plans that they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar

from delegraph.json_records import JsonRecord
from delegraph.memory import (
    ArenaPlanner,
    MemoryStrategy,
    OffsetsAssignment,
    PlannerGraph,
    TensorUsageRecord,
    assign_offsets_to_tensors,
    lower_bound,
    plan_best,
    plan_exactly,
    usage_records,
)
from delegraph.micro.planners import GreedyMemoryPlanner, LinearMemoryPlanner
from delegraph.tools.memory_peak import bytes_of

OWN = "delegraph"
"""Name of the runtime's own planner."""

TFLM = "tflm_greedy"
"""Name of the planner that TensorFlow Lite Micro uses by default."""

FOR_TFLM = (TFLM, "tflm_linear", "best")
"""Names of the planners whose plans TFLM can follow, the last one as an offline plan."""

IN_PLACE = (OWN, "tflite")
"""Names of the planners that let operators compute in place, so that tensors share bytes."""

Records = Sequence[TensorUsageRecord]
Plan = Callable[[Records, int], OffsetsAssignment]


def _strategy(strategy: MemoryStrategy) -> Plan:
    def plan(records: Records, alignment: int) -> OffsetsAssignment:
        sizes = [r._replace(size=-(-bytes_of(r) // alignment) * alignment) for r in records]
        return assign_offsets_to_tensors(sizes, strategy)

    return plan


def _micro(kind: type[GreedyMemoryPlanner] | type[LinearMemoryPlanner]) -> Plan:
    def plan(records: Records, alignment: int) -> OffsetsAssignment:
        planner = kind()
        for record in records:
            size = -(-bytes_of(record) // alignment) * alignment
            planner.add_buffer(size, record.first_task, record.last_task)
        offsets = [planner.offset_for_buffer(i) for i in range(len(records))]
        return OffsetsAssignment(offsets, planner.maximum_memory_size)

    return plan


_PLANS: Mapping[str, Plan] = {
    **{strategy.name.lower(): _strategy(strategy) for strategy in MemoryStrategy},
    TFLM: _micro(GreedyMemoryPlanner),
    "tflm_linear": _micro(LinearMemoryPlanner),
    "best": plan_best,
    "exact": plan_exactly,
}

PLANNERS = (*IN_PLACE, *_PLANS)
"""Names of the planners: the runtime's own, TFLite's, TFLite GPU's, TFLM's, and a search."""

COMPARED = tuple(name for name in PLANNERS if name != "exact")
"""Names of the planners that ``all`` means: all but the exact search, which may take long."""

CUBIC = ("mincostflow",)
"""Names of the planners whose time grows with the third power of the number of tensors.

They search a path through all pairs of tensors, once for each tensor.
"""

MOST_FOR_CUBIC = 500
"""Largest number of tensors for which ``all`` includes :data:`CUBIC`; these take some seconds."""


@dataclass(frozen=True)
class PlannerResult(JsonRecord):
    """Size of the plan that one planner makes for a graph.

    Attributes:
        planner: name of the planner.
        bytes: size of the arena in bytes.
        bound: lower bound of the bytes of any plan for these tensors.
        milliseconds: duration of the planning.
        offsets: offset of each tensor's first byte in the arena.
        is_optimal: whether it is known that no plan is smaller.
    """

    json_properties: ClassVar = {"ratio": "ratio", "is_optimal": "is_optimal"}

    planner: str
    bytes: int
    bound: int
    milliseconds: float
    offsets: tuple[int, ...]

    @property
    def ratio(self) -> float:
        """Plan size divided by the lower bound; 1 if no tensor needs memory."""
        return self.bytes / self.bound if self.bound else 1.0

    @property
    def bound_in_words(self) -> str:
        """What the bound says of other plans, which compute in place and keep inputs alike."""
        if self.planner in IN_PLACE:
            return "no plan that keeps inputs needs less"
        return "no plan needs less without computing in place"

    @property
    def is_optimal(self) -> bool:
        """Whether the plan equals the lower bound, so that no plan is smaller."""
        return self.bytes <= self.bound


def sum_of(results: Sequence[PlannerResult]) -> PlannerResult:
    """Return the sizes of several arenas together, as one planner plans each."""
    return PlannerResult(
        results[0].planner,
        sum(result.bytes for result in results),
        sum(result.bound for result in results),
        sum(result.milliseconds for result in results),
        (),
    )


def records_before(
    end: int, records: list[TensorUsageRecord], indices: list[int]
) -> tuple[list[TensorUsageRecord], list[int]]:
    """Return the tensors that are first used before the position *end*; records are sorted."""
    count = sum(record.first_task < max(end, 1) for record in records)
    return records[:count], indices[:count]


def planned(
    name: str,
    graph: PlannerGraph,
    records: Records,
    indices: Sequence[int],
    alignment: int,
    end: int,
) -> PlannerResult:
    """Return a planner's plan for a graph.

    Args:
        name: name of the planner.
        graph: the graph, for the planners that compute in place.
        records: the tensors, for the other planners.
        indices: index of each tensor in the graph.
        alignment: number of bytes of which offsets are multiples.
        end: position of the execution plan at which the plan ends.
    """
    start = perf_counter()
    if name in IN_PLACE:
        planner = ArenaPlanner(graph, alignment=alignment, tighten=name == OWN)
        planner.plan_allocations()
        planner.execute_allocations(0, end - 1)
        milliseconds = (perf_counter() - start) * 1e3
        return _of_arena(name, planner, graph, indices, alignment, milliseconds, end)
    plan = _PLANS[name](records, alignment)
    milliseconds = (perf_counter() - start) * 1e3
    bound = max(lower_bound(records, alignment), getattr(plan, "lower_bound", 0))
    return PlannerResult(name, plan.total_size, bound, milliseconds, tuple(plan.offsets))


def _of_arena(
    name: str,
    planner: ArenaPlanner,
    graph: PlannerGraph,
    indices: Sequence[int],
    alignment: int,
    milliseconds: float,
    end: int,
) -> PlannerResult:
    places = [planner.address(index) for index in indices]
    offsets = tuple(0 if place is None else place[1] for place in places)
    shared, _ = records_before(
        end, *usage_records(graph, keep_inputs=True, root_of=planner.shared_root)
    )
    bound = lower_bound(shared, alignment)
    return PlannerResult(name, planner.arena_bytes[0], bound, milliseconds, offsets)
