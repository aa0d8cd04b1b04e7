"""A delegate that claims nothing and observes the nodes of the runtime's own accelerators."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from delegraph.delegation.delegate import Delegate, DelegateContext, DelegateFlags
from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec
from delegraph.native.abi import (
    DELEGATE_CODE,
    TfLiteContext,
    TfLiteDelegateParams,
    TfLiteTensor,
    ints_at,
)
from delegraph.native.litert.context import LiteRtContext
from delegraph.native.litert.delegate import Claims, LiteRtDelegate
from delegraph.native.litert.interpreter_nodes import nodes_between
from delegraph.native.litert.placement import RUNTIME_DELEGATE, RuntimePartition
from delegraph.native.litert.subgraph import LiteRtSubgraph
from delegraph.operators.tensor import AllocationType

_CONSTANT = (AllocationType.MMAP_RO, AllocationType.PERSISTENT_RO)


class _Nothing(Delegate):
    """A delegate that claims no node."""

    @property
    def flags(self) -> DelegateFlags:
        return DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def name(self) -> str:
        return "observer"

    def prepare(self, context: DelegateContext) -> None:
        pass


@dataclass(frozen=True, slots=True)
class _ForeignNode:
    """A delegate node that belongs to one of the runtime's own delegates.

    Attributes:
        index: index of the node.
        name: name of its kernel.
        nodes: indices of the nodes that it replaces; None if unknown.
        inputs: tensor indices.
        outputs: tensor indices.
    """

    index: int
    name: str
    nodes: tuple[int, ...] | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Observations of one subgraph after all delegates were applied.

    Attributes:
        address: address of its ``TfLiteContext``.
        plan: node indices in execution order.
        foreign: nodes of the runtime's own delegates, in execution order.
        operators: mapping from a node index to the model's operator.
    """

    address: int
    plan: tuple[int, ...]
    foreign: list[_ForeignNode]
    operators: Mapping[int, OperatorSpec]


class Observer(LiteRtDelegate):
    """Delegate that is applied after all others and claims nothing; see ``RuntimeNodes``.

    Its methods may be called only while the compiled model exists.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(_Nothing(), model)
        self._seen: dict[int, _Seen] = {}

    def apply(self, context: int) -> None:
        """Record plan and delegate nodes of the subgraph whose C context is at *context*."""
        native = LiteRtSubgraph(context)
        index, _ = native.position(len(self.model.subgraphs))
        plan, foreign, own = native.plan(), [], []
        for number in plan:
            node, kind = native.node(number)
            if kind.builtin_code != DELEGATE_CODE:
                continue
            own.append(number)
            if self.delegate_at(node.delegate) is None:
                replaced = None
                if node.builtin_data and not kind.registration_external:
                    params = TfLiteDelegateParams.from_address(node.builtin_data)
                    replaced = ints_at(params.nodes_to_replace)
                name = (kind.custom_name or b"").decode("utf-8", "replace")
                foreign.append(
                    _ForeignNode(
                        number, name, replaced, ints_at(node.inputs), ints_at(node.outputs)
                    )
                )
        operators: Mapping[int, OperatorSpec] = {
            operator.index: operator for operator in self.model.subgraphs[index].operators
        }
        if own and min(own) != len(operators):  # the runtime has left out operators of the file
            operators = LiteRtContext(context, self).operators
        self._seen[index] = _Seen(context, plan, foreign, operators)

    def partitions(
        self, spec: SubgraphSpec, known: Sequence[RuntimePartition]
    ) -> Iterator[RuntimePartition]:
        """Yield the partitions of the runtime's own accelerators, in execution order.

        *known* are the partitions of Python delegates, whose operators no accelerator computes.
        """
        seen = self._seen.get(spec.index)
        for node in () if seen is None else seen.foreign:
            assert seen is not None
            if node.nodes is None:
                nodes = nodes_between(spec, known, node.inputs, node.outputs)
            else:
                nodes = tuple(seen.operators[i].index for i in node.nodes if i in seen.operators)
            is_xnnpack = "XNNPack" in node.name
            name = RUNTIME_DELEGATE if is_xnnpack else node.name or "accelerator"
            yield RuntimePartition(name, node.index, nodes, node.inputs, node.outputs)

    def sizes(self, spec: SubgraphSpec) -> dict[int, int]:
        """Return the present sizes in bytes of all tensors of the subgraph *spec*, by index."""
        seen = self._seen.get(spec.index)
        if seen is None:
            return {}
        native = TfLiteContext.from_address(seen.address)
        count = min(int(native.tensors_size), len(spec.tensors))
        size = ctypes.sizeof(TfLiteTensor)
        return {
            i: int(TfLiteTensor.from_address(native.tensors + i * size).bytes) for i in range(count)
        }

    def memory(self, spec: SubgraphSpec) -> int:
        """Return the number of bytes of the tensors of subgraph *spec*, except constants."""
        seen = self._seen.get(spec.index)
        if seen is None:
            return 0
        native = TfLiteContext.from_address(seen.address)
        size, end, total = ctypes.sizeof(TfLiteTensor), 0, 0
        places = []
        for i in range(int(native.tensors_size)):
            tensor = TfLiteTensor.from_address(native.tensors + i * size)
            if tensor.data and tensor.allocation_type not in _CONSTANT:
                places.append((int(tensor.data), int(tensor.data + tensor.bytes)))
        for start, stop in sorted(places):  # tensors with other lifetimes share memory
            total += max(stop - max(start, end), 0)
            end = max(end, stop)
        return total

    def final(self, spec: SubgraphSpec) -> Claims | None:
        """Return the execution plan of subgraph *spec* after all delegates; None if unknown."""
        seen = self._seen.get(spec.index)
        return None if seen is None else Claims(seen.operators, [], seen.plan)
