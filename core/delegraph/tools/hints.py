"""Hints how a delegate would claim more nodes, found by asking it with a constraint removed.

A delegate that uses its ``Capabilities`` is asked again with more claims. For a rejected rank, the
delegate sees the node with shapes padded by dimensions of 1. Limits on partitions are not
considered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.node_features import node_features
from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.simple_delegate import SimpleDelegateInterface
from delegraph.delegation.widening import Widening, widened
from delegraph.operators.registration import Node, Registration
from delegraph.quantities import percent, plural
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.tools.refusals import Costs

if TYPE_CHECKING:
    from delegraph.delegation.capabilities import Capabilities
    from delegraph.delegation.delegate import DelegateContext
    from delegraph.delegation.placement import Placement
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.interpreter import Interpreter

MOST_TRIED = 16
"""Largest number of changes that are tried for a delegate, those of most nodes first."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A change to a delegate's claims, or to the model, after which it would claim more nodes.

    Attributes:
        delegate: name of the delegate.
        change: text that describes the change: ``claim activations RELU6``.
        nodes: number of additional nodes that the delegate would claim.
        macs: multiply-accumulates of these nodes.
        share: their share of all multiply-accumulates of the explained nodes; None if there are
            none.
    """

    delegate: str
    change: str
    nodes: int
    macs: int
    share: float | None

    def __str__(self) -> str:
        work = f", {percent(self.share)} of the arithmetic" if self.share else ""
        return f"{self.delegate} could {self.change}: {plural(self.nodes, 'more node')}{work}"


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
            work = sum(costs[q.subgraph, q.node.index].macs for q in accepted)
            share = work / total if total else None
            hints.append(Hint(name, change, len(accepted), work, share))
        found += sorted(hints, key=lambda hint: (-hint.macs, -hint.nodes, hint.change))
    return tuple(found)


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


def _changes(
    delegate: SimpleDelegateInterface, questions: Sequence[_Question]
) -> Iterator[tuple[str, list[_Question]]]:
    """Yield text for each change, with the nodes of *questions* that the delegate then accepts.

    Of several additions to the claims with the same effect, only the shortest is yielded.
    """
    try:
        claimed = delegate.capabilities()
    except Exception:  # noqa: BLE001 - a plugin's code; without claims there are no hints
        return
    about_claims = [q for q in questions if q.rejection.constraint in _LIFTS]
    lifts = Counter(lift for q in about_claims if (lift := _widening(q, claimed)) is not None)
    tried = [by for by, _ in lifts.most_common(MOST_TRIED)]
    effects = set[tuple[int, ...]]()
    for by in sorted(tried, key=lambda by: len(str(by))):
        with widened(by):
            accepted = [q for q in about_claims if _is_accepted(delegate, q, q.context)]
        effect = tuple(map(id, accepted))
        if effect and effect not in effects:
            effects.add(effect)
            yield f"claim {by}", accepted
    ranks = Counter(rank for q in questions if (rank := _missing_rank(q.rejection)) is not None)
    for rank, _ in ranks.most_common(MOST_TRIED):
        short = [q for q in questions if _missing_rank(q.rejection) == rank]
        accepted = [q for q in short if _is_accepted(delegate, q, _padded(q, rank))]
        if accepted:
            yield f"pad ranks to {rank}", accepted


def _is_accepted(
    delegate: SimpleDelegateInterface, question: _Question, context: DelegateContext
) -> bool:
    ask = delegate.is_node_supported_by_delegate
    try:
        return bool(ask(question.registration, question.node, context))
    except Exception:  # noqa: BLE001 - a plugin's code, asked about what it does not claim
        return False


def _widening(question: _Question, claimed: Capabilities) -> Widening | None:
    """Return the addition to the claims that would cover the node in *question*, or None."""
    return _LIFTS[question.rejection.constraint](question, claimed)


def _types(question: _Question, claimed: Capabilities) -> Widening | None:
    form = question.form
    missing = [
        {type for role, type in form.types if (own := claim.types_of(role)) and type not in own}
        for claim in claimed.claims
        if form.operator in claim.operators
    ]
    fewest = min(missing, key=lambda types: (len(types), sorted(types)), default=())
    return Widening(types=tuple(sorted(fewest))) if fewest else None


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
"""The addition that lifts each constraint of claims, or None if the claims do not make it."""


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


def _padded(question: _Question, rank: int) -> DelegateContext:
    """Return the context of *question* with its node's tensors padded by 1s to rank *rank*."""
    tensors = list(question.context.tensors)
    for i in {*question.node.inputs, *question.node.outputs}:
        if i >= 0 and len(tensors[i].shape) == question.rejection.actual:
            shape = tensors[i].shape
            tensors[i] = copy(tensors[i])
            tensors[i].shape = (1,) * (rank - len(shape)) + tuple(shape)
    return cast("DelegateContext", _PaddedContext(question.context, tensors))
