"""Builds the ``Placement`` of a model that an official interpreter runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.incident import Incident
from delegraph.delegation.matched_rules import MatchedRules
from delegraph.delegation.partition_numbers import default_delegate_last
from delegraph.delegation.placement import (
    Crossing,
    NodePlacement,
    PartitionPlacement,
    Placement,
)
from delegraph.delegation.rules import shortened
from delegraph.errors import PlacementError
from delegraph.graph.constant_nodes import constant_nodes
from delegraph.graph.dtypes import BITS, OBJECT_TYPES, byte_size, total_bytes
from delegraph.graph.model import Model, SubgraphSpec
from delegraph.native.litert.delegate import NO_CLAIMS, Claims, LiteRtDelegate
from delegraph.runtime.delegates.placement import crossing_tensors, notes_of

RUNTIME_DELEGATE = "XNNPACK"
"""Name of the delegate that gets the nodes without a Python delegate.

The runtime applies no other delegate by itself.
"""


@dataclass(frozen=True, slots=True)
class RuntimePartition:
    """A delegate node with the indices of the model's operators that it computes, in order.

    Attributes:
        delegate: name of the delegate.
        node_index: index of the delegate node in the runtime.
        nodes: indices of the operators in the model file.
        inputs: tensors that the delegate node reads.
        outputs: tensors that the delegate node writes.
    """

    delegate: str
    node_index: int
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class RuntimeNodes(Protocol):
    """Reports of an official runtime about the nodes and tensors of a model."""

    def partitions(
        self, spec: SubgraphSpec, known: Sequence[RuntimePartition]
    ) -> Iterable[RuntimePartition]:
        """Return the partitions that the runtime's own delegates compute in a subgraph.

        *known* are the partitions of Python delegates.
        """

    def sizes(self, spec: SubgraphSpec) -> dict[int, int]:
        """Return the present number of bytes of tensors of subgraph *spec*, by index.

        Tensors of unknown size are missing.
        """

    def final(self, spec: SubgraphSpec) -> Claims | None:
        """Return the execution plan of subgraph *spec* after all delegates; None if unknown."""


def placement_of(
    model: Model,
    delegates: Sequence[LiteRtDelegate],
    official: RuntimeNodes,
    by_default: Sequence[Delegate] = (),
    incidents: tuple[Incident, ...] = (),
) -> Placement:
    """Return the delegate or kernel of every node of *model*.

    Args:
        model: the model that the interpreter runs.
        delegates: the Python delegates in the order in which they were applied.
        official: object that reports tensor sizes and the nodes of the runtime's own delegates.
        by_default: delegates that were applied by default or by the user's configuration.
        incidents: failures of delegates so far.
    """
    names = list(dict.fromkeys(delegate.delegate_name for delegate in delegates))
    default = None if RUNTIME_DELEGATE in names else RUNTIME_DELEGATE
    nodes: list[NodePlacement] = []
    partitions: list[PartitionPlacement] = []
    crossings: list[Crossing] = []
    for spec in model.subgraphs:
        found = list(_partitions(spec, delegates))
        found += official.partitions(spec, found)
        owner = {node: partition.delegate for partition in found for node in partition.nodes}
        once = {
            node: constant
            for node, constant in constant_nodes(spec).items()
            if owner.get(node, default) == default
        }
        sizes = _Sizes(spec, official, once)
        numbered = dict(
            enumerate(_in_order(found, _last_claims(spec, delegates, official)), len(partitions))
        )
        nodes += _nodes(spec, numbered, delegates, default, once)
        crossings += _crossings(spec, numbered, sizes)
        partitions += [_placed(spec, i, p, sizes, default) for i, p in numbered.items()]
    others = sorted({p.delegate for p in partitions} - {*names}, key=lambda name: name == default)
    placement = Placement(
        tuple(nodes),
        tuple(partitions),
        (*names, *others),
        tuple(crossings),
        tuple(spec.name for spec in model.subgraphs),
        tuple(each.delegate_name for each in delegates if each.failures.is_quarantined),
        notes=notes_of([delegate.delegate for delegate in delegates], by_default),
        host="LiteRT",
        default_delegate=default if default in others else None,
        incidents=incidents,
    )
    return default_delegate_last(placement)


def require_allowed(placement: Placement, rules: MatchedRules) -> None:
    """Raise an error if a node runs on a delegate that the rules forbid.

    Python delegates never get a forbidden node, but the runtime's own delegates ignore rules.

    Raises:
        PlacementError: forbidden nodes run on a delegate; the error lists each with its rule.
    """
    broken = [
        f"{node}: {rejection}"
        for node in placement.nodes
        if node.delegate is not None
        and (rejection := rules.barred(node.subgraph, node.delegate).get(node.index)) is not None
    ]
    if broken:
        raise PlacementError(
            f"{RUNTIME_DELEGATE} has nodes that rules keep from it: {shortened(broken)}; it "
            "follows no rules: name a delegate in the rule, or run without it "
            "(BUILTIN_WITHOUT_DEFAULT_DELEGATES, --no-default-delegates)",
            delegate=RUNTIME_DELEGATE,
        )


def _last_claims(
    spec: SubgraphSpec, delegates: Sequence[LiteRtDelegate], official: RuntimeNodes
) -> Claims:
    claims = [d.claims[spec.index] for d in delegates if spec.index in d.claims]
    return official.final(spec) or (claims[-1] if claims else NO_CLAIMS)


def _in_order(partitions: Sequence[RuntimePartition], last: Claims) -> list[RuntimePartition]:
    """Return *partitions* sorted in the order of *last*, the last known execution plan."""
    position = {index: i for i, index in enumerate(last.plan)}
    node_of = {operator.index: index for index, operator in last.operators.items()}

    def rank(partition: RuntimePartition) -> int:
        """Return the position of a partition in the execution plan.

        This is the position of its delegate node. If another delegate's node has replaced the
        delegate node, it is the position of the last of the partition's nodes.
        """
        if partition.node_index in position:
            return position[partition.node_index]
        places = [position.get(node_of.get(node, -1), node) for node in partition.nodes]
        return max(places, default=-1)

    return sorted(partitions, key=rank)


def _partitions(
    spec: SubgraphSpec, delegates: Sequence[LiteRtDelegate]
) -> Iterator[RuntimePartition]:
    for delegate in delegates:
        claims = delegate.claims.get(spec.index, NO_CLAIMS)
        for node_index, replaced, inputs, outputs in claims.partitions:
            nodes = tuple(claims.operators[i].index for i in replaced if i in claims.operators)
            yield RuntimePartition(delegate.delegate_name, node_index, nodes, inputs, outputs)


class _Sizes:
    """Sizes in bytes of a subgraph's tensors, for the present shapes if the runtime has them.

    Args:
        spec: the subgraph.
        official: object that reports the present sizes.
        once: mapping from each node that only widens a constant to the index of that constant.
    """

    def __init__(self, spec: SubgraphSpec, official: RuntimeNodes, once: Mapping[int, int]) -> None:
        self._spec = spec
        self._sizes = official.sizes(spec)
        self._widened = {spec.operators[node].outputs[0]: once[node] for node in once}

    def is_constant(self, index: int) -> bool:
        """Whether a tensor's values are in the file, unchanged or in a narrower type."""
        specs, index = self._spec.tensors, self._widened.get(index, index)
        return index < len(specs) and specs[index].data is not None

    def stored(self, index: int) -> int:
        """Number of bytes of a constant in the file."""
        data = self._spec.tensors[self._widened.get(index, index)].data
        return 0 if data is None else int(data.nbytes)

    def of(self, index: int) -> int | None:
        """Number of bytes of tensor *index*; None if it is known only during invoke."""
        if index >= len(self._spec.tensors):
            return None
        spec = self._spec.tensors[index]
        if spec.type in OBJECT_TYPES:
            return None
        if index in self._sizes and spec.type not in BITS:
            return self._sizes[index]
        return None if -1 in spec.shape_signature else byte_size(spec.type, spec.shape)


def _placed(
    spec: SubgraphSpec, number: int, partition: RuntimePartition, sizes: _Sizes, default: str | None
) -> PartitionPlacement:
    inputs = [i for i in partition.inputs if i >= 0]
    return PartitionPlacement(
        spec.index,
        partition.delegate,
        number,
        partition.node_index,
        partition.nodes,
        partition.inputs,
        partition.outputs,
        total_bytes(sizes.of(i) for i in inputs if not sizes.is_constant(i)),
        total_bytes(sizes.of(i) for i in partition.outputs),
        sum(sizes.stored(i) for i in inputs if sizes.is_constant(i)),
        is_by_default=partition.delegate == default,
    )


def _nodes(
    spec: SubgraphSpec,
    partitions: Mapping[int, RuntimePartition],
    delegates: Sequence[LiteRtDelegate],
    default: str | None,
    once: Collection[int],
) -> Iterator[NodePlacement]:
    owner = {node: number for number, p in partitions.items() for node in p.nodes}
    reasons: dict[int, dict[str, Any]] = {}
    for delegate in delegates:
        claims = delegate.claims.get(spec.index, NO_CLAIMS)
        for node, rejection in claims.rejections.items():
            if node in claims.operators:
                found = reasons.setdefault(claims.operators[node].index, {})
                found[delegate.delegate_name] = rejection
    for operator in spec.operators:
        number = owner.get(operator.index)
        yield NodePlacement(
            spec.index,
            operator.index,
            operator.name,
            None if number is None else partitions[number].delegate,
            number,
            reasons.get(operator.index, {}),
            spec.tensors[operator.outputs[0]].name if operator.outputs else "",
            is_by_default=number is not None and partitions[number].delegate == default,
            is_constant=operator.index in once,
        )


def _crossings(
    spec: SubgraphSpec, partitions: Mapping[int, RuntimePartition], sizes: _Sizes
) -> Iterator[Crossing]:
    """Yield the tensors that enter or leave a partition, except constants."""
    if not partitions:
        return
    owner = {node: number for number, p in partitions.items() for node in p.nodes}
    steps = ((o.inputs, o.outputs, owner.get(o.index)) for o in spec.operators)
    for index, source, target in crossing_tensors(steps, spec.outputs, sizes.is_constant):
        yield Crossing(spec.index, index, spec.tensors[index].name, sizes.of(index), source, target)
