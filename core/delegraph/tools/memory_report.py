"""Memory that a model's tensors need with each planner, and the lower bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.json_records import JsonRecord
from delegraph.memory import (
    TensorUsageRecord,
    lower_bound,
    usage_records,
)
from delegraph.operators.tensor import AllocationType
from delegraph.runtime.interpreter import Interpreter
from delegraph.tools.memory_peak import Peak, bytes_of, node_in_words
from delegraph.tools.memory_planners import (
    COMPARED,
    CUBIC,
    IN_PLACE,
    MOST_FOR_CUBIC,
    PLANNERS,
    PlannerResult,
    planned,
    records_before,
    sum_of,
)
from delegraph.tools.open_shape import OpenShape, first_open_shape
from delegraph.tools.running_subgraphs import RunningSubgraph, running_subgraphs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.delegation.placement import PartitionPlacement
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.subgraph import Subgraph

DEFAULT_ALIGNMENT = 64
"""Number of bytes to which the runtime's tensors are aligned."""

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
class MemoryReport(JsonRecord):
    """The memory of a subgraph, with that of the other subgraphs that run with it.

    Each subgraph has an arena of its own, in LiteRT as well. An interpreter keeps them all.

    Attributes:
        tensors: tensors that share the arena, in the order of their first use.
        operators: names of the plan's nodes, in order.
        nodes: index of each node of the plan.
        places: each node of the plan in words: with its operator, or as a partition.
        results: result of each requested planner; the first is that of the interpreter's own
            planner, if it is among them.
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
        subgraph: index of the subgraph.
        name: name of the subgraph.
        run_by: signatures and nodes that run it, in words.
        signatures: names of the signatures that run it, directly or by calls; empty if the model
            has only one, of the first subgraph.
        others: reports of the other subgraphs that run with the model. Only the report of the
            first subgraph has them.
        uncounted: why the arenas of subgraphs are in no figure, or may grow.
    """

    json_properties: ClassVar = {
        "peak": "peak",
        "lower_bound": "bound",
        "is_complete": "is_complete",
        "unknown": "unknown",
        "bytes_by_planner": "bytes_by_planner",
    }

    tensors: tuple[PlannedTensor, ...]
    operators: tuple[str, ...] = field(metadata={"json_key": None})
    nodes: tuple[int, ...] = field(metadata={"json_key": None})
    places: tuple[str, ...] = field(metadata={"json_key": None})
    results: tuple[PlannerResult, ...] = field(metadata={"json_key": "planners"})
    persistent_bytes: int
    constant_bytes: int
    open_shape: OpenShape | None
    alignment: int
    is_by_node: bool
    not_counted: tuple[str, ...]
    subgraph: int = 0
    name: str = ""
    run_by: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    others: tuple[MemoryReport, ...] = field(default=(), metadata={"json_key": "subgraphs"})
    uncounted: tuple[str, ...] = ()

    @property
    def arenas(self) -> tuple[MemoryReport, ...]:
        """This report and those of the other subgraphs: one for each arena."""
        return self, *self.others

    @property
    def totals(self) -> tuple[PlannerResult, ...]:
        """Sizes of all arenas together, by planner, without offsets."""
        return tuple(map(sum_of, zip(*(arena.results for arena in self.arenas), strict=True)))

    @property
    def bytes_by_planner(self) -> dict[str, int]:
        """Number of bytes of all arenas together, by planner."""
        return {result.planner: result.bytes for result in self.totals}

    @property
    def unknown(self) -> str:
        """The first reason why a run needs more than the figures say; empty if there is none."""
        for arena in self.arenas:
            if arena.open_shape is not None:
                where = f"in subgraph {arena.subgraph}, " if arena.subgraph else ""
                return f"{where}{arena.open_shape}"
        return "; ".join(self.uncounted)

    @property
    def bound(self) -> int:
        """Lower bound of the bytes of any plan in which no output shares an input's memory."""
        return lower_bound(self.records, self.alignment)

    @property
    def is_complete(self) -> bool:
        """Whether all shapes of all arenas were known, so that the sizes are those of a run."""
        return not self.unknown

    @cached_property
    def peak(self) -> Peak | None:
        """The peak of the first planner; None if no tensor is in the arena."""
        return self.peak_of(self.results[0])

    def peak_of(self, result: PlannerResult) -> Peak | None:
        """Return the point at which a plan has most bytes in use; None if it has no tensor."""
        in_use = self.bytes_in_use(result) if self.tensors else []
        if not in_use:
            return None
        position = in_use.index(max(in_use))
        lasts = self.last_positions(result)
        spans = enumerate(zip(self.tensors, lasts, strict=True))
        alive = [i for i, (tensor, last) in spans if tensor.first <= position <= last]
        alive.sort(key=lambda i: self.tensors[i].bytes, reverse=True)
        has_node = position < len(self.nodes)
        return Peak(
            position,
            self.nodes[position] if has_node else -1,
            self.operators[position] if has_node else "",
            in_use[position],
            tuple(alive),
            self.places[position] if has_node else node_in_words(-1, "", None),
        )

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

    @property
    def start(self) -> int:
        """Position in the execution plan of the first node that runs with each invoke.

        The nodes before it compute constants, once, as float16 weights as float32.
        """
        if not self.constant_bytes:
            return 0
        return min((t.last if t.made_by == "input" else t.first for t in self.tensors), default=0)

    def bytes_in_use(self, result: PlannerResult, *, is_int8: bool = False) -> list[int]:
        """Return the bytes of the arena in use at each node; bytes that tensors share count once.

        The padding of the last tensor in the arena is not part of it. With *is_int8*, bytes of
        FLOAT32 tensors count a quarter.
        """
        starting: dict[int, list[tuple[int, int, int, int]]] = {}
        places = zip(self.tensors, result.offsets, self.last_positions(result), strict=True)
        for tensor, offset, last in places:
            padded = -(-tensor.bytes // self.alignment) * self.alignment
            stop = min(offset + padded, result.bytes)
            divisor = 4 if is_int8 and tensor.type == "FLOAT32" else 1
            starting.setdefault(tensor.first, []).append((offset, stop, last, divisor))
        alive: list[tuple[int, int, int, int]] = []
        found = []
        for node in range(max(len(self.in_use), 1)):
            alive = sorted([each for each in alive if each[2] >= node] + starting.get(node, []))
            used = end = 0
            for start, stop, _, divisor in alive:
                used += max(0, stop - max(start, end)) // divisor
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


def memory_report(
    interpreter: Interpreter,
    planners: Iterable[str] | None = None,
    alignment: int = DEFAULT_ALIGNMENT,
) -> MemoryReport:
    """Return the memory that an interpreter's subgraphs need, with its delegates applied.

    It is the report of the first subgraph. Those of the other subgraphs that run are its
    ``others``: subgraphs that signatures run, and that nodes call. Subgraphs of signatures are
    allocated. The planners ``delegraph`` and ``tflite`` let operators compute in place; for the
    other planners every tensor needs its own memory while it is in use.

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
    session = interpreter.session
    if session.subgraphs[0].memory.graph is None:
        raise ArgumentError("memory is planned by allocate_tensors(), which comes first")
    found, failed = running_subgraphs(session)
    partitions = interpreter.placement.partitions
    arenas = [
        _Arena(
            running,
            session.subgraphs[running.index],
            {p.node_index: p for p in partitions if p.subgraph == running.index},
        )
        for running in found
    ]
    if planners is None and max(len(arena.records) for arena in arenas) > MOST_FOR_CUBIC:
        names = [name for name in names if name not in CUBIC]
    first, *others = [arena.report(names, alignment) for arena in arenas]
    return replace(first, others=tuple(others), uncounted=tuple(failed))


class _Arena:
    """A running subgraph, and the tensors that share its arena.

    Args:
        running: what runs the subgraph.
        subgraph: the subgraph, allocated.
        partitions: its partitions, by the index of their node.
    """

    def __init__(
        self,
        running: RunningSubgraph,
        subgraph: Subgraph,
        partitions: Mapping[int, PartitionPlacement],
    ) -> None:
        assert subgraph.memory.graph is not None, "an allocated subgraph has a plan"
        self._running, self._subgraph, self._partitions = running, subgraph, partitions
        self._graph = subgraph.memory.graph
        self._open_shape = first_open_shape(subgraph, partitions)
        nodes = len(subgraph.steps.nodes)
        self._end = nodes if self._open_shape is None else self._open_shape.position + 1
        self.records, self._indices = records_before(self._end, *usage_records(self._graph))

    def report(self, names: Iterable[str], alignment: int) -> MemoryReport:
        """Return the memory of this subgraph alone, as the named planners plan it."""
        nodes = self._subgraph.steps.nodes
        operators = tuple(registration.name for _, registration in nodes)
        indices = tuple(node.index for node, _ in nodes)
        return MemoryReport(
            tuple(self._tensors(operators)),
            operators,
            indices,
            tuple(
                node_in_words(index, name, self._partitions.get(index))
                for index, name in zip(indices, operators, strict=True)
            ),
            tuple(
                planned(name, self._graph, self.records, self._indices, alignment, self._end)
                for name in names
            ),
            self._subgraph.memory.arena_bytes[1],
            _constant_bytes(self._subgraph.tensors),
            self._open_shape,
            alignment,
            indices == tuple(range(len(nodes))),
            tuple(sorted(set(_LITERT_TEMPORARIES.split()).intersection(operators))),
            self._running.index,
            self._subgraph.spec.name,
            tuple(self._running.run_by),
            tuple(self._running.signatures),
        )

    def _tensors(self, operators: Sequence[str]) -> Iterator[PlannedTensor]:
        nodes, tensors = self._subgraph.steps.nodes, self._subgraph.tensors
        makers = {
            i: name for (node, _), name in zip(nodes, operators, strict=True) for i in node.outputs
        }
        for i, record in zip(self._indices, self.records, strict=True):
            yield PlannedTensor(
                i,
                tensors[i].name,
                makers.get(i, "input"),
                bytes_of(record),
                record.first_task,
                record.last_task,
                tensors[i].type.name,
            )


def _constant_bytes(tensors: Sequence[Tensor]) -> int:
    """Number of bytes of the tensors that the runtime computed while it prepared their nodes."""
    return sum(
        tensor.bytes for tensor in tensors if tensor.allocation_type is AllocationType.PERSISTENT_RO
    )
