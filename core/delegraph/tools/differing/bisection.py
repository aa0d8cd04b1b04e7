"""Search for the smallest sets of nodes that make a probe fail.

A probe is one test: it takes a set of nodes and returns whether the result is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Node = tuple[int, int]
"""Index of a subgraph, and index of a node in this subgraph."""

Nodes = tuple[Node, ...]

OutcomeKind = Literal["right", "differs", "raised", "crashed", "hung"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one probe: right, wrong, or an error.

    Attributes:
        kind: ``right``, or the kind of failure: the result ``differs``, an exception was
            ``raised``, the process ``crashed``, or the process ``hung``.
        text: details in words; empty for a right result.
    """

    kind: OutcomeKind
    text: str = ""

    @property
    def fails(self) -> bool:
        """Whether the outcome is not a right result."""
        return self.kind != "right"

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


RIGHT = Outcome("right")


@dataclass(frozen=True, slots=True)
class Probe:
    """One test of a set of nodes on one or more runs of inputs.

    Attributes:
        nodes: the only candidate nodes that delegates were allowed to claim.
        outcome: result of the test.
        runs: numbers of the computed runs; if the probe failed, it failed in the last one.
        seconds: duration of the probe, in seconds.
    """

    nodes: Nodes
    outcome: Outcome
    runs: tuple[int, ...] = (0,)
    seconds: float = 0.0


class Prober(Protocol):
    """Lets delegates of a model have only some nodes, and judges whether the result is right.

    Only a test whose result is not known yet counts as a probe.
    """

    probes: list[Probe]

    def check(self, nodes: Nodes) -> Outcome:
        """Let delegates have only *nodes*; return whether the result is right on all inputs."""

    def probe(self, nodes: Nodes) -> Outcome:
        """Let delegates have only *nodes*; return whether the result is right on one input.

        It is the input on which the last :meth:`check` failed.
        """


class OutOfProbesError(Exception):
    """Raised inside :func:`search` when no more probes are allowed; callers never see it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A smallest set of nodes whose result is wrong when a delegate has all of them.

    Attributes:
        nodes: the faulty nodes, in the order of the model.
        outcome: outcome of the probe with these nodes only.
        named_after: number of probes before the fault was found.
        is_smallest: whether the fault needs every one of the nodes; False if the probes ran out
            before this was known.
    """

    nodes: Nodes
    outcome: Outcome
    named_after: int
    is_smallest: bool = True


@dataclass(frozen=True, slots=True)
class Search:
    """Result of a search for faulty nodes.

    Attributes:
        faults: the faults in the order in which they were found; empty if the result is right.
        baseline: failure when delegates have no nodes at all, in which case the search ends; None
            if that result is right.
        is_complete: whether the result is right without the faulty nodes; False if the search
            stopped before.
        is_interrupted: whether an interrupt (Ctrl-C) stopped the search.
    """

    faults: tuple[Fault, ...] = ()
    baseline: Outcome | None = None
    is_complete: bool = True
    is_interrupted: bool = False


def search(
    nodes: Sequence[Node],
    prober: Prober,
    *,
    most_faults: int | None = None,
    found: Callable[[Fault], object] = bool,
) -> Search:
    """Return the smallest failing sets of nodes, searched one after another.

    An interrupt ends the search if there is a fault already.

    A single faulty node of n is found after at most ``floor(log2(n)) + 3`` probes: one with all
    nodes, a binary search, and one with that node alone.

    Args:
        nodes: candidates, in execution order.
        prober: object that tests sets of nodes.
        most_faults: number of faults after which the search stops; None for no limit.
        found: function that is called with each fault.

    Raises:
        KeyboardInterrupt: the search is interrupted before there is a fault.
    """
    faults: list[Fault] = []
    rest = tuple(nodes)
    try:
        while (outcome := prober.check(rest)).fails:
            if not rest:
                return Search(baseline=outcome)
            if len(faults) == most_faults:
                return Search(tuple(faults), is_complete=False)
            fault = _smallest_fault(rest, outcome, prober)
            faults.append(fault)
            has_baseline = len(faults) > 1 or not fault.is_smallest
            if not has_baseline and (baseline := prober.check(())).fails:
                return Search(baseline=baseline)
            found(fault)
            if not fault.is_smallest:
                return Search(tuple(faults), is_complete=False)
            rest = tuple(node for node in rest if node not in fault.nodes)
    except OutOfProbesError:
        return Search(tuple(faults), is_complete=False)
    except KeyboardInterrupt:
        if not faults:
            raise
        return Search(tuple(faults), is_complete=False, is_interrupted=True)
    return Search(tuple(faults))


def _smallest_fault(nodes: Nodes, outcome: Outcome, prober: Prober) -> Fault:
    """Return a smallest part of *nodes* that fails in the same way.

    Args:
        nodes: nodes that fail together.
        outcome: how they fail.
        prober: object that tests sets of nodes.
    """
    best = nodes, outcome

    def fails(some: Iterable[Node]) -> bool:
        nonlocal best
        chosen = tuple(sorted(some))
        found = prober.probe(chosen)
        if found.fails and len(chosen) < len(best[0]):
            best = chosen, found
        return found.fails

    try:
        found = _needed(nodes, fails)
        if len(found) > 1:
            for node in tuple(found):
                others = [other for other in found if other != node]
                if fails(others):
                    found = others
        is_smallest = True
    except OutOfProbesError:
        is_smallest = False
    return Fault(*best, len(prober.probes), is_smallest)


class _Fails(Protocol):
    def __call__(self, some: Iterable[Node]) -> bool: ...


def _needed(nodes: Nodes, fails: _Fails) -> list[Node]:
    """Return a part of *nodes* that still fails, and from which no node can be removed.

    Source:
        Junker, "QuickXplain" (AAAI 2004): the last node of the shortest failing prefix is needed.
        The step is repeated on the nodes before it, until the needed nodes fail alone.

    Args:
        nodes: nodes that fail together.
        fails: function that returns whether a set of nodes fails.
    """
    needed: list[Node] = []
    before = list(nodes)  # invariant: these fail together with the needed nodes
    while before and not (needed and fails(needed)):
        right, wrong = 0, len(before)
        while wrong - right > 1:
            middle = (right + wrong) // 2
            if fails([*needed, *before[:middle]]):
                wrong = middle
            else:
                right = middle
        needed.append(before[wrong - 1])
        before = before[: wrong - 1]
    return needed


def contradictions(probes: Sequence[Probe]) -> Iterator[tuple[Probe, Probe]]:
    """Yield pairs of probes on the same inputs: one fails, and one of more nodes does not.

    Each failing probe is yielded once, with the smallest probe that contradicts it. A contradiction
    means that the outcome also depends on the partitions, or on chance.
    """
    right = sorted((p for p in probes if not p.outcome.fails), key=lambda p: len(p.nodes))
    for failing in probes:
        if failing.outcome.fails:
            for other in right:
                if failing.runs[-1] in other.runs and {*failing.nodes} <= {*other.nodes}:
                    yield failing, other
                    break
