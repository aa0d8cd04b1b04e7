"""Placement of a model in an official interpreter, as a ``Placement``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.incident import Incident
from delegraph.delegation.matched_rules import MatchedRules
from delegraph.delegation.placement import (
    Crossing,
    NodePlacement,
    PartitionPlacement,
    Placement,
    total_bytes,
)
from delegraph.delegation.rules import shortened
from delegraph.errors import PlacementError
from delegraph.graph.dtypes import BITS, OBJECT_TYPES, byte_size
from delegraph.graph.model import Model, SubgraphSpec
from delegraph.native.abi import DELEGATE_CODE
from delegraph.native.litert.delegate import NO_CLAIMS, LiteRtDelegate
from delegraph.runtime.delegates.placement import notes_of
from delegraph.schema.enums import BuiltinOperator

RUNTIME_DELEGATE = "XNNPACK"
"""Name of the delegate that takes the nodes without a Python delegate.

The runtime applies no other delegate by itself.
"""


@dataclass(frozen=True, slots=True)
class _Partition:
    """A delegate node; its nodes are operators of the model, in execution order."""

    delegate: str
    node_index: int
    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def placement_of(
    model: Model,
    delegates: Sequence[LiteRtDelegate],
    official: Any,
    by_default: Sequence[Delegate] = (),
    incidents: tuple[Incident, ...] = (),
) -> Placement:
    """Return the delegate or kernel of every node of *model*.

    Args:
        model: the model that the interpreter runs.
        delegates: the Python delegates in the order in which they were applied.
        official: the official interpreter, which reports tensor sizes and its own delegates' nodes.
        by_default: delegates that were applied by default or by the user's configuration.
        incidents: failures of delegates so far.
    """
    names = list(dict.fromkeys(delegate.delegate_name for delegate in delegates))
    nodes: list[NodePlacement] = []
    partitions: list[PartitionPlacement] = []
    crossings: list[Crossing] = []
    for spec in model.subgraphs:
        found = list(_partitions(spec, delegates))
        if spec.index == 0:
            found += _runtime_partitions(spec, found, official)
        sizes = _Sizes(spec, official)
        numbered = dict(enumerate(_in_order(spec, found, delegates), len(partitions)))
        nodes += _nodes(spec, numbered, delegates)
        crossings += _crossings(spec, numbered, sizes)
        partitions += [_placed(spec, i, p, sizes) for i, p in numbered.items()]
    others = dict.fromkeys(p.delegate for p in partitions if p.delegate not in names)
    return Placement(
        tuple(nodes),
        tuple(partitions),
        (*names, *others),
        tuple(crossings),
        tuple(spec.name for spec in model.subgraphs),
        notes=notes_of([delegate.delegate for delegate in delegates], by_default),
        host="LiteRT",
        incidents=incidents,
    )


def require_allowed(placement: Placement, rules: MatchedRules) -> None:
    """Raise an error if a node runs on a delegate that the rules forbid.

    Python delegates never get such a node, but the runtime's own delegates do not ask.

    Raises:
        PlacementError: such nodes exist; each is listed with its rule.
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


def _in_order(
    spec: SubgraphSpec, partitions: Sequence[_Partition], delegates: Sequence[LiteRtDelegate]
) -> list[_Partition]:
    """Return partitions in the order of the execution plan after the last Python delegate."""
    claims = [d.claims[spec.index] for d in delegates if spec.index in d.claims]
    last = claims[-1] if claims else NO_CLAIMS
    position = {index: i for i, index in enumerate(last.plan)}
    node_of = {operator.index: index for index, operator in last.operators.items()}

    def rank(partition: _Partition) -> int:
        """Return the position of a delegate node, or of its last node if it was replaced."""
        if partition.node_index in position:
            return position[partition.node_index]
        places = [position.get(node_of.get(node, -1), node) for node in partition.nodes]
        return max(places, default=-1)

    return sorted(partitions, key=rank)


def _partitions(spec: SubgraphSpec, delegates: Sequence[LiteRtDelegate]) -> Iterator[_Partition]:
    for delegate in delegates:
        claims = delegate.claims.get(spec.index, NO_CLAIMS)
        for node_index, replaced, inputs, outputs in claims.partitions:
            nodes = tuple(claims.operators[i].index for i in replaced if i in claims.operators)
            yield _Partition(delegate.delegate_name, node_index, nodes, inputs, outputs)


def _runtime_partitions(
    spec: SubgraphSpec, known: Sequence[_Partition], official: Any
) -> Iterator[_Partition]:
    """Yield delegate nodes of the runtime's own delegates, with the operators they must compute.

    The runtime reports inputs and outputs of a delegate node, which are those of its partition.
    """
    ours = {partition.node_index for partition in known}
    taken = {node for partition in known for node in partition.nodes}
    maker = {i: o for o in spec.operators if o.index not in taken for i in o.outputs}
    for details in official._get_ops_details():
        name, index = details["op_name"], int(details["index"])
        inputs = tuple(int(i) for i in details["inputs"])
        outputs = tuple(int(i) for i in details["outputs"])
        is_model_operator = any(
            o.outputs == outputs and o.inputs == inputs and o.name == name for o in spec.operators
        )
        if index in ours or is_model_operator or not _is_delegate(name):
            continue
        nodes: set[int] = set()
        waiting = [i for i in outputs if i >= 0]
        while waiting:
            operator = maker.get(waiting.pop())
            if operator is not None and operator.index not in nodes:
                nodes.add(operator.index)
                waiting += [i for i in operator.inputs if i >= 0 and i not in inputs]
        yield _Partition(RUNTIME_DELEGATE, index, tuple(sorted(nodes)), inputs, outputs)


def _is_delegate(op_name: str) -> bool:
    return op_name == BuiltinOperator(DELEGATE_CODE).name or "Delegate" in op_name


class _Sizes:
    """Sizes in bytes of a subgraph's tensors, for the present shapes if the runtime has them."""

    def __init__(self, spec: SubgraphSpec, official: Any) -> None:
        self._spec = spec
        details = official.get_tensor_details() if spec.index == 0 else []
        self._sizes: dict[int, int] = {
            int(d["index"]): math.prod(map(int, d["shape"])) * np.dtype(d["dtype"]).itemsize
            for d in details
        }

    def is_constant(self, index: int) -> bool:
        """Return whether the file has the values of a tensor."""
        specs = self._spec.tensors
        return index < len(specs) and specs[index].data is not None

    def stored(self, index: int) -> int:
        """Return the bytes of a constant in the file."""
        data = self._spec.tensors[index].data
        return 0 if data is None else int(data.nbytes)

    def of(self, index: int) -> int | None:
        """Return the number of bytes of a tensor's value; None if known only during invoke."""
        if index >= len(self._spec.tensors):
            return None
        spec = self._spec.tensors[index]
        if spec.type in OBJECT_TYPES:
            return None
        if index in self._sizes and spec.type not in BITS:
            return self._sizes[index]
        return None if -1 in spec.shape_signature else byte_size(spec.type, spec.shape)


def _placed(
    spec: SubgraphSpec, number: int, partition: _Partition, sizes: _Sizes
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
    )


def _nodes(
    spec: SubgraphSpec, partitions: Mapping[int, _Partition], delegates: Sequence[LiteRtDelegate]
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
        )


def _crossings(
    spec: SubgraphSpec, partitions: Mapping[int, _Partition], sizes: _Sizes
) -> Iterator[Crossing]:
    """Yield the tensors that cross a partition boundary, in the order of the nodes reading them."""
    if not partitions:
        return
    owner = {node: number for number, p in partitions.items() for node in p.nodes}
    writer: dict[int, int | None] = {}
    seen: set[tuple[int, int | None, int | None]] = set()
    readers = [(operator.inputs, owner.get(operator.index)) for operator in spec.operators]
    for (inputs, target), outputs in zip(
        [*readers, (spec.outputs, None)],
        [*(operator.outputs for operator in spec.operators), ()],
        strict=True,
    ):
        for index in inputs:
            source = writer.get(index)
            key = (index, source, target)
            if index >= 0 and source != target and not sizes.is_constant(index) and key not in seen:
                seen.add(key)
                name = spec.tensors[index].name
                yield Crossing(spec.index, index, name, sizes.of(index), source, target)
        writer.update(dict.fromkeys(outputs, target))
