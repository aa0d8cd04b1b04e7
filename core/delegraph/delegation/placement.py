"""Which delegate has each node of the original graph, and why others left it.

An ``Interpreter`` builds one after every change of its plan; tools and the command line print it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delegraph.delegation.delegate import Rejection


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """Where one node of the original graph runs.

    Attributes:
        subgraph: index of its subgraph.
        index: index of the node.
        op: operator name.
        delegate: name of the delegate that runs it; None for Delegraph's own kernel.
        partition: position in ``Placement.partitions``; None without a delegate.
        rejections: delegate name to the reason why that delegate left the node.
    """

    subgraph: int
    index: int
    op: str
    delegate: str | None = None
    partition: int | None = None
    rejections: Mapping[str, Rejection] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionPlacement:
    """A delegate node and what it replaces.

    Attributes:
        subgraph: index of the subgraph.
        delegate: name of the delegate.
        index: position in ``Placement.partitions``.
        node_index: index of the delegate node.
        nodes: original nodes it computes, in execution order.
        inputs: tensor indices read from outside, constants among them.
        outputs: tensor indices that others read.
    """

    subgraph: int
    delegate: str
    index: int
    node_index: int
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where every node runs. ``str()`` is one line; ``to_json()`` is all of it.

    Attributes:
        nodes: every node of every subgraph, in the model's order.
        partitions: every delegate node, by subgraph and execution order.
        delegates: names of the delegates applied, in order, those that took nothing included.
    """

    nodes: tuple[NodePlacement, ...]
    partitions: tuple[PartitionPlacement, ...]
    delegates: tuple[str, ...] = ()

    def __str__(self) -> str:
        total = len(self.nodes)
        taken = Counter(node.delegate for node in self.nodes if node.delegate is not None)
        parts = Counter(partition.delegate for partition in self.partitions)
        phrases = [
            f"{name} takes {taken[name]} in {parts[name]} partition{'s' * (parts[name] != 1)}"
            for name in dict.fromkeys(self.delegates)
        ]
        rest = total - sum(taken.values())
        phrases.append(f"{rest} stay{'s' * (rest == 1)} with Delegraph's kernels")
        return f"{total} node{'s' * (total != 1)}: " + ", ".join(phrases)

    def to_json(self) -> dict[str, Any]:
        """Return the placement as JSON-ready dictionaries and lists."""
        return {
            "summary": str(self),
            "delegates": list(self.delegates),
            "partitions": [
                {
                    "subgraph": p.subgraph,
                    "delegate": p.delegate,
                    "index": p.index,
                    "node_index": p.node_index,
                    "nodes": list(p.nodes),
                    "inputs": list(p.inputs),
                    "outputs": list(p.outputs),
                }
                for p in self.partitions
            ],
            "nodes": [
                {
                    "subgraph": n.subgraph,
                    "index": n.index,
                    "op": n.op,
                    "delegate": n.delegate,
                    "partition": n.partition,
                    "rejections": {name: r.to_json() for name, r in n.rejections.items()},
                }
                for n in self.nodes
            ],
        }
