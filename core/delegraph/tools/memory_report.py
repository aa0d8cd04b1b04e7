"""Memory that a model's tensors need with each planner, and the lower bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from delegraph.errors import ArgumentError, did_you_mean
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
from delegraph.operators.tensor import AllocationType
from delegraph.runtime.interpreter import Interpreter
from delegraph.tools.memory_peak import Peak, bytes_of, peak_of
from delegraph.tools.open_shape import OpenShape, first_open_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.operators.tensor import Tensor

DEFAULT_ALIGNMENT = 64
"""Number of bytes to which the runtime's tensors are aligned."""

OWN = "delegraph"
"""Name of the runtime's own planner."""

IN_PLACE = (OWN, "tflite")
"""Names of the planners that let operators compute in place, so that tensors share bytes."""

Records = Sequence[TensorUsageRecord]
Plan = Callable[[Records, int], OffsetsAssignment]


_LITERT_TEMPORARIES = """
    ADD_N BATCH_MATMUL BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN CONV_2D CONV_3D
    CONV_3D_TRANSPOSE LSTM MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RFFT2D RNN
    STABLEHLO_REDUCE_WINDOW SUM SVDF TFLite_Detection_PostProcess TRANSPOSE_CONV
    UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN
"""
"""Operators whose kernels in LiteRT add temporaries to its arena.

FULLY_CONNECTED and DEPTHWISE_CONV_2D do so with float inputs and integer weights alone.
"""


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor with its place in a memory plan.

    Attributes:
        index: index in the subgraph.
        name: name in the file.
        made_by: name of the operator that writes it; ``input`` for a graph input.
        bytes: size in bytes.
        first: position in the execution plan of the node that writes it.
        last: position in the execution plan of the last node that reads it.
        type: element type as the schema calls it.
    """

    index: int
    name: str
    made_by: str
    bytes: int
    first: int
    last: int
    type: str = ""


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
    def is_optimal(self) -> bool:
        """Whether the plan equals the lower bound, so that no plan is smaller."""
        return self.bytes <= self.bound


@dataclass(frozen=True)
class MemoryReport(JsonRecord):
    """The memory of a model's first subgraph.

    Attributes:
        tensors: tensors that share the arena, in the order of their first use.
        operators: names of the plan's nodes, in order.
        results: result of each requested planner.
        peak: point at which most memory is in use; None if no tensor is in the arena.
        persistent_bytes: bytes of variables, which share no memory.
        constant_bytes: bytes of tensors that are computed once, as float16 weights as float32. They
            are kept beside the arena, and share no memory.
        open_shape: the first output whose shape is known only while invoking; None if all shapes
            are known. The report ends there: later tensors are not in it, and a run needs more.
        alignment: number of bytes of which all offsets are multiples.
        is_by_node: whether each position in the execution plan is the index of the node there. It
            is not with partitions.
        not_counted: sorted operators of the plan whose kernels in LiteRT ask for temporaries, which
            are tensors of LiteRT's arena that no plan here has.
    """

    json_properties: ClassVar = {"lower_bound": "bound", "is_complete": "is_complete"}

    tensors: tuple[PlannedTensor, ...]
    operators: tuple[str, ...] = field(metadata={"json_key": None})
    results: tuple[PlannerResult, ...] = field(metadata={"json_key": "planners"})
    peak: Peak | None
    persistent_bytes: int
    constant_bytes: int
    open_shape: OpenShape | None
    alignment: int
    is_by_node: bool
    not_counted: tuple[str, ...]

    @property
    def bound(self) -> int:
        """Lower bound of the bytes of any plan in which no output shares an input's memory."""
        return lower_bound(self.records, self.alignment)

    @property
    def is_complete(self) -> bool:
        """Whether all shapes were known, so that the sizes are those of a run."""
        return self.open_shape is None

    @property
    def unit(self) -> str:
        """Word for a position in the execution plan: ``node``, or ``step`` with partitions."""
        return "node" if self.is_by_node else "step"

    @cached_property
    def records(self) -> list[TensorUsageRecord]:
        """Tensors as usage records for the planners."""
        return [TensorUsageRecord(t.bytes, t.first, t.last) for t in self.tensors]

    @property
    def in_use(self) -> NDArray[np.int64]:
        """Number of bytes in use while each node runs, with padding, ``[nodes], int64``.

        If a shape is unknown, its node is the last one.
        """
        changes = np.zeros(max(len(self.operators), 1) + 1, np.int64)
        for tensor in self.tensors:
            padded = -(-tensor.bytes // self.alignment) * self.alignment
            changes[tensor.first] += padded
            changes[tensor.last + 1] -= padded
        end = -1 if self.open_shape is None else self.open_shape.position + 1
        return np.cumsum(changes)[:end]

    def last_positions(self, result: PlannerResult) -> list[int]:
        """Return the position in the execution plan up to which a plan keeps each tensor.

        Planners that compute in place keep the model's inputs to the end.
        """
        end = max(len(self.operators), 1) - 1
        keeps = result.planner in IN_PLACE
        return [
            end if keeps and tensor.made_by == "input" and tensor.first == 0 else tensor.last
            for tensor in self.tensors
        ]

    def bytes_in_use(self, result: PlannerResult) -> list[int]:
        """Return :attr:`in_use` for a plan: bytes that tensors share in place count once."""
        starting: dict[int, list[tuple[int, int, int]]] = {}
        places = zip(self.tensors, result.offsets, self.last_positions(result), strict=True)
        for tensor, offset, last in places:
            padded = -(-tensor.bytes // self.alignment) * self.alignment
            starting.setdefault(tensor.first, []).append((offset, offset + padded, last))
        alive: list[tuple[int, int, int]] = []
        found = []
        for node in range(max(len(self.in_use), 1)):
            alive = sorted([each for each in alive if each[2] >= node] + starting.get(node, []))
            used = end = 0
            for start, stop, _ in alive:
                used += max(0, stop - max(start, end))
                end = max(end, stop)
            found.append(used)
        return found

    def result_of(self, planner: str) -> PlannerResult:
        """Return the result of a planner.

        Raises:
            ArgumentError: the planner was not among the requested ones.
        """
        for result in self.results:
            if result.planner == planner:
                return result
        raise ArgumentError(f"no result of planner {planner!r}")


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
    "tflm_greedy": _micro(GreedyMemoryPlanner),
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


def memory_report(
    interpreter: Interpreter,
    planners: Iterable[str] | None = None,
    alignment: int = DEFAULT_ALIGNMENT,
) -> MemoryReport:
    """Return the memory that an interpreter's first subgraph needs, with its delegates applied.

    The planners ``delegraph`` and ``tflite`` let operators compute in place; for the other planners
    every tensor needs its own memory while it is in use.

    Args:
        interpreter: an interpreter with allocated tensors.
        planners: names from :data:`PLANNERS`. None means :data:`COMPARED`, without :data:`CUBIC` if
            there are more than :data:`MOST_FOR_CUBIC` tensors.
        alignment: number of bytes of which offsets are multiples; 1 to 64.

    Raises:
        ArgumentError: there is no such planner.
        StateError: the tensors are not allocated.
    """
    names = list(COMPARED if planners is None else planners)
    unknown = [name for name in names if name not in PLANNERS]
    if unknown:
        close = did_you_mean(unknown[0], PLANNERS)
        raise ArgumentError(f"no planner {unknown[0]!r}{close}; there are {', '.join(PLANNERS)}")
    subgraph = interpreter.session.subgraphs[0]
    graph = subgraph.memory.graph
    if graph is None:
        raise ArgumentError("memory is planned by allocate_tensors(), which comes first")
    partitions = {p.node_index: p for p in interpreter.placement.partitions if p.subgraph == 0}
    open_shape = first_open_shape(subgraph, partitions)
    end = len(subgraph.steps.nodes) if open_shape is None else open_shape.position + 1
    records, indices = _before(end, *usage_records(graph))
    if planners is None and len(records) > MOST_FOR_CUBIC:
        names = [name for name in names if name not in CUBIC]
    nodes = subgraph.steps.nodes
    indices_of_nodes = [node.index for node, _ in nodes]
    operators = tuple(registration.name for _, registration in nodes)
    makers = {
        i: name for (node, _), name in zip(nodes, operators, strict=True) for i in node.outputs
    }
    tensors = tuple(
        PlannedTensor(
            i,
            subgraph.tensors[i].name,
            makers.get(i, "input"),
            bytes_of(r),
            r.first_task,
            r.last_task,
            subgraph.tensors[i].type.name,
        )
        for i, r in zip(indices, records, strict=True)
    )
    return MemoryReport(
        tensors,
        operators,
        tuple(_result(name, graph, records, indices, alignment, end) for name in names),
        peak_of(records, indices_of_nodes, operators, alignment, partitions),
        subgraph.memory.arena_bytes[1],
        _constant_bytes(subgraph.tensors),
        open_shape,
        alignment,
        indices_of_nodes == list(range(len(nodes))),
        tuple(sorted(set(_LITERT_TEMPORARIES.split()).intersection(operators))),
    )


def _before(
    end: int, records: list[TensorUsageRecord], indices: list[int]
) -> tuple[list[TensorUsageRecord], list[int]]:
    """Return the tensors that are first used before the position *end*; records are sorted."""
    count = sum(record.first_task < max(end, 1) for record in records)
    return records[:count], indices[:count]


def _constant_bytes(tensors: Sequence[Tensor]) -> int:
    """Number of bytes of the tensors that the runtime computed while it prepared their nodes."""
    return sum(
        tensor.bytes for tensor in tensors if tensor.allocation_type is AllocationType.PERSISTENT_RO
    )


def _result(
    name: str,
    graph: PlannerGraph,
    records: Records,
    indices: Sequence[int],
    alignment: int,
    end: int,
) -> PlannerResult:
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
    shared, _ = _before(end, *usage_records(graph, keep_inputs=True, root_of=planner.shared_root))
    bound = lower_bound(shared, alignment)
    return PlannerResult(name, planner.arena_bytes[0], bound, milliseconds, offsets)
