"""Placement rules with the nodes of a model that match them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import translate

from delegraph.delegation.placement import Placement, is_never_delegated, reason_in_words
from delegraph.delegation.rejections import Rejection
from delegraph.delegation.rules import PlacementRule, PlacementRules, shortened
from delegraph.errors import ArgumentError, PlacementError
from delegraph.graph.calls import reachable_subgraphs
from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec

_Nodes = dict[int, list[int]]  # subgraph index to node indices, ascending


class MatchedRules:
    """Placement rules bound to one model, with the nodes that match each rule.

    Subgraphs to which no delegate is ever applied (``VALIDATION:``) are left out.

    Raises:
        ArgumentError: no node matches a rule, or two rules contradict each other.
    """

    def __init__(self, rules: PlacementRules, model: Model) -> None:
        self.rules = rules
        subgraphs = [s for s in model.subgraphs if not is_never_delegated(s.name)]
        self._nodes = [_nodes_of(rule, model, subgraphs) for rule in rules]
        for position, found in enumerate(self._nodes):
            if not found:
                why = _why_nothing(rules.rules[position], model, subgraphs)
                raise ArgumentError(f"{rules.quote(position)} matches nothing: {why}")
        self._names = {(s.index, o.index): o.name for s in subgraphs for o in s.operators}
        self._refuse_contradictions()
        self._barred: dict[tuple[int, str], Mapping[int, Rejection]] = {}

    def barred(self, subgraph_index: int, delegate_name: str) -> Mapping[int, Rejection]:
        """Return the nodes that the user's rules forbid to a delegate, each with the reason.

        Args:
            subgraph_index: position of the subgraph in the model.
            delegate_name: result of the delegate's ``name()``.
        """
        key = (subgraph_index, delegate_name)
        if key not in self._barred:
            self._barred[key] = self._find_barred(*key)
        return self._barred[key]

    def _find_barred(self, subgraph_index: int, delegate_name: str) -> dict[int, Rejection]:
        found: dict[int, Rejection] = {}
        for position, rule in enumerate(self.rules):
            is_meant = rule.delegate in (None, delegate_name)
            if is_meant == (rule.action == "exclude"):
                message = f"{self.rules.label(position)}: {rule}"
                rejection = Rejection("rule", message)
                for node in self._nodes[position].get(subgraph_index, ()):
                    found.setdefault(node, rejection)
        return found

    def pinned(self, subgraph_index: int, delegate_name: str) -> frozenset[int]:
        """Return the nodes of a subgraph of the model that are pinned to a delegate.

        Args:
            subgraph_index: position of the subgraph in the model.
            delegate_name: result of the delegate's ``name()``.
        """
        return frozenset(
            node
            for position, rule in enumerate(self.rules)
            if rule.action == "pin" and rule.delegate == delegate_name
            for node in self._nodes[position].get(subgraph_index, ())
        )

    def check_pins(self, placement: Placement) -> None:
        """Check that every pinned node runs on its delegate, if that delegate is applied.

        Raises:
            PlacementError: some pinned nodes run elsewhere; the error lists them with the
                delegate's reasons.
        """
        if not any(rule.action == "pin" for rule in self.rules):
            return
        nodes = {(node.subgraph, node.index): node for node in placement.nodes}
        for position, rule in enumerate(self.rules):
            if rule.action != "pin" or rule.delegate not in placement.delegates:
                continue
            missed = [
                node
                for key in _keys(self._nodes[position])
                if (node := nodes[key]).delegate != rule.delegate
            ]
            if missed:
                lines = [f"{node}: {reason_in_words(node, rule.delegate)}" for node in missed]
                count = f"{len(missed)} node{'s' * (len(missed) != 1)}"
                raise PlacementError(
                    f"{self.rules.quote(position)} is not met by {count}: {shortened(lines)}",
                    delegate=rule.delegate,
                )

    def _refuse_contradictions(self) -> None:
        pins: dict[tuple[int, int], int] = {}
        for position, rule in enumerate(self.rules):
            if rule.action == "pin":
                for key in _keys(self._nodes[position]):
                    first = pins.setdefault(key, position)
                    if self.rules.rules[first].delegate != rule.delegate:
                        self._refuse(first, position, key)
        for position, rule in enumerate(self.rules):
            if rule.action == "exclude":
                for key in _keys(self._nodes[position]):
                    pin = pins.get(key)
                    if pin is not None and rule.delegate in (None, self.rules.rules[pin].delegate):
                        self._refuse(min(pin, position), max(pin, position), key)

    def _refuse(self, first: int, second: int, key: tuple[int, int]) -> None:
        subgraph, node = key
        raise ArgumentError(
            f"{self.rules.quote(first)} and {self.rules.quote(second)} contradict each other for "
            f"node {node} ({self._names[key]}) of subgraph {subgraph}"
        )


def _keys(nodes: _Nodes) -> Iterator[tuple[int, int]]:
    """Yield subgraph and node index of every node."""
    return ((subgraph, node) for subgraph, found in nodes.items() for node in found)


def _nodes_of(rule: PlacementRule, model: Model, subgraphs: Iterable[SubgraphSpec]) -> _Nodes:
    """Return the nodes of *subgraphs* that meet all conditions of a rule, by subgraph index."""
    called = None if rule.signature is None else subgraphs_of(rule.signature, model)
    found: _Nodes = {}
    for subgraph in subgraphs:
        is_meant = rule.subgraph in (None, subgraph.index, subgraph.name)
        if is_meant and (called is None or subgraph.index in called):
            meets = _condition(rule, subgraph)
            nodes = [operator.index for operator in subgraph.operators if meets(operator)]
            if nodes:
                found[subgraph.index] = nodes
    return found


def _condition(rule: PlacementRule, subgraph: SubgraphSpec) -> Callable[[OperatorSpec], bool]:
    """Return a function that tells whether an operator meets the rule's conditions.

    The rule's subgraph is not checked.
    """
    conditions: list[Callable[[OperatorSpec], bool]] = []
    if rule.nodes:
        total = len(subgraph.operators)
        wanted = {node for nodes in rule.nodes for node in nodes[:total] if node < total}
        conditions.append(lambda operator: operator.index in wanted)
    if rule.operators:
        names = {operator.name for operator in subgraph.operators}
        ops = set(filter(_matcher(rule.operators), names))
        conditions.append(lambda operator: operator.name in ops)
    if rule.tensors:
        is_named = _matcher(rule.tensors)
        tensors = {tensor.index for tensor in subgraph.tensors if is_named(tensor.name)}
        conditions.append(
            lambda operator: (
                not tensors.isdisjoint(operator.inputs) or not tensors.isdisjoint(operator.outputs)
            )
        )
    return lambda operator: all(meets(operator) for meets in conditions)


def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a function that tells whether a name matches one of the ``fnmatch`` *patterns*.

    A name also matches a pattern that is equal to it, even if the pattern has a ``[``.
    """
    exact = frozenset(patterns)
    regex = re.compile("|".join(map(translate, patterns)))
    return lambda name: name in exact or regex.match(name) is not None


def subgraphs_of(signature: str, model: Model) -> frozenset[int]:
    """Return the indices of a signature's subgraph and of all subgraphs that it calls at any depth.

    The result is empty if *model* has no such signature.
    """
    roots = [s.subgraph_index for s in model.signatures if s.key == signature]
    return reachable_subgraphs(model, roots)


def _why_nothing(rule: PlacementRule, model: Model, subgraphs: list[SubgraphSpec]) -> str:
    """Text that says why a rule matches no node: the first condition that no node meets.

    The text also lists the model's values for that condition.
    """
    operators = sorted({o.name for s in subgraphs for o in s.operators})
    keys = sorted(signature.key for signature in model.signatures)
    known: list[tuple[bool, str]] = [
        (
            rule.subgraph is None or any(rule.subgraph in (s.index, s.name) for s in subgraphs),
            "the model has subgraphs "
            + ", ".join(f"{s.index}" + f" {s.name!r}" * bool(s.name) for s in subgraphs),
        ),
        (
            rule.signature is None or rule.signature in keys,
            "the model has " + (f"signatures {', '.join(keys)}" if keys else "no signatures"),
        ),
        (
            not rule.operators or any(map(_matcher(rule.operators), operators)),
            f"the model has operators {', '.join(operators)}",
        ),
        (
            not rule.nodes
            or any(r.start < len(s.operators) for r in rule.nodes for s in subgraphs),
            f"the last node is {max((len(s.operators) for s in subgraphs), default=0) - 1}",
        ),
        (
            not rule.tensors
            or any(map(_matcher(rule.tensors), (t.name for s in subgraphs for t in s.tensors))),
            "no tensor of the model has such a name",
        ),
    ]
    return next((what for is_met, what in known if not is_met), "no node meets all of it")
