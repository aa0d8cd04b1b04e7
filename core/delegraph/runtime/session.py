"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delegraph.delegation.control_edges import parse_control_edges
from delegraph.delegation.delegate import Delegate
from delegraph.graph.model import Model
from delegraph.kernels.registration import Numerics, Registration
from delegraph.runtime.delegated_plan import Snapshot
from delegraph.runtime.memory_limit import MemoryLimit
from delegraph.runtime.op_resolver import OpResolver
from delegraph.runtime.subgraph import Subgraph

_VALIDATION = "VALIDATION:"  # subgraphs with this prefix hold test data of the model's maker


@dataclass(frozen=True, slots=True)
class Options:
    """How an interpreter runs its model.

    Attributes:
        num_threads: threads that kernels may use; >= 1.
        numerics: which official kernels to round like.
        preserve_all_tensors: keep every intermediate tensor; delegates then get one node at a time.
        disable_delegate_clustering: partition in plan order instead of pulling nodes together.
        disable_delegate_node_fusion: one node in each partition.
        memory_limit: bytes that a subgraph's tensors may take; None for what suits the file.
    """

    num_threads: int
    numerics: Numerics
    preserve_all_tensors: bool
    disable_delegate_clustering: bool
    disable_delegate_node_fusion: bool
    memory_limit: int | None


class Session:
    """A loaded model with its options, resources and running subgraphs."""

    def __init__(
        self, model: Model, options: Options, custom_ops: Mapping[str, Registration] | None
    ) -> None:
        self.model = model
        self.options = options
        self.resolver = OpResolver(custom_ops)
        self.memory_limit = MemoryLimit.of(options.memory_limit, len(model.content))
        self.resources: dict[Any, Any] = {}
        self.control_edges = parse_control_edges(model.metadata, len(model.subgraphs))
        self.subgraphs = [Subgraph(spec, self) for spec in model.subgraphs]

    def allocate(self) -> None:
        """Allocate the primary subgraph; the others are allocated when they are called."""
        self.subgraphs[0].allocate()

    def close(self) -> None:
        """Let go of memory and delegates at once, without waiting for the garbage collector."""
        for subgraph in self.subgraphs:
            subgraph.close()
        self.subgraphs.clear()
        self.resources.clear()

    def apply(self, delegate: Delegate) -> None:
        """Apply a delegate to every subgraph that may be delegated, or to none.

        Raises:
            DelegateError: it failed on one of them; all are as they were before.
        """
        targets = [s for s in self.subgraphs if not s.spec.name.startswith(_VALIDATION)]
        done: list[tuple[Subgraph, Snapshot]] = []
        try:
            for subgraph in targets:
                before = subgraph.plan.snapshot()
                subgraph.plan.apply(delegate)
                done.append((subgraph, before))
        except BaseException:
            for subgraph, before in done:
                subgraph.plan.restore(before)
            raise
