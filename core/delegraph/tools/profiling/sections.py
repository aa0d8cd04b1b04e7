"""Times of nodes and of their types in one section of a profile, with the shares of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar

from delegraph.json_records import JsonRecord, to_json
from delegraph.tools.latency import Latency


@dataclass(frozen=True, slots=True)
class NodeTime(JsonRecord):
    """Time of one node, or of nodes that are computed together, over all runs.

    Attributes:
        subgraph: index of the node's subgraph.
        node_index: index of the node; the index of a delegate node is not in the file.
        node_type: name of the operator, or of the delegate.
        name: output tensors and index of the node, as ``benchmark_model`` prints them.
        run_order: position of the node in the order of first runs, from 0.
        delegate: delegate that ran the node; None means the runtime's kernels.
        partition: position in ``Placement.partitions``; None for nodes outside of partitions.
        model_nodes: indices of the model's nodes that are computed, in execution order.
        calls: seconds of each single call.
        times_called: number of calls per run.
        output_bytes: number of bytes of its outputs; None if unknown.
    """

    json_properties: ClassVar = {"seconds": "seconds"}

    subgraph: int
    node_index: int = field(metadata={"json_key": "node"})
    node_type: str
    name: str
    run_order: int
    delegate: str | None
    partition: int | None
    model_nodes: tuple[int, ...]
    calls: Latency
    times_called: float
    output_bytes: int | None

    @property
    def seconds(self) -> float:
        """Run time in seconds per run of the model, by the median of the calls."""
        return self.calls.median * self.times_called


@dataclass(frozen=True, slots=True)
class TypeTime:
    """Time of all nodes of one operator type.

    Attributes:
        node_type: name of the operator, or of the delegate.
        count: number of nodes.
        seconds: seconds per run of all these nodes, by the medians of the calls.
        times_called: number of calls per run of all these nodes.
        output_bytes: number of bytes of their outputs; None if any size is unknown.
    """

    node_type: str
    count: int
    seconds: float
    times_called: float
    output_bytes: int | None


@dataclass(frozen=True, slots=True)
class Section:
    """Nodes whose times add up: those of a subgraph, or those inside a delegate.

    Times are medians, which other work on the machine hardly changes.

    Attributes:
        title: description of the section.
        subgraph: index of the subgraph; None if the section belongs to a delegate.
        delegate: name of the delegate; None if the section belongs to a subgraph. The times of a
            delegate's section are also included in the times of its delegate nodes.
        nodes: the nodes in run order.
    """

    title: str
    subgraph: int | None
    delegate: str | None
    nodes: tuple[NodeTime, ...]

    @property
    def seconds(self) -> float:
        """Seconds per run of all nodes together, by the medians of their calls."""
        return sum(node.seconds for node in self.nodes)

    def by_time(self) -> list[NodeTime]:
        """Return the nodes, slowest first."""
        return sorted(self.nodes, key=lambda node: -node.seconds)

    def by_type(self) -> list[TypeTime]:
        """Return the types of nodes, slowest first."""
        kinds = {kind: [n for n in self.nodes if n.node_type == kind] for kind in self._types()}
        found = (
            TypeTime(
                kind,
                len(nodes),
                sum(node.seconds for node in nodes),
                sum(node.times_called for node in nodes),
                total_bytes(node.output_bytes for node in nodes),
            )
            for kind, nodes in kinds.items()
        )
        return sorted(found, key=lambda kind: -kind.seconds)

    def _types(self) -> list[str]:
        return list(dict.fromkeys(node.node_type for node in self.nodes))

    def shares(self, rows: Iterable[NodeTime | TypeTime]) -> list[tuple[float, float]]:
        """Return each row's share of the section's time, and the cumulative share; 0 to 1."""
        total = self.seconds
        own = [row.seconds / total if total else 0.0 for row in rows]
        return list(zip(own, accumulate(own), strict=True))


def sections_json(sections: Iterable[Section]) -> list[dict[str, Any]]:
    """Return sections for JSON, with the shares of their nodes and types."""
    return [_section_json(section, section.by_type()) for section in sections]


def _section_json(section: Section, kinds: Sequence[TypeTime]) -> dict[str, Any]:
    shares, kind_shares = section.shares(section.nodes), section.shares(kinds)
    return {
        "title": section.title,
        "subgraph": section.subgraph,
        "delegate": section.delegate,
        "seconds": section.seconds,
        "nodes": [
            {**node.to_json(), "share": share}
            for node, (share, _) in zip(section.nodes, shares, strict=True)
        ],
        "by_type": [
            {**to_json(kind), "share": share, "cdf": cdf}
            for kind, (share, cdf) in zip(kinds, kind_shares, strict=True)
        ],
    }


def total_bytes(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of sizes; None if any is unknown."""
    found = list(sizes)
    known = [size for size in found if size is not None]
    return sum(known) if len(known) == len(found) else None
