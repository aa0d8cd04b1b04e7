"""Placement of a model's nodes: their delegates, rejections, and tensors between partitions.

``Interpreter.placement`` returns a placement; tools and the command line print it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from delegraph.delegation.html_tables import html_table
from delegraph.delegation.incident import Incident
from delegraph.delegation.rejections import NO_REASON, Rejection
from delegraph.graph.dtypes import total_bytes
from delegraph.graph.model import VALIDATION
from delegraph.json_records import to_json
from delegraph.lazy_dataclass import dataclass, field

BY_DEFAULT = "by default"
"""Remark on a delegate that was applied although the user did not name it."""


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """The delegate or kernel that computes one node of the original graph.

    Attributes:
        subgraph: index of the node's subgraph.
        index: index of the node.
        op: operator name.
        delegate: name of the delegate that runs the node; None if no delegate does.
        partition: position in ``Placement.partitions``; None if no delegate runs the node. It is in
            another subgraph if a delegate computes the calling node together with this subgraph.
        rejections: mapping from a delegate's name to its reason for rejecting the node.
        name: name of its first output tensor; may be empty.
        is_unresolved: whether the node cannot run, since no kernel or delegate has its operator.
        is_by_default: whether the default delegate runs the node, after all others rejected it.
        is_constant: whether the host computes the node once, in preparation, because the node
            widens a constant. Constant nodes are left out of counts and reasons.
        plugin: name of the plugin whose custom operator runs the node; empty if none does.
    """

    subgraph: int
    index: int
    op: str
    delegate: str | None = None
    partition: int | None = None
    rejections: Mapping[str, Rejection] = field(default_factory=dict)
    name: str = ""
    is_unresolved: bool = False
    is_by_default: bool = False
    is_constant: bool = False
    plugin: str = ""

    def __str__(self) -> str:
        where = f" of subgraph {self.subgraph}" if self.subgraph else ""
        return f"node {self.index} ({self.op}){where}"

    def refusals(self, delegates: Iterable[str]) -> Iterator[tuple[str, Rejection]]:
        """Yield each of *delegates* that rejected the node, with the reason.

        If no requested delegate runs the node, all of them rejected it; delegates without a
        recorded rejection get the reason "no reason given". A constant node has no reasons.
        """
        if self.is_constant:
            return
        is_left = self.delegate is None or self.is_by_default
        for delegate in dict.fromkeys(delegates):
            if (rejection := self.rejections.get(delegate)) is not None:
                yield delegate, rejection
            elif is_left and delegate != self.delegate:
                yield delegate, NO_REASON


@dataclass(frozen=True, slots=True)
class PartitionPlacement:
    """A delegate node, and the original nodes that it replaces.

    Attributes:
        subgraph: index of the subgraph.
        delegate: name of the delegate.
        index: position in ``Placement.partitions``.
        node_index: index of the delegate node.
        nodes: indices of the original nodes, in execution order.
        inputs: indices of tensors that the partition reads but does not compute, including
            constants and tensors that the host computes once.
        outputs: indices of computed tensors that other nodes or the user read.
        input_bytes: number of bytes of all inputs except constants; None if any size is unknown.
        output_bytes: number of bytes of all outputs; None if any size is unknown.
        constant_bytes: number of bytes of the constants among the inputs, as stored in the file.
        is_asynchronous: whether its kernel has ``eval_async``, so other nodes can run meanwhile.
        overlaps: positions of the partitions that may run at the same time as this one; known once
            tensors are allocated.
        is_by_default: whether it belongs to the default delegate, which the user did not name.
    """

    subgraph: int
    delegate: str
    index: int
    node_index: int
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_bytes: int | None = 0
    output_bytes: int | None = 0
    constant_bytes: int = 0
    is_asynchronous: bool = False
    overlaps: tuple[int, ...] = ()
    is_by_default: bool = False


@dataclass(frozen=True, slots=True)
class Crossing:
    """A tensor that crosses the boundary of a partition.

    Attributes:
        subgraph: index of the subgraph.
        tensor: tensor index.
        name: name of the tensor; may be empty.
        bytes: bytes for the present shape; None if the shape is known only while invoking.
        source: partition that computes the tensor; None for kernels, graph inputs and variables.
        target: partition that reads the tensor; None for Delegraph's kernels and graph outputs.
        is_copied: whether the data is copied here from or to a delegate's own buffer; known after
            ``invoke``, False before.
    """

    subgraph: int
    tensor: int
    name: str
    bytes: int | None
    source: int | None
    target: int | None
    is_copied: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """The delegate or kernel of every node; ``str()`` gives one line, ``to_json()`` everything.

    Attributes:
        nodes: every node of every subgraph, in the model's order.
        partitions: every delegate node, by subgraph and execution order; nodes of the default
            delegate come last.
        delegates: names of the applied delegates, in order, including delegates without nodes.
        crossings: every tensor, except constants, that enters or leaves a partition, once for each
            pair of source and target; sorted by subgraph and by the readers' execution order.
        subgraph_names: names of the model's subgraphs, each of which may be empty.
        quarantined: names of delegates with wrong results, found by ``on_failure="shadow"``;
            Delegraph's kernels compute their partitions.
        notes: mapping from a delegate's name to its note for users about its results, if any.
        host: name of the runtime whose kernels compute the nodes without a delegate.
        default_delegate: name of the default delegate, which gets nodes that all others rejected
            and is the last of ``delegates``; None if there is none.
        incidents: failures of delegates after which the interpreter went on. A default delegate
            that failed is removed, so it may be missing from ``delegates``.
    """

    nodes: tuple[NodePlacement, ...]
    partitions: tuple[PartitionPlacement, ...]
    delegates: tuple[str, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    subgraph_names: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    host: str = "Delegraph"
    default_delegate: str | None = None
    incidents: tuple[Incident, ...] = ()

    def __str__(self) -> str:
        nodes = self.computed_nodes()
        total, constants = len(nodes), len(self.nodes) - len(nodes)
        text = f"{total} node{'s' * (total != 1)}: " + ", ".join(self._shares(nodes))
        once = f"; {constants} constant{'s' * (constants != 1)}, computed once" * bool(constants)
        failed = [each for each in self.incidents if each.delegate not in self.quarantined]
        failures = dict.fromkeys(f"{each.delegate} failed in {each.phase}" for each in failed)
        return "; ".join([text + once, *failures])

    def _shares(self, nodes: Sequence[NodePlacement]) -> list[str]:
        """Texts with the numbers of *nodes* of each delegate, of the host, and without any."""
        taken = Counter(node.delegate for node in nodes if node.delegate is not None)
        parts = Counter(partition.delegate for partition in self.partitions)
        default, names = self.default_delegate, self.requested_delegates
        rest = [] if default is None or not taken[default] else [default]
        offered = Counter(node.plugin for node in nodes if node.delegate is None and node.plugin)
        unresolved = len(self.unresolved())
        stay = len(nodes) - taken.total() - offered.total() - unresolved
        told = [self._share(name, taken[name], parts[name]) for name in names or rest]
        if names and rest:
            told[-1] += f"; the rest: {self._rest(rest[0], taken[rest[0]], stay)}"
        elif stay or not (taken or offered or unresolved):
            told.append(f"{stay} stay{'s' * (stay == 1)} with {self.host}'s kernels")
        told += [f"{n} run{'s' * (n == 1)} on kernels of plugin {p}" for p, n in offered.items()]
        return [*told, f"{unresolved} that nothing can run"] if unresolved else told

    def _rest(self, default: str, nodes: int, stay: int) -> str:
        """Text that says who runs other nodes: *nodes* on *default*, and *stay* on the host."""
        remarks = "; ".join(self._remarks(default)) or BY_DEFAULT
        both = f"{nodes} on {default} ({remarks}), {stay} on {self.host}'s kernels"
        return both if stay else f"{default}, {remarks}"

    @property
    def requested_delegates(self) -> tuple[str, ...]:
        """Names of the requested delegates, each once, in order; without the default delegate."""
        return tuple(d for d in dict.fromkeys(self.delegates) if d != self.default_delegate)

    def __repr__(self) -> str:
        return f"<Placement of {self}>"

    def _repr_html_(self) -> str:
        """HTML table of the nodes, which notebooks display."""
        columns = ("subgraph", "node", "operator", "name", "runs on", "partition", "left by")
        keys = ("subgraph", "node", "operator", "name", "delegate", "partition", "reasons")
        rest = {"delegate": f"{self.default_delegate}, {BY_DEFAULT}", "partition": None}
        shown = [{**row, **rest} if row["is_by_default"] else row for row in self.rows()]
        return html_table(str(self), columns, [[row[key] for key in keys] for row in shown])

    def _share(self, delegate: str, nodes: int, partitions: int) -> str:
        if not nodes:
            return f"{delegate} takes none"
        remarks = "; ".join(self._remarks(delegate))
        places = f"{partitions} partition{'s' * (partitions != 1)}"
        return f"{delegate} takes {nodes} in {places}" + f" ({remarks})" * bool(remarks)

    def _remarks(self, delegate: str) -> list[str]:
        remarks = ["quarantined"] if delegate in self.quarantined else []
        if any(p.delegate == delegate and p.is_asynchronous for p in self.partitions):
            remarks.append("asynchronous")
        return [*remarks, *([self.notes[delegate]] if delegate in self.notes else [])]

    def computed_nodes(self) -> list[NodePlacement]:
        """Return the nodes that are computed at each ``invoke``: all nodes except constant ones."""
        return [node for node in self.nodes if not node.is_constant]

    def unresolved(self) -> list[NodePlacement]:
        """Return the nodes that neither a kernel nor a delegate runs; then the model cannot run."""
        return [node for node in self.nodes if node.is_unresolved]

    def nodes_to_delegate(self) -> Iterator[NodePlacement]:
        """Yield the computed nodes, except those in subgraphs that are never delegated."""
        barred = {i for i, name in enumerate(self.subgraph_names) if is_never_delegated(name)}
        return (node for node in self.computed_nodes() if node.subgraph not in barred)

    @property
    def requested_partitions(self) -> tuple[PartitionPlacement, ...]:
        """The partitions of requested delegates, without those of the default delegate."""
        return tuple(p for p in self.partitions if not p.is_by_default)

    @property
    def requested_crossings(self) -> tuple[Crossing, ...]:
        """The crossings into and out of partitions of requested delegates."""
        return tuple(c for c in self.crossings if self._is_requested(c))

    def _is_requested(self, crossing: Crossing) -> bool:
        ends = (crossing.source, crossing.target)
        return any(i is not None and not self.partitions[i].is_by_default for i in ends)

    @property
    def shown_crossings(self) -> tuple[Crossing, ...]:
        """The crossings of requested delegates, or all crossings if no delegate was requested."""
        return self.requested_crossings if self.requested_delegates else self.crossings

    @property
    def crossing_bytes(self) -> int | None:
        """Number of bytes of :attr:`requested_crossings`; None if any size is unknown."""
        return total_bytes(crossing.bytes for crossing in self.requested_crossings)

    @property
    def unknown_crossings(self) -> int:
        """Number of :attr:`requested_crossings` whose size is known only while invoking."""
        return sum(crossing.bytes is None for crossing in self.requested_crossings)

    def rows(self) -> list[dict[str, str | int | bool | None]]:
        """Return one flat dictionary per node, in model order, for ``pandas.DataFrame(rows)``.

        Columns:
            subgraph, node: indices of the subgraph and of the node.
            operator: name of the operator.
            name: name of the node's first output tensor.
            is_delegated: whether a requested delegate runs the node.
            is_by_default: whether the default delegate runs the node.
            is_unresolved: whether nothing runs the node.
            is_constant: whether the host computes the node once.
            delegate, partition: the delegate that runs the node; None for Delegraph's kernels.
            refused_by: delegates that rejected the node, joined by ``; ``; may be empty.
            constraints: ids of the delegates' reasons, in the same order.
            reasons: texts of the delegates' reasons, each after the delegate's name.
        """
        return [self._row(node) for node in self.nodes]

    def _row(self, node: NodePlacement) -> dict[str, str | int | bool | None]:
        refusals = list(node.refusals(self.delegates))
        return {
            "subgraph": node.subgraph,
            "node": node.index,
            "operator": node.op,
            "name": node.name,
            "is_delegated": node.delegate is not None and not node.is_by_default,
            "is_by_default": node.is_by_default,
            "is_unresolved": node.is_unresolved,
            "is_constant": node.is_constant,
            "delegate": node.delegate,
            "partition": node.partition,
            "refused_by": "; ".join(delegate for delegate, _ in refusals),
            "constraints": "; ".join(reason.constraint for _, reason in refusals),
            "reasons": "; ".join(f"{delegate}: {reason}" for delegate, reason in refusals),
        }

    def to_json(self) -> dict[str, Any]:
        """Return the placement as JSON-ready dictionaries and lists.

        ``totals`` counts partitions and crossings of requested delegates, ``default_totals`` all
        others. ``nodes`` counts nodes computed at each invoke, ``constants`` all other nodes.
        """
        computed = self.computed_nodes()
        others = [crossing for crossing in self.crossings if not self._is_requested(crossing)]
        return {
            "summary": str(self),
            "delegates": list(self.delegates),
            "default_delegate": self.default_delegate,
            "quarantined": list(self.quarantined),
            "notes": dict(self.notes),
            "incidents": to_json(self.incidents),
            "totals": {
                "nodes": len(computed),
                "constants": len(self.nodes) - len(computed),
                "delegated": sum(n.delegate is not None and not n.is_by_default for n in computed),
                "by_default": sum(node.is_by_default for node in computed),
                "unresolved": len(self.unresolved()),
                **_totals(self.requested_partitions, self.requested_crossings),
            },
            "default_totals": _totals([p for p in self.partitions if p.is_by_default], others),
            "subgraphs": list(self.subgraph_names),
            "partitions": to_json(self.partitions),
            "crossings": to_json(self.crossings),
            "nodes": [_node_json(node, self.delegates) for node in self.nodes],
        }


def _totals(
    partitions: Sequence[PartitionPlacement], crossings: Sequence[Crossing]
) -> dict[str, int | None]:
    return {
        "partitions": len(partitions),
        "crossings": len(crossings),
        "crossing_bytes": total_bytes(crossing.bytes for crossing in crossings),
        "copies": sum(crossing.is_copied for crossing in crossings),
    }


def _node_json(node: NodePlacement, delegates: Sequence[str]) -> dict[str, Any]:
    return {
        "subgraph": node.subgraph,
        "index": node.index,
        "op": node.op,
        "name": node.name,
        "delegate": node.delegate,
        "partition": node.partition,
        "is_unresolved": node.is_unresolved,
        "is_by_default": node.is_by_default,
        "is_constant": node.is_constant,
        "rejections": {name: reason.to_json() for name, reason in node.refusals(delegates)},
    }


def is_never_delegated(subgraph_name: str) -> bool:
    """Whether a subgraph is for validation, by its name, so that no delegate is applied to it."""
    return subgraph_name.startswith(VALIDATION)


def reason_in_words(node: NodePlacement, delegate: str) -> str:
    """Text of the reason why *delegate* does not run a node.

    >>> node = NodePlacement(0, 1, "ADD", rejections={"sin": Rejection("op", actual="ADD")})
    >>> reason_in_words(node, "sin")
    'op: is ADD'
    """
    if delegate not in node.rejections and node.delegate not in (None, delegate):
        return f"{node.delegate} has it"
    return str(node.rejections.get(delegate, NO_REASON))


def refusals_in_words(node: NodePlacement, delegates: Sequence[str]) -> str:
    """Text of the reasons of all *delegates* that rejected a node, on one line."""
    told = ", ".join(f"{name} says {reason}" for name, reason in node.refusals(delegates))
    return told or "no delegate is applied"


def node_numbers(indices: Iterable[int]) -> str:
    """Text of node indices in ascending order; runs of indices are abbreviated.

    >>> node_numbers([5, 0, 1, 2])
    '0-2, 5'
    """
    parts = []
    for _, run in groupby(enumerate(sorted(indices)), key=lambda item: item[1] - item[0]):
        found = [index for _, index in run]
        parts.append(str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}")
    return ", ".join(parts)
