"""MINCOSTFLOW: an assignment problem decides which tensor uses which tensor's memory next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.memory.records import ByteRecord, ObjectsAssignment
from delegraph.memory.strategies.objects_in_use import ObjectsInUse

_UNREACHED = np.iinfo(np.int64).max // 2
_NONE = -1


def min_cost_flow(records: Sequence[ByteRecord]) -> ObjectsAssignment[int]:
    """Assign each tensor to a new object, or to the object of a tensor that is not used any more.

    A new object costs the tensor's bytes. Reusing an object costs the bytes by which the tensor is
    larger than the tensor before. The sum of costs is minimal. The sum only estimates the memory:
    of tensors that share an object, only the largest really counts.

    Source:
        MinCostFlowAssignment, tflite/delegates/gpu/common/memory_management/
        min_cost_flow_assignment.cc.
    """
    flow = _Flow(records)
    while flow.augment():
        pass
    object_ids = [0] * len(records)
    object_sizes: list[int] = []
    for tensor in flow.with_own_object():
        chain = flow.successors(tensor)
        for member in chain:
            object_ids[member] = len(object_sizes)
        object_sizes.append(max(records[member][0] for member in chain))
    return ObjectsAssignment(object_ids, object_sizes)


class _Flow:
    """A minimum-cost flow of n units from a source to a sink.

    Each tensor is a giver and a taker of memory. The source has edges to every giver at no cost,
    and to every taker at the cost of its size. Givers have edges to later takers, and takers pass
    one unit to the sink. So each taker gets a unit from at most one vertex, which describes the
    whole flow.

    Vertices are numbered: givers from 0, takers from n, source 2n, sink 2n + 1.

    Attributes:
        _takers: for each giver, the tensors that may take over its memory, ascending, ``[edges],
            int64``.
        _costs: for each giver, the cost in bytes for each tensor in ``_takers``, ``[edges],
            int64``.
        _feeder: for each taker, the giver or source from which it gets a unit, or none.
        _fed: for each giver, the tensor that takes over its memory, or none.
    """

    def __init__(self, records: Sequence[ByteRecord]) -> None:
        count = self._count = len(records)
        self._source, self._sink = 2 * count, 2 * count + 1
        self._sizes = np.array([size for size, _, _ in records], np.int64)
        self._takers = [np.zeros(0, np.int64)] * count
        in_use = ObjectsInUse()
        for tensor, (_, first_task, last_task) in enumerate(records):
            for finished in in_use.freed_before(first_task):
                self._takers[finished] = np.arange(tensor, count)
            in_use.add(tensor, last_task)
        self._costs = [
            np.maximum(self._sizes[takers] - self._sizes[giver], 0)
            for giver, takers in enumerate(self._takers)
        ]
        self._feeder = [_NONE] * count
        self._fed = [_NONE] * count

    def with_own_object(self) -> list[int]:
        """Return the tensors that get a new object: takers that get a unit from the source."""
        return [taker for taker, feeder in enumerate(self._feeder) if feeder == self._source]

    def successors(self, tensor: int) -> list[int]:
        """Return *tensor*, followed by the tensors that use its memory one after another."""
        chain = [tensor]
        while (taker := self._fed[chain[-1]]) != _NONE:
            chain.append(taker)
        return chain

    def augment(self) -> bool:
        """Send one unit along the cheapest path; return whether there is a path."""
        before = self._cheapest_paths()
        vertex = int(before[self._sink])
        if vertex == _NONE:
            return False
        while vertex != self._source:
            feeder = int(before[vertex])
            if vertex >= self._count:  # a taker; a giver's flow changes with a new taker
                self._feeder[vertex - self._count] = feeder
                if feeder < self._count:
                    self._fed[feeder] = vertex - self._count
            vertex = feeder
        return True

    def _cheapest_paths(self) -> NDArray[np.int64]:
        """Return the vertex before each vertex on its cheapest path, ``[2n + 2], int64``, or _NONE.

        Of paths with equal cost, the path found first counts. So the order of the search matters:
        each round continues from the vertices whose paths became cheaper in the round before.
        """
        distances = np.full(2 * self._count + 2, _UNREACHED)
        before = np.full(2 * self._count + 2, _NONE)
        distances[self._source] = 0
        queue = [self._source]
        while queue:
            closer: dict[int, None] = {}  # an ordered set
            for vertex in queue:
                vertices, costs = self._residual_edges(vertex)
                reached = distances[vertex] + costs
                better = reached < distances[vertices]
                if better.any():
                    vertices = vertices[better]
                    distances[vertices] = reached[better]
                    before[vertices] = vertex
                    closer.update(dict.fromkeys(vertices.tolist()))
            queue = list(closer)
        return before

    def _residual_edges(self, vertex: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ends and the costs of *vertex*'s edges that can carry one more unit.

        Edges back to the source are omitted: in a minimum-cost flow they never shorten a path.
        """
        count = self._count
        if vertex < count:
            free = self._takers[vertex] != self._fed[vertex]
            return self._takers[vertex][free] + count, self._costs[vertex][free]
        if vertex == self._source:
            return self._edges_of_source()
        if vertex == self._sink:
            fed = np.flatnonzero(np.array(self._feeder) != _NONE)
            return fed + count, np.zeros(len(fed), np.int64)
        feeder = self._feeder[vertex - count]
        if feeder == _NONE:
            return np.array([self._sink]), np.zeros(1, np.int64)
        if feeder == self._source:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rise = self._sizes[vertex - count] - self._sizes[feeder]
        return np.array([feeder]), -np.maximum([rise], 0)

    def _edges_of_source(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        givers = np.arange(self._count)
        vertices = np.stack((givers, givers + self._count), axis=1)
        costs = np.stack((np.zeros_like(givers), self._sizes), axis=1)
        free = np.stack(
            (np.array(self._fed) == _NONE, np.array(self._feeder) != self._source), axis=1
        )
        return vertices[free], costs[free]
