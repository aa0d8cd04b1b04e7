"""A user's placement rules, which hold for any delegate, and ``require="full"``.

A rule forbids nodes to delegates, or pins nodes to one delegate.
:mod:`delegraph.delegation.rules_file` reads rules from a TOML file;
:mod:`delegraph.delegation.matched_rules` finds the nodes in a model that match them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from delegraph.delegation.placement import (
    NodePlacement,
    Placement,
    node_numbers,
    refusals_in_words,
)
from delegraph.errors import ArgumentError, PlacementError
from delegraph.lazy_dataclass import dataclass

RuleAction = Literal["exclude", "pin"]

_MOST_REASONS, _MOST_OPERATORS, _MOST_RANGES = 4, 4, 8
"""Number of reasons, of a reason's operators, and of its ranges of nodes, that an error has."""

_RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """Rule that delegates must not claim some nodes, or that one delegate must claim them.

    The rule applies to nodes for which all given conditions hold. A list holds if any of its
    entries holds.

    >>> print(PlacementRule("exclude", operators=["SOFTMAX", "Flex*"]))
    exclude operators SOFTMAX, Flex* from every delegate
    >>> print(PlacementRule("pin", delegate="numba_cpu", nodes=[3, "10-12"], subgraph=0))
    pin nodes 3, 10-12 in subgraph 0 to numba_cpu

    Attributes:
        action: ``"exclude"`` forbids the nodes to ``delegate``. ``"pin"`` forbids the nodes to all
            other delegates; if ``delegate`` is applied, it must claim them.
        delegate: result of the delegate's ``name()``; None means every delegate, only for
            ``"exclude"``.
        nodes: node indices, counted in each subgraph; ranges include both ends.
        operators: names as ``delegraph inspect`` shows them; ``*`` and ``?`` are wildcards.
        tensors: patterns for the name of any input or output of the node, including constants.
        subgraph: index or name of the nodes' subgraph.
        signature: key of a signature, which stands for its subgraph and the subgraphs it calls.

    Raises:
        ArgumentError: a value is of the wrong kind, there is no condition, or a pin has no
            delegate.
    """

    action: RuleAction
    delegate: str | None
    nodes: tuple[range, ...]
    operators: tuple[str, ...]
    tensors: tuple[str, ...]
    subgraph: int | str | None
    signature: str | None

    def __init__(
        self,
        action: RuleAction,
        delegate: str | None = None,
        *,
        nodes: int | str | Iterable[int | str] | None = None,
        operators: str | Iterable[str] | None = None,
        tensors: str | Iterable[str] | None = None,
        subgraph: int | str | None = None,
        signature: str | None = None,
    ) -> None:
        values = {
            "action": action,
            "delegate": delegate,
            "nodes": tuple(_range(value) for value in _listed("nodes", nodes)),
            "operators": tuple(
                _text("operators", value) for value in _listed("operators", operators)
            ),
            "tensors": tuple(_text("tensors", value) for value in _listed("tensors", tensors)),
            "subgraph": subgraph,
            "signature": signature,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if self.action not in get_args(RuleAction):
            raise ArgumentError(f"action is 'exclude' or 'pin', not {self.action!r}")
        for name, value in (("delegate", self.delegate), ("signature", self.signature)):
            if value is not None:
                _text(name, value)
        if self.subgraph is not None and type(self.subgraph) not in (int, str):
            raise ArgumentError(f"subgraph is an index or a name, not {self.subgraph!r}")
        if self.action == "pin" and self.delegate is None:
            raise ArgumentError("a rule that pins names the delegate")
        if not any((self.nodes, self.operators, self.tensors)) and (
            self.subgraph is None and self.signature is None
        ):
            raise ArgumentError(
                "a rule needs at least one of: nodes, operators, tensors, subgraph, signature; "
                "operators='*' means every node"
            )

    def __str__(self) -> str:
        return " ".join((self.action, self._nodes_in_words(), self._delegate_in_words()))

    def _nodes_in_words(self) -> str:
        nodes = [str(r.start) if len(r) == 1 else f"{r.start}-{r.stop - 1}" for r in self.nodes]
        lists = (("nodes", nodes), ("operators", self.operators), ("tensors", self.tensors))
        words = " with ".join(f"{kind} {', '.join(entries)}" for kind, entries in lists if entries)
        where = [] if self.subgraph is None else [f"subgraph {self.subgraph}"]
        where += [] if self.signature is None else [f"signature {self.signature}"]
        return " in ".join([words or "every node", *where])

    def _delegate_in_words(self) -> str:
        preposition = "from" if self.action == "exclude" else "to"
        return f"{preposition} {'every delegate' if self.delegate is None else self.delegate}"


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """Placement rules in order, with the path of their file if they come from one."""

    rules: tuple[PlacementRule, ...] = ()
    file: str = ""

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[PlacementRule]:
        return iter(self.rules)

    def label(self, position: int) -> str:
        """Name of the rule at *position* for messages: ``rule 2``, ``rule 2 of npu.toml``."""
        where = f" of {os.path.basename(self.file)}" if self.file else ""
        return f"rule {position + 1}{where}"

    def quote(self, position: int) -> str:
        """Name of the rule at *position* and its text, for messages."""
        return f"{self.label(position)} ({self.rules[position]})"


def require_full(placement: Placement, *, instead: str = "") -> None:
    """Raise an error unless requested delegates run all nodes.

    Args:
        placement: the delegate of each node.
        instead: text of the error in place of the nodes by operator and reason.

    Raises:
        PlacementError: some nodes have no delegate or only the default delegate.
    """
    nodes = placement.nodes_to_delegate()
    behind = [node for node in nodes if node.delegate is None or node.is_by_default]
    if not behind:
        return
    if not placement.requested_delegates:
        default = placement.default_delegate
        advice = "" if default is None else f": add delegates=[{default!r}]"
        raise PlacementError(
            f"require='full' is about named delegates, and none is named for {_operators(behind)}"
            + advice
        )
    groups: dict[tuple[int, str], list[NodePlacement]] = {}
    for node in behind:
        reason = refusals_in_words(node, placement.delegates)
        groups.setdefault((node.subgraph, reason), []).append(node)
    several = len({node.subgraph for node in placement.nodes}) > 1
    lines = [
        f"{_operators(group)} ({_where(group, subgraph if several else None)}: {reason})"
        for (subgraph, reason), group in groups.items()
    ]
    count = len(behind)
    text = f"require='full': {count} node{'s' * (count != 1)} stay{'s' * (count == 1)} behind"
    raise PlacementError(text + (instead or f": {shortened(lines, _MOST_REASONS)}"))


def shortened(phrases: list[str], limit: int = 8, separator: str = "; ") -> str:
    """Join *phrases* by *separator*; only the first *limit* are written, the others counted."""
    shown = phrases[:limit]
    if len(phrases) > limit:
        shown.append(f"and {len(phrases) - limit} more")
    return separator.join(shown)


def shortened_node_numbers(indices: Iterable[int], most: int) -> str:
    """Text of node indices as runs; of more than *most* runs, the last become a number of nodes.

    >>> shortened_node_numbers([0, 1, 3, 5, 7, 8], most=2)
    '0-1, 3 and 3 more'
    """
    found = sorted(indices)
    starts = [i for i, index in enumerate(found) if not i or index != found[i - 1] + 1]
    end = starts[most] if len(starts) > most else len(found)
    more = f" and {len(found) - end} more" if end < len(found) else ""
    return f"{node_numbers(found[:end])}{more}"


def _operators(nodes: Iterable[NodePlacement]) -> str:
    """Text of the operators of *nodes*, each once."""
    return shortened(list(dict.fromkeys(node.op for node in nodes)), _MOST_OPERATORS, ", ")


def _where(nodes: list[NodePlacement], subgraph: int | None) -> str:
    where = "" if subgraph is None else f" of subgraph {subgraph}"
    numbers = shortened_node_numbers((node.index for node in nodes), _MOST_RANGES)
    return f"node{'s' * (len(nodes) != 1)} {numbers}{where}"


def _listed(name: str, value: object) -> tuple[object, ...]:
    """Return the value of a rule's condition as a tuple: one value or several; None gives none."""
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    values = tuple(value)
    if not values:
        raise ArgumentError(f"{name} is empty; leave it out to set no such condition")
    return values


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{name} takes names, not {value!r}")
    return value


def _range(value: object) -> range:
    """Return the range of indices that ``3``, ``"3"`` or ``"10-12"`` means."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ArgumentError(f"nodes takes indices or ranges such as '10-12', not {value!r}")
    match = _RANGE.fullmatch(str(value))
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        raise ArgumentError(f"nodes takes indices or ranges such as '10-12', not {value!r}")
    return range(first, last + 1)
