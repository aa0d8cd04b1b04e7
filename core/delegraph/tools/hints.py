"""Changes after which a delegate would claim more nodes, found by asking it with fewer constraints.

A delegate that uses its ``Capabilities`` is asked again with more claims. For a rejected rank, the
delegate sees the node with shapes padded by dimensions of 1. If it then names another constraint,
this one is removed as well, up to three, and the hint names them all. Limits on partitions are not
considered. Changes that win little arithmetic are left out, unless they join partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from delegraph.delegation.capabilities import Capabilities
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.node_features import node_features
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.partitioner import (
    GraphInfo,
    NodeInfo,
    partition_graph_into_independent_node_subsets,
)
from delegraph.delegation.rejections import NO_REASON, Rejection
from delegraph.delegation.simple_delegate import SimpleDelegateInterface
from delegraph.delegation.widening import Widening, widened
from delegraph.operators.registration import Node, Registration
from delegraph.quantities import percent, plural
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.tools.refusals import Costs

if TYPE_CHECKING:
    from delegraph.delegation.delegate import DelegateContext
    from delegraph.delegation.placement import Placement
    from delegraph.graph.model import SubgraphSpec
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.interpreter import Interpreter

LEAST_SHARE = 0.01
"""Share of the arithmetic from which a change is worth a hint."""

MOST_TRIED = 16
"""Largest number of changes that are tried for a delegate, first those that affect most nodes."""

MOST_LIFTED = 3
"""Largest number of constraints that one change removes."""

Claimed: TypeAlias = Callable[[Widening], Capabilities]
"""Function that returns the claims of a delegate with additions."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A change to a delegate's claims, or to the model, after which it would claim more nodes.

    Attributes:
        delegate: name of the delegate.
        change: text that describes the change: ``claim activations RELU6``.
        nodes: number of additional nodes that the delegate would claim.
        macs: multiply-accumulates of these nodes.
        share: share of these in the multiply-accumulates of all explained nodes; None if there are
            none, or if those of these nodes are unknown.
        fewer_partitions: number by which the delegate's partitions would be fewer, as these nodes
            join them; at least 0.
        macs_are_least: whether the multiply-accumulates are only a least number, since the file
            lacks shapes.
    """

    delegate: str
    change: str
    nodes: int
    macs: int
    share: float | None
    fewer_partitions: int = 0
    macs_are_least: bool = False

    def __str__(self) -> str:
        least = "at least " * self.macs_are_least
        work = f", {least}{percent(self.share)} of the arithmetic" if self.share else ""
        count = self.fewer_partitions
        joined = f", {plural(count, 'partition')} fewer" if count else ""
        nodes = plural(self.nodes, "more node")
        return f"{self.delegate} could {self.change}: {nodes}{work}{joined}"

    @property
    def is_worthwhile(self) -> bool:
        """Whether the change wins much of the arithmetic, if any is known, or joins partitions."""
        return self.share is None or self.share >= LEAST_SHARE or self.fewer_partitions > 0


@dataclass(frozen=True, slots=True)
class _Question:
    """A rejected node, with the data needed to ask its delegate again about a changed node."""

    subgraph: int
    node: Node
    registration: Registration
    context: DelegateContext
    rejection: Rejection

    @property
    def form(self) -> NodeTraits:
        return NodeTraits.of(self.registration.name, self.node, self.context.tensors)


def hints_for(interpreter: Interpreter, placement: Placement, costs: Costs) -> tuple[Hint, ...]:
    """Return hints for each requested delegate; the hint with the most arithmetic comes first.

    A change that wins less than :data:`LEAST_SHARE` of it is left out, unless it joins partitions.

    Args:
        interpreter: the interpreter to which the delegates are applied.
        placement: the explained part of its placement.
        costs: multiply-accumulates and bytes of these nodes.
    """
    found: list[Hint] = []
    total = sum(cost.macs for cost in costs.values())
    for delegate in interpreter.session.delegates:
        name = delegate_name(delegate)
        if not isinstance(delegate, SimpleDelegate) or name == placement.default_delegate:
            continue
        questions = list(_questions(interpreter, placement, name))
        hints = []
        for change, accepted in _changes(delegate.simple, questions):
            own = [costs[q.subgraph, q.node.index] for q in accepted]
            work, is_least = sum(cost.macs for cost in own), any(c.macs_are_least for c in own)
            share = work / total if work or (total and not is_least) else None
            fewer = _fewer_partitions(interpreter, placement, name, accepted)
            hint = Hint(name, str(change), len(accepted), work, share, fewer, is_least)
            if hint.is_worthwhile:
                hints.append(hint)
        found += sorted(
            hints,
            key=lambda hint: (-hint.macs, -hint.fewer_partitions, -hint.nodes, hint.change),
        )
    return tuple(found)


def are_hints_sought(interpreter: Interpreter, placement: Placement) -> bool:
    """Whether a requested delegate rejects nodes for constraints that changes may remove.

    Reasons in a delegate's own words do not count, since they may have a remedy of their own.

    Args:
        interpreter: the interpreter to which the delegates are applied.
        placement: the explained part of its placement.
    """
    names = {
        delegate_name(delegate)
        for delegate in interpreter.session.delegates
        if isinstance(delegate, SimpleDelegate)
    } - {placement.default_delegate}
    return any(
        _is_liftable(question.rejection) and not question.rejection.message
        for name in sorted(names)
        for question in _questions(interpreter, placement, name)
    )


def _fewer_partitions(
    interpreter: Interpreter, placement: Placement, name: str, more: Sequence[_Question]
) -> int:
    """Return how many partitions the delegate *name* would save by claiming the nodes of *more*."""
    fewer = 0
    for spec in interpreter.session.model.subgraphs:
        nodes = placement.nodes
        own = [n.index for n in nodes if n.subgraph == spec.index and n.delegate == name]
        further = [q.node.index for q in more if q.subgraph == spec.index]
        if own and further:
            fewer += _partition_count(spec, own) - _partition_count(spec, [*own, *further])
    return max(fewer, 0)


def _partition_count(spec: SubgraphSpec, nodes: Sequence[int]) -> int:
    """Return the number of partitions if a delegate claims *nodes* of a subgraph."""
    count = len(spec.operators)
    infos = [NodeInfo(each.inputs, each.outputs) for each in spec.operators]
    graph = GraphInfo(infos, range(count), count, spec.inputs, spec.outputs)
    subsets = partition_graph_into_independent_node_subsets(graph, nodes, greedily=True)
    return sum(subset.type == "kTfPartition" for subset in subsets)


def _questions(interpreter: Interpreter, placement: Placement, name: str) -> Iterator[_Question]:
    """Yield the nodes that the delegate *name* rejected and that no requested delegate claims."""
    session = interpreter.session
    for placed in placement.nodes:
        rejection = placed.rejections.get(name)
        if rejection is None or placed.is_constant:
            continue
        if placed.delegate is not None and not placed.is_by_default:
            continue
        node, registration = session.subgraphs[placed.subgraph].plan.node(placed.index)
        context = session.contexts[placed.subgraph]
        yield _Question(placed.subgraph, node, registration, context, rejection)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change after which a delegate may claim a node.

    Attributes:
        by: additions to the claims.
        rank: rank to which shapes are padded; None means that they are not.
    """

    by: Widening
    rank: int | None = None

    def __str__(self) -> str:
        claims = [f"claim {self.by}"] if self.by != Widening() else []
        padding = [f"pad ranks to {self.rank}"] if self.rank is not None else []
        return " and ".join([*claims, *padding])


def _changes(
    delegate: SimpleDelegateInterface, questions: Sequence[_Question]
) -> Iterator[tuple[_Change, list[_Question]]]:
    """Yield each change, with the nodes of *questions* that the delegate then accepts.

    Of several changes with the same effect, only the one with the shortest text is yielded.
    """
    try:
        claims = delegate.capabilities().claims
    except Exception:  # noqa: BLE001 - a plugin's code; without claims there are no hints
        return
    liftable = [q for q in questions if _is_liftable(q.rejection)]
    claimed = cache(lambda by: Capabilities(claim.widened(by) for claim in claims))
    found = (_change_for(delegate, question, claimed) for question in liftable)
    needed = Counter(change for change in found if change is not None)
    tried = [change for change, _ in needed.most_common(MOST_TRIED)]
    effects = set[tuple[int, ...]]()
    for change in sorted(tried, key=lambda change: (len(str(change)), str(change))):
        accepted = [q for q in liftable if _answer(delegate, q, change) is None]
        effect = tuple(map(id, accepted))
        if effect not in effects:
            effects.add(effect)
            yield change, accepted


def _change_for(
    delegate: SimpleDelegateInterface, question: _Question, claimed: Claimed
) -> _Change | None:
    """Return the change after which the delegate accepts the node in *question*; None if none does.

    The constraints that the delegate names are removed one after the other, at most
    :data:`MOST_LIFTED`.
    """
    change, rejection = _Change(Widening()), question.rejection
    for _ in range(MOST_LIFTED):
        further = _lifted(change, rejection, question, claimed)
        if further == change:
            return None  # no change removes the constraint
        change = further
        answer = _answer(delegate, question, change)
        if answer is None:
            return change
        rejection = answer
    return None


def _lifted(
    change: _Change, rejection: Rejection, question: _Question, claimed: Claimed
) -> _Change:
    """Return *change*, extended to remove the constraint of *rejection* if *claimed* allows it."""
    rank = _missing_rank(rejection)
    if rank is not None and change.rank is None:
        return replace(change, rank=rank)
    find = _LIFTS.get(rejection.constraint)
    by = None if find is None else find(question, claimed(change.by))
    return change if by is None else replace(change, by=change.by.joined(by))


def _is_liftable(rejection: Rejection) -> bool:
    """Whether a change may remove the constraint of *rejection*; rules and limits stay."""
    return rejection.constraint in _LIFTS or _missing_rank(rejection) is not None


def _answer(
    delegate: SimpleDelegateInterface, question: _Question, change: _Change
) -> Rejection | None:
    """Return the delegate's rejection of a node after a change; None if it accepts the node."""
    with widened(change.by):
        answer = _asked(delegate, question, question.context)
        if answer is not None and change.rank is not None and _missing_rank(answer) == change.rank:
            answer = _asked(delegate, question, _padded(question, answer))
    return answer


def _asked(
    delegate: SimpleDelegateInterface, question: _Question, context: DelegateContext
) -> Rejection | None:
    ask = delegate.is_node_supported_by_delegate
    try:
        answer = ask(question.registration, question.node, context)
    except Exception:  # noqa: BLE001 - a plugin's code, asked about what it does not claim
        return NO_REASON
    if isinstance(answer, Rejection):
        return answer
    return None if answer else NO_REASON


def _types(question: _Question, claimed: Capabilities) -> Widening | None:
    """Additions for missing types: of single roles, unless no operand has a claimed type."""
    form = question.form
    missing = [
        {(role, t) for role, t in form.types if (own := claim.types_of(role)) and t not in own}
        for claim in claimed.claims
        if form.operator in claim.operators
    ]
    fewest = min(missing, key=lambda roles: (len(roles), sorted(roles)), default=set())
    if fewest == {*form.types}:
        return Widening(types=tuple(sorted({type for _, type in fewest}))) if fewest else None
    return Widening(roles=tuple(sorted(fewest))) if fewest else None


def _features(question: _Question, claimed: Capabilities) -> Widening | None:
    form = question.form
    features = node_features(form.operator, question.node, question.context.tensors)
    missing = [
        features - {"activation"} - claim.features for claim in claimed.claims if claim.covers(form)
    ]
    fewest = min(missing, key=lambda names: (len(names), sorted(names)), default=())
    return Widening(features=tuple(sorted(fewest))) if fewest else None


_LIFTS: dict[str, Callable[[_Question, Capabilities], Widening | None]] = {
    "op": lambda question, _: Widening(operators=(question.registration.name,)),
    "dtype": _types,
    "version": lambda question, _: Widening(versions=(question.form.version,)),
    "activation": lambda question, _: Widening(activations=(question.form.activation,)),
    "features": _features,
}
"""Mapping from a constraint to a function that returns the addition to claims that removes it.

The function returns None if the constraint does not come from the claims.
"""


def _missing_rank(rejection: Rejection) -> int | None:
    """Return the rank that a rejection asks for, if it is greater than the actual one."""
    actual, expected = rejection.actual, rejection.expected
    if rejection.constraint != "rank" or type(actual) is not int or type(expected) is not int:
        return None
    return expected if actual < expected else None


class _PaddedContext:
    """A context in which some tensors appear with other shapes."""

    def __init__(self, context: DelegateContext, tensors: Sequence[Tensor]) -> None:
        self._context = context
        self.tensors = tensors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _padded(question: _Question, rejection: Rejection) -> DelegateContext:
    """Return the context of *question*, with 1s before the shapes of the rejected rank."""
    actual, expected = rejection.actual, rejection.expected
    assert isinstance(actual, int)
    assert isinstance(expected, int)
    tensors = list(question.context.tensors)
    for i in {*question.node.inputs, *question.node.outputs}:
        if i >= 0 and len(tensors[i].shape) == actual:
            shape = tensors[i].shape
            tensors[i] = copy(tensors[i])
            tensors[i].shape = (1,) * (expected - actual) + tuple(shape)
    return cast("DelegateContext", _PaddedContext(question.context, tensors))
