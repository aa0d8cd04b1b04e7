"""Splits an execution plan into node subsets: partitions for a delegate, and the other nodes.

Source:
    PartitionGraphIntoIndependentNodeSubsets, tflite/graph_info.cc. The results are the
    same. TFLite sweeps over the whole plan again and again. Here, a node is queued when it becomes
    ready, which takes O((nodes + edges) log nodes) for every plan and mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Literal, TypeAlias

from delegraph.collector import collector_paused
from delegraph.errors import PartitionError
from delegraph.lazy_dataclass import NamedTuple, dataclass

ControlEdge: TypeAlias = tuple[int, int]
"""Two plan positions: the first must run before the second."""

Kind: TypeAlias = Literal["kTfPartition", "kTfNonPartition"]
"""Kind of a subset: nodes for the delegate, or nodes for other kernels."""

_ABSENT = -1  # index of an absent optional tensor
_TAKEN = -1  # replaces the count of missing conditions of a node that has its epoch


class NodeInfo(NamedTuple):
    """Inputs, outputs and side effects of one node of the plan.

    Attributes:
        inputs: tensor indices; -1 for an absent input.
        outputs: tensor indices; -1 for an absent output.
        might_have_side_effect: whether the node must keep its order among all nodes with side
            effects.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    might_have_side_effect: bool = False


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """A subgraph as an execution plan. Source: GraphInfo, tflite/graph_info.h.

    Attributes:
        nodes: operands and side effects of the node at each plan position.
        execution_plan: the node index at each plan position.
        num_total_nodes: nodes of the subgraph, including nodes that are not in the plan.
        inputs: tensor indices of the subgraph's inputs. Neither ``inputs`` nor ``variables`` affect
            the partitioning: every tensor that no node of the plan writes is ready from the start.
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
    """Nodes that run one after the other, and of which all or none are delegated.

    Source:
        NodeSubset, tflite/graph_info.h.

    Attributes:
        type: ``"kTfPartition"`` for nodes of the delegate, ``"kTfNonPartition"`` for other nodes.
        nodes: node indices in execution order.
        input_tensors: indices of tensors that the nodes read and do not write, including constants;
            sorted, without repeats.
        output_tensors: indices of tensors that the nodes write and that other subsets or the
            graph's outputs need; sorted, without repeats.
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
    """Split the plan into node subsets; return them in an order in which they can run.

    The plan is swept from front to back, again and again. The first ready node starts a subset
    ("epoch") and decides its kind: for the delegate or not. The subset takes ready nodes of its
    kind until none remain. A node is ready when all its inputs are computed.

    Args:
        graph: the nodes in plan order.
        nodes_to_partition: *node indices* that the delegate claims. Repeated nodes and nodes that
            are not in the plan are ignored.
        greedily: whether a subset skips nodes that do not fit and takes later nodes. Otherwise a
            subset ends at the first node that does not fit, if it has already taken a node in the
            current sweep.
        control_edges: pairs of *plan positions*, (before, after). If None and *greedily*, nodes
            that might have side effects are chained in plan order. An empty list means no edges.
        disable_node_fusion: whether every node gets a separate subset.

    Raises:
        PartitionError: a node, edge or tensor index is out of range, or nodes wait for each other.

    Nodes 0, 1 and 2 are a chain, and node 3 also reads from node 0. The delegate takes 0 and 3:

    >>> nodes = [NodeInfo([0], [1]), NodeInfo([1], [2]), NodeInfo([2], [3]), NodeInfo([1], [4])]
    >>> graph = GraphInfo(nodes, [0, 1, 2, 3], 4, inputs=[0], outputs=[3, 4])
    >>> for subset in partition_graph_into_independent_node_subsets(graph, [0, 3], greedily=True):
    ...     print(subset.type, subset.nodes, subset.input_tensors, subset.output_tensors)
    kTfPartition [0, 3] [0] [1, 4]
    kTfNonPartition [1, 2] [1] [3]
    """
    _check_plan(graph)
    kinds = _kinds(graph, nodes_to_partition)
    edges = _edges(graph, greedily, control_edges)
    with collector_paused():  # subsets form no cycles, and there may be tens of thousands
        partitioner = _Partitioner(graph, kinds, edges)
        if disable_node_fusion:
            partitioner.take_one_by_one()
        elif greedily:
            partitioner.take_greedily()
        else:
            partitioner.take_in_plan_order()
        partitioner.require_all_taken()
        return partitioner.finished_subsets()


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
    """Return, for each position of the plan, whether the delegate claims the node there."""
    wanted = set(nodes_to_partition)
    _check_nodes("nodes_to_partition", wanted, graph.num_total_nodes)
    return [index in wanted for index in graph.execution_plan]


def _edges(
    graph: GraphInfo, greedily: bool, control_edges: Iterable[ControlEdge] | None
) -> list[ControlEdge]:
    """Return *control_edges*; if None, edges due to side effects if *greedily*, else no edges."""
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
    return list(pairwise(i for i, node in enumerate(graph.nodes) if node.might_have_side_effect))


class _Partitioner:
    """State while a plan is cut into node subsets: the ready nodes, and the readers of tensors.

    The readers of a tensor are a linked list: ``_newest[tensor]`` is its first entry,
    ``_reader[entry]`` the plan position that reads the tensor, ``_older[entry]`` the next entry or
    -1. A Python list for each tensor would be simpler, but slower to create.
    """

    def __init__(self, graph: GraphInfo, kinds: list[bool], edges: list[ControlEdge]) -> None:
        self._nodes, self._plan = graph.nodes, graph.execution_plan
        self._outputs = graph.outputs
        self._kinds = kinds
        self._subsets: list[NodeSubset] = []
        self._made_in: dict[int, int] = {}  # tensor to the subset that wrote it last
        self._newest = self._unmade_tensors()
        self._reader: list[int] = []
        self._older: list[int] = []
        # Number of inputs and edges that each plan position waits for: 0 is ready, -1 is taken.
        self._missing: list[int] = []
        self._link_readers()
        self._edges = edges
        self._successors: dict[int, list[int]] = {}
        for before, after in edges:
            self._successors.setdefault(before, []).append(after)
            self._missing[after] += 1

    def _unmade_tensors(self) -> dict[int, int]:
        """Tensors that the plan writes, each mapped to -1, which means that none reads it yet."""
        newest = {tensor: -1 for node in self._nodes for tensor in node.outputs}
        newest.pop(_ABSENT, None)
        if min(newest, default=0) < 0:
            raise self._bad_tensor("writes", min(newest))
        return newest

    def _link_readers(self) -> None:
        newest, readers, older = self._newest, self._reader, self._older
        for position, node in enumerate(self._nodes):
            before = len(readers)
            for tensor in node.inputs:
                if tensor in newest:
                    older.append(newest[tensor])
                    newest[tensor] = len(readers)
                    readers.append(position)
                elif tensor < _ABSENT:
                    raise self._bad_tensor("reads", tensor)
            self._missing.append(len(readers) - before)

    # -- the three ways to go through the plan ---------------------------------------------------

    def take_greedily(self) -> None:
        """Cut the plan so that each subset takes every node of its kind that can run.

        In the queue, ``position + plan length`` stands for ``position`` in the next sweep.
        """
        if self._is_one_subset():
            self._open_subset(True)
            for position in range(len(self._kinds)):
                self._take(position)
            return
        from heapq import heappop, heappush  # here: most plans are one subset

        kinds, count = self._kinds, len(self._kinds)
        queues = self._ready_by_kind()
        while queues[0] or queues[1]:
            kind = not queues[0] or (bool(queues[1]) and queues[1][0] < queues[0][0])
            queue, other_queue = queues[kind], queues[not kind]
            self._open_subset(kind)
            while queue:
                turn = heappop(queue)
                position = turn % count
                sweep = turn - position
                for freed in self._take(position):
                    if kinds[freed] != kind:
                        heappush(other_queue, freed)
                    elif freed > position:
                        heappush(queue, sweep + freed)
                    else:  # this sweep has passed the node already
                        heappush(queue, sweep + count + freed)

    def _is_one_subset(self) -> bool:
        """Whether the delegate claims all nodes, and none waits for a later node's output."""
        if (
            not self._kinds
            or not all(self._kinds)
            or any(before >= after for before, after in self._edges)
        ):
            return False
        unmade = set(self._newest)
        for node in self._nodes:
            if not unmade.isdisjoint(node.inputs):
                return False
            unmade.difference_update(node.outputs)
        return True

    def take_in_plan_order(self) -> None:
        """Cut the plan in its own order; a node of the other kind ends a subset.

        If the last node of a sweep joined the subset, the subset continues with another sweep.
        """
        from heapq import heappop, heappush

        kinds, count, missing = self._kinds, len(self._kinds), self._missing
        queues = self._ready_by_kind()  # may still contain nodes that were taken

        def lowest(queue: list[int]) -> int:
            while queue and missing[queue[0]]:
                heappop(queue)
            return queue[0] if queue else count

        while (position := min(lowest(queues[0]), lowest(queues[1]))) < count:
            kind = kinds[position]
            self._open_subset(kind)
            while position < count:
                while position < count and not missing[position] and kinds[position] == kind:
                    for freed in self._take(position):
                        heappush(queues[kinds[freed]], freed)
                    position += 1
                if position < count:
                    break
                position = lowest(queues[kind])

    def take_one_by_one(self) -> None:
        """Put each node into a subset of its own, in the order of the plan."""
        from heapq import heappop, heappush

        queue = sorted(chain.from_iterable(self._ready_by_kind()))
        while queue:
            position = heappop(queue)
            self._open_subset(self._kinds[position])
            for freed in self._take(position):
                heappush(queue, freed)

    def _ready_by_kind(self) -> tuple[list[int], list[int]]:
        """Return two heaps of ready plan positions: nodes for other kernels, for the delegate."""
        queues: tuple[list[int], list[int]] = ([], [])
        for position, missing in enumerate(self._missing):
            if not missing:
                queues[self._kinds[position]].append(position)
        return queues

    def _open_subset(self, kind: bool) -> None:
        self._subsets.append(NodeSubset("kTfPartition" if kind else "kTfNonPartition", [], [], []))

    def _take(self, position: int) -> list[int]:
        """Add the node at a plan position to the last subset; return positions that can run now."""
        node, missing, newest = self._nodes[position], self._missing, self._newest
        subset, epoch = self._subsets[-1], len(self._subsets) - 1
        missing[position] = _TAKEN
        subset.nodes.append(self._plan[position])
        ready = []
        for tensor in node.outputs:
            self._made_in[tensor] = epoch
            entry = newest.pop(tensor, -1)  # a tensor is ready once its first writer has run
            while entry >= 0:
                reader = self._reader[entry]
                missing[reader] -= 1
                if not missing[reader]:
                    ready.append(reader)
                entry = self._older[entry]
        for tensor in node.inputs:
            source = self._made_in.get(tensor)
            if source != epoch and tensor != _ABSENT:
                subset.input_tensors.append(tensor)
                if source is not None:
                    self._subsets[source].output_tensors.append(tensor)
        if position in self._successors:
            ready += self._freed_by_edges(position)
        return ready

    def _freed_by_edges(self, position: int) -> Iterator[int]:
        for after in self._successors[position]:
            self._missing[after] -= 1
            if not self._missing[after]:
                yield after

    # -- the end -------------------------------------------------------------------------------

    def require_all_taken(self) -> None:
        """Raise :class:`PartitionError` that names the first node that never became ready."""
        for position, missing in enumerate(self._missing):
            if missing != _TAKEN:
                raise PartitionError(
                    f"node {self._plan[position]} at plan position {position} can never run: it "
                    f"waits for {self._obstacle(position)}"
                )

    def _obstacle(self, position: int) -> str:
        for tensor in self._nodes[position].inputs:
            if tensor in self._newest:
                return f"tensor {tensor}, whose node waits for it in turn or is itself stuck"
        before = next(b for b, a in self._edges if a == position and self._missing[b] != _TAKEN)
        return f"plan position {before} by a control edge, which is stuck as well"

    def _bad_tensor(self, verb: str, tensor: int) -> PartitionError:
        lists = [node.outputs if verb == "writes" else node.inputs for node in self._nodes]
        position = next(i for i, tensors in enumerate(lists) if tensor in tensors)
        return PartitionError(
            f"node {self._plan[position]} {verb} tensor {tensor}; only -1 may be negative"
        )

    def finished_subsets(self) -> list[NodeSubset]:
        """Return the subsets, with graph outputs added to their outputs and tensors sorted."""
        for tensor in self._outputs:
            if tensor < _ABSENT:
                raise PartitionError(f"tensor {tensor} is a graph output; only -1 may be negative")
            if tensor in self._made_in and tensor != _ABSENT:  # others are passed through
                self._subsets[self._made_in[tensor]].output_tensors.append(tensor)
        for subset in self._subsets:
            if len(subset.input_tensors) > 1:
                subset.input_tensors = sorted(set(subset.input_tensors))
            if len(subset.output_tensors) > 1:
                subset.output_tensors = sorted(set(subset.output_tensors))
        return self._subsets
