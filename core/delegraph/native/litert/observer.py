"""Observing delegate, which shows the nodes that the runtime's own accelerators have taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags, DelegateParams
from delegraph.graph.model import Model, SubgraphSpec
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.delegate import Claims, LiteRtDelegate
from delegraph.native.litert.host import ForeignDelegate
from delegraph.native.litert.interpreter_nodes import nodes_between
from delegraph.native.litert.placement import RUNTIME_DELEGATE, RuntimePartition


class _Observing(Delegate):
    """Claims no node, and stores the context of each subgraph."""

    def __init__(self) -> None:
        self.contexts: dict[int, LiteRtContext] = {}

    @property
    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def name(self) -> str:
        return "observer"

    def prepare(self, context: DelegateContext) -> None:
        assert isinstance(context, LiteRtContext)
        self.contexts[context.subgraph_index] = context


class Observer:
    """Delegate that is applied after all others; see ``RuntimeNodes``.

    It may be asked only while the compiled model is alive.

    Attributes:
        delegate: the delegate, for the runtime.
    """

    def __init__(self, model: Model) -> None:
        self._observing = _Observing()
        self.delegate = LiteRtDelegate(self._observing, model)

    def partitions(
        self, spec: SubgraphSpec, known: Sequence[RuntimePartition]
    ) -> Iterator[RuntimePartition]:
        """Yield the partitions of the runtime's own accelerators, in execution order."""
        context = self._observing.contexts.get(spec.index)
        if context is None:
            return
        for index in context.get_execution_plan():
            node, _ = context.get_node_and_registration(index)
            if not isinstance(node.delegate, ForeignDelegate):
                continue
            if isinstance(node.options, DelegateParams):
                found = (context.operators.get(i) for i in node.options.nodes_to_replace)
                nodes = tuple(operator.index for operator in found if operator is not None)
            else:
                nodes = nodes_between(spec, known, node.inputs, node.outputs)
            yield RuntimePartition(_name(node.delegate), index, nodes, node.inputs, node.outputs)

    def sizes(self, spec: SubgraphSpec) -> dict[int, int]:
        """Return the present bytes of all tensors but those of open shape."""
        context = self._observing.contexts.get(spec.index)
        if context is None:
            return {}
        tensors = context.native_tensors
        return {i: tensors.native(i).bytes for i in range(min(len(tensors), len(spec.tensors)))}

    def final(self, spec: SubgraphSpec) -> Claims | None:
        """Return the execution plan with all delegates applied."""
        return self.delegate.claims.get(spec.index)


def _name(delegate: ForeignDelegate) -> str:
    """Return the name of a runtime's delegate for the placement; some have no name."""
    name = delegate.kernel_name
    return RUNTIME_DELEGATE if "XNNPack" in name else name or "accelerator"
