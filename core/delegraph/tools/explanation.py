"""Explains which delegate computes which nodes, in execution order, and why nodes were rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from delegraph.delegation.matched_rules import subgraphs_of
from delegraph.delegation.partition_numbers import placement_of_subgraphs
from delegraph.delegation.placement import Placement
from delegraph.graph.model import Model, SubgraphSpec
from delegraph.json_records import to_json
from delegraph.tools.model_call import require_signature
from delegraph.tools.refusals import Costs, Refusal, node_costs, refusals_of

if TYPE_CHECKING:
    from delegraph.runtime.interpreter import Interpreter


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive nodes of the execution plan that one delegate, or the host's kernels, run.

    Attributes:
        subgraph: index of the subgraph.
        delegate: the delegate that runs the nodes; None for Delegraph's kernels.
        partition: position in ``Placement.partitions``; None for Delegraph's kernels.
        nodes: nodes of the original graph, in execution order; constants are left out.
        ops: operator names of these nodes.
        is_unresolved: whether the nodes are custom operators that nothing can run.
    """

    subgraph: int
    delegate: str | None
    partition: int | None
    nodes: tuple[int, ...]
    ops: tuple[str, ...]
    is_unresolved: bool = False


@dataclass(frozen=True, slots=True)
class SignaturePlacement:
    """Placement of the nodes of a signature, including nodes of called subgraphs.

    Attributes:
        name: name of the signature.
        subgraph: index of its subgraph.
        summary: the placement in one line.
    """

    name: str
    subgraph: int
    summary: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """A placement with its stages in execution order, and the rejections, most arithmetic first.

    Attributes:
        placement: the placement of the model, or of :attr:`signature` if that is not None.
        stages: the stages of the placement's nodes.
        refusals: the rejections of these nodes, grouped by reason.
        costs: multiply-accumulates and written bytes of each of these nodes.
        signature: name of the explained signature; None means the whole model.
        signatures: the placement of each signature of the model in one line.
    """

    placement: Placement
    stages: tuple[Stage, ...]
    refusals: tuple[Refusal, ...]
    costs: Costs = field(repr=False)
    signature: str | None = None
    signatures: tuple[SignaturePlacement, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the placement as JSON, with stages and signatures added."""
        return {
            **self.placement.to_json(),
            "stages": to_json(self.stages),
            "refusals": to_json(self.refusals),
            "signature": self.signature,
            "signatures": to_json(self.signatures),
        }


def explain(interpreter: Interpreter, signature: str | None = None) -> Explanation:
    """Return the explanation of an interpreter's placement; no allocation is needed.

    Args:
        interpreter: the interpreter.
        signature: the signature to explain, with the subgraphs that it calls; None means all.

    Raises:
        ArgumentError: the model has no such signature.
    """
    model = interpreter.session.model
    whole = interpreter.placement
    placement, shown = _part(whole, model, signature)
    costs = node_costs(placement, model)
    return Explanation(
        placement,
        tuple(_without_constants(_stages(interpreter, placement, shown), placement)),
        refusals_of(placement, costs),
        costs,
        signature,
        signature_placements(whole, model),
    )


def explain_placement(
    placement: Placement,
    model: Model,
    signature: str | None = None,
    *,
    first_only: Collection[str] = (),
) -> Explanation:
    """Return the explanation of a placement without an interpreter, for other runtimes.

    Args:
        placement: delegate or kernel of every node.
        model: the model with these nodes.
        signature: the signature to explain, with the subgraphs that it calls; None means all.
        first_only: delegates whose nodes the runtime reports only in the first subgraph; for other
            subgraphs, the explanation does not claim that they have no nodes.

    Raises:
        ArgumentError: the model has no such signature.
    """
    part, shown = _part(placement, model, signature, first_only)
    stages = (
        stage
        for subgraph in model.subgraphs
        if subgraph.index in shown
        for stage in _ordered_stages(part, subgraph)
    )
    signatures = signature_placements(placement, model, first_only)
    costs = node_costs(part, model)
    return Explanation(
        part,
        tuple(_without_constants(stages, part)),
        refusals_of(part, costs),
        costs,
        signature,
        signatures,
    )


def _part(
    placement: Placement, model: Model, signature: str | None, first_only: Collection[str] = ()
) -> tuple[Placement, Set[int]]:
    """Return the placement and subgraphs of a signature; None means the whole model."""
    if signature is None:
        return placement, set(range(len(model.subgraphs)))
    require_signature(signature, [each.key for each in model.signatures])
    numbers = subgraphs_of(signature, model)
    part = placement_of_subgraphs(placement, numbers)
    if 0 not in numbers:
        known = tuple(name for name in part.delegates if name not in first_only)
        default = part.default_delegate if part.default_delegate in known else None
        part = replace(part, delegates=known, default_delegate=default)
    return part, numbers


def signature_placements(
    placement: Placement, model: Model, first_only: Collection[str] = ()
) -> tuple[SignaturePlacement, ...]:
    """Return the placement of each signature of *model*, sorted by name.

    *first_only* are delegates whose nodes the runtime reports only in the first subgraph.
    """
    numbers = {each.key: each.subgraph_index for each in model.signatures}
    return tuple(
        SignaturePlacement(key, numbers[key], str(_part(placement, model, key, first_only)[0]))
        for key in sorted(numbers)
    )


def known_in_first_only(runtime: str) -> tuple[str, ...]:
    """Return the delegates whose nodes a runtime reports only in the first subgraph."""
    if runtime != "litert":
        return ()
    from delegraph.native.litert.placement import RUNTIME_DELEGATE  # lazy: few need this package

    return (RUNTIME_DELEGATE,)


def unresolved_in(placement: Placement, op: str) -> Placement:
    """Return a placement in which undelegated nodes of *op* count as unresolved.

    Args:
        placement: delegate or kernel of every node.
        op: name of a custom operator that the runtime does not know.
    """
    nodes = tuple(
        replace(node, is_unresolved=True) if node.op == op and node.delegate is None else node
        for node in placement.nodes
    )
    return replace(placement, nodes=nodes)


def _ordered_stages(placement: Placement, subgraph: SubgraphSpec) -> Iterator[Stage]:
    """Yield partitions and the nodes between them, each after the stages whose results it reads.

    Args:
        placement: which delegate runs each node.
        subgraph: a subgraph of the model.
    """
    number = subgraph.index
    partition_of = {
        node.index: node.partition for node in placement.nodes if node.subgraph == number
    }
    units: dict[tuple[int, int], list[int]] = {}  # key: (0, node index) or (1, partition index)
    for operator in subgraph.operators:
        partition = partition_of.get(operator.index)
        key = (0, operator.index) if partition is None else (1, partition)
        units.setdefault(key, []).append(operator.index)
    keys = list(units)
    unit_of = {node: i for i, key in enumerate(keys) for node in units[key]}
    made_by = {t: unit_of[op.index] for op in subgraph.operators for t in op.outputs}
    needs = [
        {made_by[t] for node in units[key] for t in subgraph.operators[node].inputs if t in made_by}
        - {i}
        for i, key in enumerate(keys)
    ]
    order = [keys[i] for i in _in_order(needs)]
    unresolved = {node.index for node in placement.unresolved() if node.subgraph == number}
    runners = [(key[1] if key[0] else None, units[key][0] in unresolved) for key in order]
    for (partition, is_unresolved), run in groupby(
        zip(runners, order, strict=True), key=itemgetter(0)
    ):
        nodes = tuple(node for _, key in run for node in units[key])
        delegate = None if partition is None else placement.partitions[partition].delegate
        ops = tuple(subgraph.operators[i].name for i in nodes)
        yield Stage(number, delegate, partition, nodes, ops, is_unresolved)


def _without_constants(stages: Iterable[Stage], placement: Placement) -> Iterator[Stage]:
    """Yield the stages without constant nodes; stages without other nodes are omitted."""
    constants = {(node.subgraph, node.index) for node in placement.nodes if node.is_constant}
    for stage in stages:
        kept = [
            (node, op)
            for node, op in zip(stage.nodes, stage.ops, strict=True)
            if (stage.subgraph, node) not in constants
        ]
        if kept:
            nodes, ops = zip(*kept, strict=True)
            yield replace(stage, nodes=nodes, ops=ops)


def _in_order(needs: Sequence[Set[int]]) -> list[int]:
    """Return positions, ascending where possible, each after the positions that it needs.

    Args:
        needs: for each position, the positions that must come before it.
    """
    waiting = [len(needed) for needed in needs]
    readers: dict[int, list[int]] = {}
    for i, needed in enumerate(needs):
        for j in needed:
            readers.setdefault(j, []).append(i)
    ready = [i for i, count in enumerate(waiting) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready))
        for i in readers.get(order[-1], ()):
            waiting[i] -= 1
            if not waiting[i]:
                heappush(ready, i)
    return order


def _stages(interpreter: Interpreter, placement: Placement, shown: Set[int]) -> Iterator[Stage]:
    """Yield the stages of the subgraphs *shown*, in execution order."""
    partitions = {(p.subgraph, p.node_index): p for p in placement.partitions}
    absorbed = {
        (node.subgraph, node.index): placement.partitions[node.partition]
        for node in placement.nodes
        if node.partition is not None
    }
    unresolved = {(node.subgraph, node.index) for node in placement.unresolved()}
    for number in sorted(shown):
        subgraph = interpreter.session.subgraphs[number]
        operators = subgraph.spec.operators
        steps = [
            (
                partitions.get((number, index)) or absorbed.get((number, index)),
                (number, index) in unresolved,
                index,
            )
            for index in subgraph.plan.execution_plan
        ]
        for (found, is_unresolved), run in groupby(steps, key=itemgetter(0, 1)):
            nodes = tuple(index for _, _, index in run)
            if found is not None and found.subgraph == number:
                nodes = found.nodes
            yield Stage(
                number,
                None if found is None else found.delegate,
                None if found is None else found.index,
                nodes,
                tuple(operators[i].name for i in nodes),
                is_unresolved,
            )


def operator_counts(ops: Iterable[str]) -> str:
    """Return operator names with their counts as text, most frequent first.

    >>> operator_counts(["ADD", "CONV_2D", "CONV_2D"])
    'CONV_2D x2, ADD'
    """
    counts = sorted(Counter(ops).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(op if count == 1 else f"{op} x{count}" for op, count in counts)
