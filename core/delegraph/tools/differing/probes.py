"""Probes: let delegates have only some nodes, by placement rules, and check the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from delegraph.delegation.rules import PlacementRule, PlacementRules
from delegraph.errors import DelegraphError
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker
from delegraph.tools.differing.bisection import RIGHT, Node, Nodes, Outcome, OutOfProbesError, Probe

logger = logging.getLogger(__name__)


class Probes:
    """Tests sets of nodes in a separate process; each set and run is tested once.

    Attributes:
        probes: all probes so far.
        delegates: names of the delegates from which nodes are excluded.
        own_rules: the user's rules.
        run: number of the run on which the last :meth:`check` failed.
        left: number of candidates that no fault is found in yet.

    Args:
        process: worker with a :class:`~delegraph.tools.differing.probe_work.ProbeWork`.
        nodes: all candidates.
        delegates: names of the delegates from which to exclude nodes.
        rules: the user's rules.
        most: maximal number of probes.
        told: function that is called after each probe.
    """

    def __init__(
        self,
        process: Worker,
        nodes: Sequence[Node],
        delegates: Sequence[str],
        rules: PlacementRules,
        most: int,
        told: Callable[[int], object],
    ) -> None:
        self.probes: list[Probe] = []
        self.run, self.left = 0, len(nodes)
        self._process, self.own_rules = process, rules
        self._nodes, self.delegates = frozenset(nodes), delegates
        self._most, self._told = most, told
        self._known: dict[tuple[int, Nodes], Outcome] = {}
        self._num_runs = _answer(process.ask("runs", patiently=True))

    def check(self, nodes: Nodes) -> Outcome:
        """Test *nodes* on all inputs, beginning with the run that failed last."""
        self.left = len(nodes) or self.left
        return self._try(nodes, sorted(range(self._num_runs), key=lambda run: run != self.run))

    def probe(self, nodes: Nodes) -> Outcome:
        """Test *nodes* with the inputs on which the last :meth:`check` failed."""
        return self._try(nodes, [self.run])

    def rules_for(self, nodes: Nodes) -> PlacementRules:
        """Return the user's rules, and rules that exclude all candidates except *nodes*."""
        others = sorted(self._nodes - {*nodes})
        return PlacementRules((*self.own_rules, *excluding(others, self.delegates)))

    def _try(self, nodes: Nodes, runs: Sequence[int]) -> Outcome:
        new = [run for run in runs if (run, nodes) not in self._known]
        known = [self._known[run, nodes] for run in runs if (run, nodes) in self._known]
        failed = next((outcome for outcome in known if outcome.fails), None)
        if failed is not None or not new:
            return failed or RIGHT
        if len(self.probes) >= self._most:
            raise OutOfProbesError
        start = time.perf_counter()
        outcome, done = self._made(self.rules_for(nodes), new)
        self.probes.append(Probe(nodes, outcome, tuple(done), time.perf_counter() - start))
        for run in done:
            self._known[run, nodes] = outcome if run == done[-1] else RIGHT
        if outcome.fails and len(runs) > 1:
            self.run = done[-1]
        self._told(len(self.probes))
        text = "probe %d: %d of %d nodes with delegates: %s (%.2f s)"
        seconds = self.probes[-1].seconds
        logger.info(text, len(self.probes), len(nodes), len(self._nodes), outcome, seconds)
        return outcome

    def is_right(self, rules: PlacementRules) -> bool:
        """Whether the result is right on all inputs under *rules*; this is no probe."""
        return not self._made(rules, range(self._num_runs))[0].fails

    def _made(self, rules: PlacementRules, runs: Sequence[int]) -> tuple[Outcome, list[int]]:
        """Test *rules* on the inputs of *runs*; return the outcome and the runs that were computed.

        The first failing run is the last one.

        Args:
            rules: rules that say which nodes delegates may have.
            runs: numbers of the runs.
        """
        outcome = self._outcome("open", rules)
        if outcome.fails:
            return outcome, list(runs[:1])
        done: list[int] = []
        for run in runs:
            done.append(run)
            _answer(self._process.ask("expect", run, patiently=True))
            outcome = self._outcome("run", run)
            if outcome.fails:
                break
        return outcome, done

    def _outcome(self, method: str, argument: Any) -> Outcome:
        answer = self._process.ask(method, argument)
        if isinstance(answer, Death):
            where = " while the delegates were applied" * (method == "open")
            return Outcome("hung" if answer.is_hung else "crashed", answer.text + where)
        outcome: Outcome = answer
        return outcome


def excluding(nodes: Sequence[Node], delegates: Sequence[str]) -> tuple[PlacementRule, ...]:
    """Return rules that exclude nodes from the named delegates, or from all if none is named."""
    subgraphs = sorted({subgraph for subgraph, _ in nodes})
    return tuple(
        PlacementRule(
            "exclude", name, nodes=ranges([n for s, n in nodes if s == index]), subgraph=index
        )
        for name in delegates or (None,)
        for index in subgraphs
    )


def ranges(numbers: Sequence[int]) -> list[str]:
    """Convert ascending numbers to ranges in the syntax of rules.

    >>> ranges([0, 1, 2, 7])
    ['0-2', '7']
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [str(a) if a == b else f"{a}-{b}" for a, b in found]


def _answer(answer: Any) -> Any:
    """Return *answer* of the probe's process, or raise an error if the process has died.

    Raises:
        DelegraphError: the process has ended.
    """
    if isinstance(answer, Death):
        raise DelegraphError(f"the reference cannot be computed: {answer.text}")
    return answer
