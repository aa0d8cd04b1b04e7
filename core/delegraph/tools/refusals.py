"""Groups the rejections of a placement by reason, with the arithmetic of the rejected nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from delegraph.delegation.placement import NodePlacement, Placement
from delegraph.delegation.rejections import Rejection
from delegraph.graph.dtypes import byte_size
from delegraph.graph.macs import is_least, macs_of
from delegraph.graph.model import Model, OperatorSpec, TensorSpec

NOTHING = "nothing"
"""Word for the runner of a custom operator that nothing here can run."""

_MOST_VALUES = 4
"""Largest number of actual values that a reason lists."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes that a delegate rejected for one reason.

    Attributes:
        delegate: the delegate that rejected the nodes.
        constraint: permanent identifier of the reason.
        reason: the reason in words.
        subgraph: index of the subgraph.
        nodes: indices of the nodes.
        ops: operator names of these nodes.
        runs_on: names of the delegates that finally run the nodes, or the host's name, or
            ``nothing``, or ``NAME (plugin)`` where kernels of a plugin run them.
        macs: multiply-accumulates of the nodes.
        share: share of these in the multiply-accumulates of all explained nodes; None if there are
            none, or if those of these nodes are unknown.
        bytes: number of bytes that the nodes write.
        macs_are_least: whether the multiply-accumulates are only a least number, since the file
            lacks shapes.
    """

    delegate: str
    constraint: str
    reason: str
    subgraph: int
    nodes: tuple[int, ...]
    ops: tuple[str, ...]
    runs_on: tuple[str, ...]
    macs: int = 0
    share: float | None = None
    bytes: int = 0
    macs_are_least: bool = False


@dataclass(frozen=True, slots=True)
class NodeCost:
    """Cost of one node: its multiply-accumulates, and the number of bytes that it writes.

    ``macs_are_least`` says whether the multiply-accumulates are only a least number.
    """

    macs: int
    bytes: int
    macs_are_least: bool = False


Costs = Mapping[tuple[int, int], NodeCost]
"""Mapping from subgraph and node to the node's cost."""


def node_costs(placement: Placement, model: Model) -> Costs:
    """Return the cost of each node of a placement, for the shapes that the file declares.

    Args:
        placement: which delegate runs each node.
        model: the loaded model.
    """
    found = {}
    for node in placement.nodes:
        subgraph = model.subgraphs[node.subgraph]
        operator = subgraph.operators[node.index]
        written = _written_bytes(operator, subgraph.tensors)
        found[node.subgraph, node.index] = NodeCost(
            macs_of(operator, subgraph.tensors), written, is_least(operator, subgraph.tensors)
        )
    return found


def _written_bytes(operator: OperatorSpec, tensors: Sequence[TensorSpec]) -> int:
    outputs = [tensors[i] for i in operator.outputs if i >= 0]
    return sum(byte_size(tensor.type, tensor.shape) for tensor in outputs)


def refusals_of(placement: Placement, costs: Costs) -> tuple[Refusal, ...]:
    """Return the rejections, by delegate; rejections with the most arithmetic come first.

    Args:
        placement: which delegate runs each node.
        costs: cost of each node.
    """
    groups: dict[tuple[object, ...], list[tuple[NodePlacement, Rejection]]] = {}
    for node in placement.nodes:
        for delegate, rejection in node.refusals(placement.delegates):
            key = (
                delegate,
                node.subgraph,
                rejection.constraint,
                _message(node, rejection),
                str(rejection.expected),
            )
            groups.setdefault(key, []).append((node, rejection))
    total = sum(cost.macs for cost in costs.values())
    found = [
        _refusal(str(delegate), members, placement, costs, total)
        for (delegate, *_), members in groups.items()
    ]
    order = list(placement.delegates)
    return tuple(sorted(found, key=lambda r: (order.index(r.delegate), -r.macs, -r.bytes, r.nodes)))


_OPERATOR = "\0"
"""Text in place of an operator's name in a message that is compared with others."""


def _message(node: NodePlacement, rejection: Rejection) -> str:
    """Return the message of *rejection*, the same for all operators if it only names *node*'s."""
    if rejection.constraint != "op":
        return rejection.message
    return re.sub(rf"\b{re.escape(node.op)}\b", _OPERATOR, rejection.message)


def _refusal(
    delegate: str,
    members: Sequence[tuple[NodePlacement, Rejection]],
    placement: Placement,
    costs: Costs,
    total: int,
) -> Refusal:
    nodes = [node for node, _ in members]
    work = [costs[node.subgraph, node.index] for node in nodes]
    left, is_least = sum(cost.macs for cost in work), any(cost.macs_are_least for cost in work)
    return Refusal(
        delegate,
        members[0][1].constraint,
        _reason(members),
        nodes[0].subgraph,
        tuple(node.index for node in nodes),
        tuple(node.op for node in nodes),
        tuple(dict.fromkeys(runner_of(node, placement.host) for node in nodes)),
        left,
        left / total if left or (total and not is_least) else None,
        sum(cost.bytes for cost in work),
        is_least,
    )


def runner_of(node: NodePlacement, host: str) -> str:
    """Name of the delegate, plugin or *host* that runs a node.

    >>> runner_of(NodePlacement(0, 0, "mine", plugin="odd"), "Delegraph")
    'odd (plugin)'
    """
    if node.is_unresolved:
        return NOTHING
    return node.delegate or (f"{node.plugin} (plugin)" if node.plugin else host)


def _reason(members: Sequence[tuple[NodePlacement, Rejection]]) -> str:
    """Return the common reason of *members*, with the rejected values if they are no operators."""
    rejection = members[0][1]
    if rejection.constraint == "op" and rejection.expected and not rejection.message:
        return f"takes only {rejection.expected}"
    message = _message(*members[0])
    if _OPERATOR in message:
        return message.replace(_OPERATOR, str(values_in_words(node.op for node, _ in members)))
    actual: object = None
    if any(str(each.actual) != node.op for node, each in members):
        actual = values_in_words([each.actual for _, each in members])
    return str(replace(rejection, actual=actual, tensor=None))


def values_in_words(values: Iterable[object]) -> object:
    """Return several values as one: a range of integers, a list of texts, or the common value.

    >>> values_in_words([1, 3, 2]), values_in_words(["INT8", "INT8"]), values_in_words("abcdef")
    ('1 to 3', 'INT8', 'a, b, c or 3 others')
    """
    different = {str(value): value for value in values}
    if len(different) == 1:
        return next(iter(different.values()))
    numbers = [value for value in different.values() if type(value) is int]
    if len(numbers) == len(different):
        return f"{min(numbers)} to {max(numbers)}"
    texts = list(different)
    shown = texts if len(texts) <= _MOST_VALUES else texts[: _MOST_VALUES - 1]
    last = shown.pop() if len(shown) == len(texts) else f"{len(texts) - len(shown)} others"
    return f"{', '.join(shown)} or {last}"
