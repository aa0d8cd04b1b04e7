"""The placement of a running model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import cast

from delegraph.collector import collector_paused
from delegraph.delegation.delegate import Delegate
from delegraph.delegation.partition_numbers import default_delegate_last
from delegraph.delegation.placement import (
    BY_DEFAULT,
    Crossing,
    NodePlacement,
    PartitionPlacement,
    Placement,
    is_never_delegated,
)
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import is_asynchronous
from delegraph.errors import in_words
from delegraph.graph.calls import called_subgraphs
from delegraph.graph.constant_nodes import constant_nodes
from delegraph.graph.dtypes import total_bytes
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType

_VALIDATES = Rejection("validation", "no delegate gets a VALIDATION: subgraph")
_TAKEN_OFF = Rejection("resized", "a resize took the delegate off until tensors are allocated")


@collector_paused()
def placement_of(
    subgraphs: Sequence[Subgraph],
    delegates: Sequence[Delegate],
    by_default: Sequence[Delegate],
    rest: Delegate | None = None,
) -> Placement:
    """Return the placement of a running model, in time linear in its nodes and tensors.

    Args:
        subgraphs: the subgraphs of the model.
        delegates: the applied delegates, in order.
        by_default: the delegates that only the user's configuration names.
        rest: the default delegate, or None.
    """
    partitions: list[PartitionPlacement] = []
    crossings: list[Crossing] = []
    for subgraph in subgraphs:
        constants = _constants(subgraph)
        found = _partitions(subgraph, len(partitions), rest, constants)
        crossings += _crossings(subgraph, {p.node_index: p.index for p in found}, constants)
        partitions += found
    absorbers = _absorbers(subgraphs, partitions)
    by_node = {(p.subgraph, p.node_index): p for p in partitions}
    names = tuple(map(delegate_name, delegates))
    nodes: list[NodePlacement] = []
    for subgraph in subgraphs:
        absorber = absorbers.get(subgraph.spec.index)
        nodes += _nodes(subgraph, by_node, absorber, _reasons(subgraph, names))
    placement = Placement(
        tuple(nodes),
        tuple(partitions),
        names,
        tuple(crossings),
        tuple(subgraph.spec.name for subgraph in subgraphs),
        tuple(_quarantined(subgraphs, delegates)),
        notes_of(delegates, by_default),
        default_delegate=next((delegate_name(d) for d in delegates if d is rest), None),
        incidents=subgraphs[0].session.incidents.all(),
    )
    return default_delegate_last(placement)


def _quarantined(subgraphs: Sequence[Subgraph], delegates: Sequence[Delegate]) -> Iterator[str]:
    is_quarantined = subgraphs[0].session.supervision.is_quarantined
    return (delegate_name(delegate) for delegate in delegates if is_quarantined(delegate))


def notes_of(delegates: Iterable[Delegate], by_default: Sequence[Delegate]) -> dict[str, str]:
    """Return the texts of the delegates' ``note`` methods, by delegate name.

    The text of a delegate in *by_default* says that Delegraph added it.
    """
    notes: dict[str, list[str]] = {}
    for delegate in delegates:
        try:
            note = " ".join(str(delegate.note()).split())
        except Exception as error:  # noqa: BLE001 - a plugin's method; the placement matters more
            note = f"note() failed: {in_words(error)}"
        known = notes.setdefault(delegate_name(delegate), [])
        if any(delegate is named for named in by_default) and BY_DEFAULT not in known:
            known.append(BY_DEFAULT)
        if note and note not in known:
            known.append(note)
    return {name: "; ".join(found) for name, found in notes.items() if found}


def _constants(subgraph: Subgraph) -> dict[int, int]:
    """Return, for each constant tensor that a node reads, the file's constant that it comes from.

    Keys and values are tensor indices; they are equal, except for constants that Delegraph's
    kernels convert to a wider type.
    """
    operators, plan = subgraph.spec.operators, subgraph.plan
    found = {tensor.index: tensor.index for tensor in subgraph.tensors if tensor.is_constant}
    for node, constant in constant_nodes(subgraph.spec).items():
        if plan.node(plan.current(node))[0].delegate is None:
            found[operators[node].outputs[0]] = constant
    return found


def _partitions(
    subgraph: Subgraph, first: int, rest: Delegate | None, constants: dict[int, int]
) -> list[PartitionPlacement]:
    found = [node for node, _ in subgraph.plan.steps() if node.delegate is not None]
    overlaps = _overlaps(subgraph, {node.index: first + i for i, node in enumerate(found)})
    return [
        _partition(
            subgraph, node, first + i, tuple(sorted(overlaps.get(first + i, ()))), rest, constants
        )
        for i, node in enumerate(found)
    ]


def _overlaps(subgraph: Subgraph, partitions: dict[int, int]) -> dict[int, set[int]]:
    """Return, for partitions that may run while others run, the numbers of those others.

    *partitions* maps the index of a delegate node of *subgraph* to the number of its partition. The
    result is empty before the subgraph is allocated.
    """
    found: dict[int, set[int]] = {}
    overlap = subgraph.steps.overlap if subgraph.is_allocated else None
    for node, others in {} if overlap is None else overlap.meanwhile.items():
        one = partitions[node]
        for other in (partitions[other] for other in others if other in partitions):
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return found


def _partition(
    subgraph: Subgraph,
    node: Node,
    index: int,
    overlaps: tuple[int, ...],
    rest: Delegate | None,
    constants: dict[int, int],
) -> PartitionPlacement:
    tensors = subgraph.tensors
    inputs = [i for i in node.inputs if i >= 0]
    return PartitionPlacement(
        subgraph.spec.index,
        delegate_name(cast("Delegate", node.delegate)),
        index,
        node.index,
        tuple(inner.index for inner, _ in subgraph.plan.model_nodes(node)),
        node.inputs,
        node.outputs,
        total_bytes(_size(subgraph, tensors[i]) for i in inputs if i not in constants),
        total_bytes(_size(subgraph, tensors[i]) for i in node.outputs),
        sum(_stored_size(subgraph, tensors[constants[i]]) for i in inputs if i in constants),
        is_asynchronous(node.user_data),
        overlaps,
        node.delegate is rest,
    )


def _absorbers(
    subgraphs: Sequence[Subgraph], partitions: Iterable[PartitionPlacement]
) -> dict[int, PartitionPlacement]:
    """Return the subgraphs that a delegate computes as a whole, each with the calling partition.

    Returns:
        Mapping from the index of a called subgraph to a partition that calls it, perhaps through
        other subgraphs.
    """
    absorbed = frozenset[int]().union(*(subgraph.plan.absorbed for subgraph in subgraphs))
    found: dict[int, PartitionPlacement] = {}
    waiting = [(p, p.subgraph, p.nodes) for p in partitions] if absorbed else []
    while waiting:
        partition, caller, nodes = waiting.pop()
        for node in nodes:
            for callee in called_subgraphs(subgraphs[caller].spec.operators[node].options):
                if callee in absorbed and callee not in found:
                    found[callee] = partition
                    inner = range(len(subgraphs[callee].spec.operators))
                    waiting.append((partition, callee, tuple(inner)))
    return found


def _nodes(
    subgraph: Subgraph,
    partitions: dict[tuple[int, int], PartitionPlacement],
    absorber: PartitionPlacement | None,
    reasons: Callable[[int], dict[str, Rejection]],
) -> Iterator[NodePlacement]:
    number, current = subgraph.spec.index, subgraph.plan.current
    constants = constant_nodes(subgraph.spec)
    for operator in subgraph.spec.operators:
        index = operator.index
        partition = absorber or partitions.get((number, current(index)))
        yield NodePlacement(
            number,
            index,
            operator.name,
            None if partition is None else partition.delegate,
            None if partition is None else partition.index,
            reasons(index),
            subgraph.tensors[operator.outputs[0]].name if operator.outputs else "",
            partition is None and subgraph.plan.node(index)[1].is_unresolved,
            partition is not None and partition.is_by_default,
            partition is None and index in constants,
            subgraph.plan.node(index)[1].plugin if partition is None else "",
        )


def _reasons(subgraph: Subgraph, delegates: Iterable[str]) -> Callable[[int], dict[str, Rejection]]:
    """Return a function from a node index of *subgraph* to the reasons of *delegates*, by name.

    The reasons are those for rejecting the node.
    """
    if is_never_delegated(subgraph.spec.name):
        return lambda index: dict.fromkeys(delegates, _VALIDATES)
    plan = subgraph.plan
    off = {delegate_name(undone.delegate): _TAKEN_OFF for undone in plan.undone}
    answers = [(delegate_name(a.delegate), a.rejections) for a in plan.applied]
    return lambda index: off | {name: found[index] for name, found in answers if index in found}


def _crossings(
    subgraph: Subgraph, partitions: dict[int, int], constants: dict[int, int]
) -> Iterator[Crossing]:
    """Yield the tensors that enter or leave a partition, except *constants*.

    *partitions* maps the index of a delegate node to the number of its partition.
    """
    if not partitions:
        return
    steps = ((n.inputs, n.outputs, partitions.get(n.index)) for n, _ in subgraph.plan.steps())
    delegates: dict[int | None, object | None] = {
        number: subgraph.plan.node(index)[0].delegate for index, number in partitions.items()
    }
    found = crossing_tensors(steps, subgraph.outputs, constants.__contains__)
    for index, source, target in found:
        tensor = subgraph.tensors[index]
        sides = delegates.get(source), delegates.get(target)
        is_buffered = tensor.buffer_handle != -1
        is_copied = is_buffered and any(side is not tensor.delegate for side in sides)
        size = _size(subgraph, tensor)
        yield Crossing(subgraph.spec.index, index, tensor.name, size, source, target, is_copied)


def crossing_tensors(
    steps: Iterable[tuple[Sequence[int], Sequence[int], int | None]],
    outputs: Sequence[int],
    is_constant: Callable[[int], bool],
) -> Iterator[tuple[int, int | None, int | None]]:
    """Yield each tensor that enters or leaves a partition, with the partitions on both sides.

    *steps* are the inputs, outputs and partition of each node in execution order, and *outputs*
    those of the graph. The partition is None for kernels and the caller. Constants are left out.

    >>> steps = [((0,), (1,), None), ((1, 0), (2,), 7), ((1,), (3,), 7)]
    >>> list(crossing_tensors(steps, (3,), lambda index: False))
    [(1, None, 7), (0, None, 7), (3, 7, None)]
    """
    writers: dict[int, int | None] = {}  # the last one so far, for tensors that are written again
    seen: set[tuple[int, int | None, int | None]] = set()
    for inputs, written, target in chain(steps, [(outputs, (), None)]):
        for index in inputs:
            found = index, writers.get(index), target
            if index >= 0 and found[1] != target and found not in seen and not is_constant(index):
                seen.add(found)
                yield found
        writers.update(dict.fromkeys(written, target))


def _size(subgraph: Subgraph, tensor: Tensor) -> int | None:
    """Number of bytes of a tensor's value; None if it is known only during invoke.

    A resource is a handle, so its size counts as 0.
    """
    if tensor.type == TensorType.RESOURCE:
        return 0
    if tensor.type in (TensorType.STRING, TensorType.VARIANT):
        return None
    if subgraph.is_allocated:
        is_known = tensor.data is not None  # after an unknown shape, no memory is allocated
    else:
        is_known = not tensor.is_dynamic and -1 not in tensor.shape_signature
    return tensor.bytes if is_known else None


def _stored_size(subgraph: Subgraph, tensor: Tensor) -> int:
    """Number of bytes that the constant *tensor* of *subgraph* takes in the model file."""
    declared = subgraph.spec.tensors
    data = declared[tensor.index].data if tensor.index < len(declared) else tensor.data
    return 0 if data is None else int(data.nbytes)
