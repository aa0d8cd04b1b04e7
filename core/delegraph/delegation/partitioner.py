"""Splits an execution plan into subsets of nodes that a delegate takes or leaves.

Source:
    PartitionGraphIntoIndependentNodeSubsets, tflite/graph_info.cc. The result is the same; the
    way there is not: TFLite sweeps over the whole plan again and again, here a node is queued at
    the moment it becomes ready, which takes O((nodes + edges) log nodes) for every plan and mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

from delegraph.errors import PartitionError

ControlEdge: TypeAlias = tuple[int, int]
"""Two plan positions: the first must run before the second."""

Kind: TypeAlias = Literal["kTfPartition", "kTfNonPartition"]
"""What a subset is: for the delegate, or for the others."""

_ABSENT = -1  # index of an optional tensor that is not there
_TAKEN = -1  # in place of a count of missing conditions: the node has its epoch


class NodeInfo(NamedTuple):
    """One node of the plan, as far as partitioning looks at it.

    Attributes:
        inputs: tensor indices; -1 for an absent one.
        outputs: tensor indices; -1 for an absent one.
        might_have_side_effect: must keep its order among the nodes that have this mark.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    might_have_side_effect: bool = False


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """A subgraph seen through its execution plan. Source: GraphInfo, tflite/graph_info.h.

    Attributes:
        nodes: the node at each plan position.
        execution_plan: the node index at each plan position.
        num_total_nodes: nodes of the subgraph, also those that are not in the plan.
        inputs: tensor indices of the subgraph's inputs. Like ``variables`` they are part of the
            picture without a say: a tensor is ready from the start if no node of the plan makes it.
        outputs: tensor indices of the subgraph's outputs.
        variables: tensor indices of the subgraph's variables.
    """

    nodes: Sequence[NodeInfo]
    execution_plan: Sequence[int]
    num_total_nodes: int
    inputs: Sequence[int]
    outputs: Sequence[int]
    variables: Sequence[int] = ()


@dataclass(slots=True)
class NodeSubset:
    """Nodes that run one after the other, all taken by the delegate or all left.

    Source:
        NodeSubset, tflite/graph_info.h.

    Attributes:
        type: ``"kTfPartition"`` for the delegate, ``"kTfNonPartition"`` for the others.
        nodes: node indices in the order they are to run.
        input_tensors: tensors read and not made here, constants included; sorted, without repeats.
        output_tensors: tensors made here that other subsets or the graph's outputs need; sorted,
            without repeats.
    """

    type: Kind
    nodes: list[int]
    input_tensors: list[int]
    output_tensors: list[int]


def partition_graph_into_independent_node_subsets(
    graph: GraphInfo,
    nodes_to_partition: Iterable[int],
    greedily: bool,
    control_edges: Iterable[ControlEdge] | None = None,
    disable_node_fusion: bool = False,
) -> list[NodeSubset]:
    """Return the plan as subsets, in an order in which they can run.

    The plan is swept from front to back and around again; each subset ("epoch") takes the nodes
    whose inputs are there and whose kind (for the delegate or not) is that of its first node, until
    nothing more fits.

    Args:
        graph: the nodes in plan order.
        nodes_to_partition: *node indices* that the delegate takes. Repeats and nodes that are not
            in the plan do no harm.
        greedily: let later nodes of the plan join a subset past nodes that do not fit. Otherwise a
            subset ends at the first node that does not fit once it has begun to take some in the
            current sweep.
        control_edges: pairs of *plan positions*, (before, after). None and *greedily*: nodes that
            might have side effects are chained in plan order. An empty list means no edges at all.
        disable_node_fusion: give every node a subset of its own.

    Raises:
        PartitionError: a node, edge or tensor index is out of range, or nodes wait for each other.

    Nodes 0, 1 and 2 are a chain, node 3 reads from node 0 as well; the delegate takes 0 and 3:

    >>> nodes = [NodeInfo([0], [1]), NodeInfo([1], [2]), NodeInfo([2], [3]), NodeInfo([1], [4])]
    >>> graph = GraphInfo(nodes, [0, 1, 2, 3], 4, inputs=[0], outputs=[3, 4])
    >>> for subset in partition_graph_into_independent_node_subsets(graph, [0, 3], greedily=True):
    ...     print(subset.type, subset.nodes, subset.input_tensors, subset.output_tensors)
    kTfPartition [0, 3] [0] [1, 4]
    kTfNonPartition [1, 2] [1] [3]
    """
    _check_plan(graph)
    kinds = _kinds(graph, nodes_to_partition)
    ready = _Readiness(graph, _edges(graph, greedily, control_edges))
    if disable_node_fusion:
        epochs = _epochs_of_one(ready)
    elif greedily:
        epochs = _greedy_epochs(ready, kinds)
    else:
        epochs = _runs_of_the_plan(ready, kinds)
    subsets = _subsets(graph, epochs, kinds)
    ready.require_all_taken()
    return subsets


def _check_plan(graph: GraphInfo) -> None:
    if len(graph.nodes) != len(graph.execution_plan):
        raise PartitionError(
            f"{len(graph.nodes)} nodes for an execution plan of {len(graph.execution_plan)}; "
            "each plan position needs its node"
        )
    _check_nodes("the execution plan", graph.execution_plan, graph.num_total_nodes)


def _check_nodes(place: str, indices: Collection[int], count: int) -> None:
    if indices and not 0 <= min(indices) <= max(indices) < count:
        bad = min(indices) if min(indices) < 0 else max(indices)
        raise PartitionError(f"{place} names node {bad}; the graph has {count} nodes")


def _kinds(graph: GraphInfo, nodes_to_partition: Iterable[int]) -> list[bool]:
    """Return for each plan position whether the delegate takes its node."""
    wanted = set(nodes_to_partition)
    _check_nodes("nodes_to_partition", wanted, graph.num_total_nodes)
    return [index in wanted for index in graph.execution_plan]


def _edges(
    graph: GraphInfo, greedily: bool, control_edges: Iterable[ControlEdge] | None
) -> list[ControlEdge]:
    """Return the edges to respect: those given, else those that side effects imply."""
    if control_edges is not None:
        edges = list(control_edges)
        for edge in edges:
            if not all(0 <= position < len(graph.nodes) for position in edge):
                raise PartitionError(
                    f"control edge {edge} leaves the plan, which has {len(graph.nodes)} positions"
                )
        return edges
    if not greedily:
        return []
    chain = [i for i, node in enumerate(graph.nodes) if node.might_have_side_effect]
    return list(pairwise(chain))


class _Readiness:
    """Knows which nodes of the plan can run, as others are taken.

    The readers of a tensor are a linked list: ``_newest[tensor]`` is an entry, ``_reader[entry]``
    the plan position that reads, ``_older[entry]`` the next entry or -1. Lists by tensor would be
    simpler, and double the time that the garbage collector needs for a large graph.

    Attributes:
        missing: for each plan position the inputs and control edges it still waits for; 0 for a
            ready node, -1 for one that was taken.
        first: plan positions that are ready from the start, ascending.
    """

    def __init__(self, graph: GraphInfo, edges: list[ControlEdge]) -> None:
        self._graph = graph
        self._newest = self._unmade_tensors()
        self._reader: list[int] = []
        self._older: list[int] = []
        self.missing: list[int] = []
        self._link_readers()
        self._edges = edges
        self._successors: dict[int, list[int]] = {}
        for before, after in edges:
            self._successors.setdefault(before, []).append(after)
            self.missing[after] += 1
        self.first = [position for position, count in enumerate(self.missing) if count == 0]

    def _unmade_tensors(self) -> dict[int, int]:
        """Return every tensor that the plan makes, without readers."""
        newest = {tensor: -1 for node in self._graph.nodes for tensor in node.outputs}
        newest.pop(_ABSENT, None)
        if min(newest, default=0) < 0:
            raise self._bad_tensor("writes", min(newest))
        return newest

    def _link_readers(self) -> None:
        newest, readers, older = self._newest, self._reader, self._older
        for position, node in enumerate(self._graph.nodes):
            before = len(readers)
            for tensor in node.inputs:
                if tensor in newest:
                    older.append(newest[tensor])
                    newest[tensor] = len(readers)
                    readers.append(position)
                elif tensor < _ABSENT:
                    raise self._bad_tensor("reads", tensor)
            self.missing.append(len(readers) - before)

    def take(self, position: int) -> list[int]:
        """Give the node at *position* its epoch; return the positions that became ready by it."""
        missing = self.missing
        missing[position] = _TAKEN
        ready = []
        for tensor in self._graph.nodes[position].outputs:
            entry = self._newest.pop(tensor, -1)  # a tensor is ready with its first maker
            while entry >= 0:
                reader = self._reader[entry]
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append(reader)
                entry = self._older[entry]
        if position in self._successors:
            for after in self._successors[position]:
                missing[after] -= 1
                if not missing[after]:
                    ready.append(after)
        return ready

    def require_all_taken(self) -> None:
        """Raise :class:`PartitionError` naming the first node that never became ready."""
        for position, count in enumerate(self.missing):
            if count != _TAKEN:
                raise PartitionError(
                    f"node {self._graph.execution_plan[position]} at plan position {position} can "
                    f"never run: it waits for {self._obstacle(position)}"
                )

    def _obstacle(self, position: int) -> str:
        for tensor in self._graph.nodes[position].inputs:
            if tensor in self._newest:
                return f"tensor {tensor}, whose node waits for it in turn or is itself stuck"
        before = next(b for b, a in self._edges if a == position and self.missing[b] != _TAKEN)
        return f"plan position {before} by a control edge, which is stuck as well"

    def _bad_tensor(self, verb: str, tensor: int) -> PartitionError:
        lists = [n.outputs if verb == "writes" else n.inputs for n in self._graph.nodes]
        position = next(i for i, tensors in enumerate(lists) if tensor in tensors)
        index = self._graph.execution_plan[position]
        return PartitionError(f"node {index} {verb} tensor {tensor}; only -1 may be negative")


def _greedy_epochs(ready: _Readiness, kinds: list[bool]) -> Iterator[list[int]]:
    """Yield the plan positions of each epoch when subsets take all they can."""
    queues: tuple[list[int], list[int]] = ([], [])
    for position in ready.first:
        queues[kinds[position]].append(position)
    while queues[0] or queues[1]:
        kind = not queues[0] or (bool(queues[1]) and queues[1][0] < queues[0][0])
        sweep, other_kind = queues[kind], queues[not kind]
        next_sweep: list[int] = []
        epoch = []
        while sweep:
            position = heappop(sweep)
            epoch.append(position)
            for freed in ready.take(position):
                if kinds[freed] != kind:
                    heappush(other_kind, freed)
                elif freed > position:
                    heappush(sweep, freed)
                else:  # the sweep has passed it
                    next_sweep.append(freed)
            if next_sweep and not sweep:
                heapify(next_sweep)
                sweep, next_sweep = next_sweep, sweep
        yield epoch


def _runs_of_the_plan(ready: _Readiness, kinds: list[bool]) -> Iterator[list[int]]:
    """Yield the plan positions of each epoch when a subset ends at a node that does not fit.

    Nodes before the first one that fits are passed over, in each sweep. A sweep that ends with a
    node that fitted is followed by another one.
    """
    queues: tuple[list[int], list[int]] = ([], [])  # may still hold nodes that were taken
    for position in ready.first:
        queues[kinds[position]].append(position)

    def lowest(queue: list[int]) -> int:
        while queue and ready.missing[queue[0]]:
            heappop(queue)
        return queue[0] if queue else len(kinds)

    while (position := min(lowest(queues[0]), lowest(queues[1]))) < len(kinds):
        kind = kinds[position]
        epoch: list[int] = []
        while position < len(kinds):
            while position < len(kinds) and not ready.missing[position] and kinds[position] == kind:
                epoch.append(position)
                for freed in ready.take(position):
                    heappush(queues[kinds[freed]], freed)
                position += 1
            if position < len(kinds):
                break
            position = lowest(queues[kind])
        yield epoch


def _epochs_of_one(ready: _Readiness) -> Iterator[list[int]]:
    """Yield the plan positions, each an epoch: always the lowest that is ready."""
    queue = ready.first
    while queue:
        position = heappop(queue)
        yield [position]
        for freed in ready.take(position):
            heappush(queue, freed)


def _subsets(graph: GraphInfo, epochs: Iterable[list[int]], kinds: list[bool]) -> list[NodeSubset]:
    """Return the subset of each epoch, with the tensors that cross its border.

    Where several nodes make the same tensor, a reader has it from the one taken last before it.
    """
    nodes, plan = graph.nodes, graph.execution_plan
    made_in: dict[int, int] = {}  # tensor to epoch
    subsets: list[NodeSubset] = []
    for epoch, positions in enumerate(epochs):
        kind: Kind = "kTfPartition" if kinds[positions[0]] else "kTfNonPartition"
        inputs: list[int] = []
        subsets.append(NodeSubset(kind, [plan[position] for position in positions], inputs, []))
        for position in positions:
            node = nodes[position]
            for tensor in node.outputs:
                made_in[tensor] = epoch
            for tensor in node.inputs:
                source = made_in.get(tensor)
                if source != epoch and tensor != _ABSENT:
                    inputs.append(tensor)
                    if source is not None:
                        subsets[source].output_tensors.append(tensor)
    _add_graph_outputs(graph, made_in, subsets)
    for subset in subsets:
        if len(subset.input_tensors) > 1:
            subset.input_tensors = sorted(set(subset.input_tensors))
        if len(subset.output_tensors) > 1:
            subset.output_tensors = sorted(set(subset.output_tensors))
    return subsets


def _add_graph_outputs(
    graph: GraphInfo, made_in: dict[int, int], subsets: list[NodeSubset]
) -> None:
    """Make the graph's outputs outputs of their subsets; inputs passed through have none."""
    for tensor in graph.outputs:
        if tensor < _ABSENT:
            raise PartitionError(f"tensor {tensor} is a graph output; only -1 may be negative")
        if tensor in made_in and tensor != _ABSENT:
            subsets[made_in[tensor]].output_tensors.append(tensor)
