"""``bisect``: which nodes make a delegate's results wrong, found by placement rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from delegraph.delegation.html_tables import html_table
from delegraph.delegation.placement import NodePlacement
from delegraph.delegation.rules import PlacementRules
from delegraph.delegation.rules_file import placement_rules
from delegraph.errors import ArgumentError, DelegraphError, PluginError
from delegraph.json_records import JsonRecord
from delegraph.native.litert.placement import RUNTIME_DELEGATE
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker
from delegraph.tools.differing.bisection import (
    Fault,
    Node,
    Outcome,
    Probe,
    Search,
    contradictions,
    search,
)
from delegraph.tools.differing.difference import Tolerances, own_kernels
from delegraph.tools.differing.input_runs import OFFICIAL
from delegraph.tools.differing.probe_work import ANSWERS, Candidates, Job, ProbeWork
from delegraph.tools.differing.probes import Probes
from delegraph.tools.differing.reproduction import Reproducer, Reproduction
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

TIME_LIMIT = 60.0
"""Seconds that applying the delegates, or a run, may take before it counts as hanging."""

MOST_PROBES = 500


def _nodes(nodes: Sequence[NodePlacement]) -> list[dict[str, Any]]:
    keys = ("subgraph", "index", "op", "name", "delegate")
    return [{key: getattr(node, key) for key in keys} for node in nodes]


@dataclass(frozen=True, slots=True)
class Culprit(JsonRecord):
    """A smallest set of nodes that makes the result wrong when a delegate has the nodes.

    Attributes:
        nodes: where they run when nothing keeps them off.
        outcome: what happens when the delegates have these nodes only.
        named_after: number of probes before the nodes were found.
        is_smallest: whether every one of them is needed; False where probes ran out.
        reproduction: the files that show it; None where no folder was asked for.
    """

    nodes: tuple[NodePlacement, ...] = field(metadata={"json_value": _nodes})
    outcome: Outcome
    named_after: int
    is_smallest: bool
    reproduction: Reproduction | None = None

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.nodes))}: {self.outcome}"


@dataclass(frozen=True, slots=True)
class Bisection(JsonRecord):
    """Which nodes are to blame for a wrong result.

    Attributes:
        setup, reference: what was compared.
        candidates: the nodes that delegates have by themselves.
        culprits: in the order in which they were found; empty where the result is right.
        probes: all tries, in order.
        run: what was fed where the last check failed, in words.
        baseline: what is wrong when no delegate has a node; None where that is right.
        is_complete: whether the result is right without the culprits; False where probes ran out.
        remarks: what was odd, in words.
        rules_file: keeps the culprits off the delegates; empty without a folder or culprits.
    """

    setup: Setup
    reference: Setup
    candidates: tuple[NodePlacement, ...] = field(metadata={"json_value": _nodes})
    culprits: tuple[Culprit, ...]
    probes: tuple[Probe, ...]
    run: str
    baseline: Outcome | None
    is_complete: bool
    remarks: tuple[str, ...]
    rules_file: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the result is within the tolerance with all nodes."""
        return not self.culprits and self.baseline is None and self.is_complete

    def _repr_html_(self) -> str:
        """Return a table of the faulty nodes, which notebooks display."""
        rows = [
            (number, node.subgraph, node.index, node.op, node.delegate, culprit.outcome)
            for number, culprit in enumerate(self.culprits, 1)
            for node in culprit.nodes
        ]
        columns = ("culprit", "subgraph", "node", "operator", "delegate", "what happens")
        found = "the result is right" if self.is_right else f"culprits: {len(self.culprits)}"
        title = f"{self.setup} against {self.reference}"
        return html_table("; ".join((title, found, *self.remarks)), columns, rows)


def bisect(
    setup: Setup,
    reference: Setup | None = None,
    *,
    tolerance: Tolerances,
    inputs: InputRequest = OFFICIAL,
    runs: int | None = None,
    signature: str | None = None,
    time_limit: float = TIME_LIMIT,
    most_probes: int = MOST_PROBES,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = untold,
) -> Bisection:
    """Find the smallest sets of nodes that make a result wrong when a delegate has them.

    Each probe keeps the other nodes off the delegates by placement rules, and runs in a process of
    its own. A result is wrong when it is further off than the tolerance, when anything raises, when
    the process crashes or when it takes too long.

    Args:
        setup: what is tested. Its ``require`` is left out, as nodes have to stay behind, and so is
            LiteRT's XNNPACK, which follows no rules and rounds otherwise than the nodes left to it.
        reference: what is right; None for the same runtime without the delegates.
        tolerance: how far outputs may be off.
        inputs: what both are fed; the search goes on with the first that fail.
        runs: how many, as :func:`diff` has it.
        signature: of both models; None for the whole models.
        time_limit: seconds that applying the delegates, or a run, may take.
        most_probes: after so many the search ends with what it has.
        folder: where to write the smallest failing models, their inputs and rules.
        progress: is told how many probes are done.

    Raises:
        ArgumentError: rules that pin nodes; delegates that are objects where no process can be
            forked; else as :func:`diff`.
        PluginError: a delegate is missing or broken.
        DelegraphError: the reference cannot run its model on these inputs.
    """
    if setup.runtime == "litert":
        setup = replace(setup, use_default_delegates=False)
    reference = _without_delegates(setup) if reference is None else reference
    rules = _rules_of(setup)
    job = Job(replace(setup, rules=rules), reference, tolerance, inputs, runs, signature)
    forked = not _is_named(setup, reference)
    with Worker(ProbeWork, job, time_limit=time_limit, records=ANSWERS, forked=forked) as process:
        found = _candidates(process)
        by_key = {(node.subgraph, node.index): node for node in found.nodes}
        probes = Probes(
            process,
            list(by_key),
            found.delegates,
            rules,
            most_probes,
            lambda done: progress("probes", done, None),
        )
        result = search(sorted(by_key), probes)
        bisection = Bisection(
            setup,
            reference,
            found.nodes,
            tuple(_culprit(fault, by_key) for fault in result.faults),
            tuple(probes.probes),
            _fed(process, probes),
            result.baseline,
            result.is_complete,
            tuple(_remarks(result, probes, by_key)),
        )
        if folder is None or not bisection.culprits:
            return bisection
        reproducer = Reproducer(os.fspath(folder), job, process, probes, progress)
        files = [reproducer.reproduce(fault, i) for i, fault in enumerate(result.faults)]
        culprits = zip(bisection.culprits, files, strict=True)
        return replace(
            bisection,
            culprits=tuple(replace(culprit, reproduction=file) for culprit, file in culprits),
            rules_file=reproducer.write_rules(result.faults),
        )


def _without_delegates(setup: Setup) -> Setup:
    """Return the set-up for the nodes that a probe excludes from delegates."""
    own = own_kernels(setup)
    return own if setup.runtime == "delegraph" else replace(own, runtime=setup.runtime)


def _rules_of(setup: Setup) -> PlacementRules:
    rules = placement_rules(setup.rules)
    for position, rule in enumerate(rules):
        if rule.action == "pin":
            raise ArgumentError(
                f"{rules.quote(position)} cannot hold while nodes are kept off delegates: leave "
                "rules that pin out of a bisection"
            )
    return rules


def _is_named(*setups: Setup) -> bool:
    """Return whether all delegates are given by name, so that another process can make them."""
    return all(isinstance(d, str) for setup in setups for d in setup.delegates or ())


def _candidates(process: Worker) -> Candidates:
    """Return the nodes that delegates have, or all nodes if the set-up fails at once."""
    try:
        answer = process.ask("candidates")
    except (ArgumentError, PluginError):
        raise
    except DelegraphError:
        answer = None
    if answer is None or isinstance(answer, Death):
        answer = process.ask("all_nodes")
        if isinstance(answer, Death):
            raise DelegraphError(f"the delegates cannot be loaded: {answer.text}")
    found: Candidates = answer
    return replace(found, delegates=tuple(d for d in found.delegates if d != RUNTIME_DELEGATE))


def _fed(process: Worker, probes: Probes) -> str:
    """Inputs at which the last probe failed, in words."""
    answer = process.ask("run_of", probes.run, patiently=True)
    return "" if isinstance(answer, Death) else answer.words


def _culprit(fault: Fault, nodes: dict[Node, NodePlacement]) -> Culprit:
    chosen = tuple(nodes[key] for key in fault.nodes)
    return Culprit(chosen, fault.outcome, fault.named_after, fault.is_smallest)


def _remarks(result: Search, probes: Probes, nodes: dict[Node, NodePlacement]) -> Iterator[str]:
    """Yield remarks about the search for the user."""
    if result.baseline is not None:
        yield (
            "the result is as wrong when no node is with a delegate that follows rules, so none is "
            "to blame: compare with a reference of the same runtime without those delegates"
        )
        return
    if not result.is_complete:
        yield (
            f"{len(probes.probes)} probes were not enough: more nodes may be faulty, or fewer of "
            "the last ones be needed"
        )
    for failing, right in contradictions(probes.probes):
        few = _in_words(failing.nodes, nodes)
        more = [node for node in right.nodes if node not in failing.nodes]
        yield (
            f"{few} fail{'s' * (len(failing.nodes) == 1)} ({failing.outcome.kind}), and with "
            f"{_in_words(more, nodes)} besides the result is right: how nodes are cut into "
            "partitions matters, faults make up for each other, or chance plays a part"
        )
        break


def _in_words(keys: Sequence[Node], nodes: dict[Node, NodePlacement]) -> str:
    if len(keys) > 3:
        return f"{len(keys)} nodes"
    return ", ".join(str(nodes[key]) for key in keys) or "no node"
