"""``bisect``: finds the nodes that make a delegate's results wrong, by placement rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
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
from delegraph.quantities import plural
from delegraph.tools.differing.bisection import (
    Fault,
    Node,
    Nodes,
    Outcome,
    OutOfProbesError,
    Probe,
    Search,
    contradictions,
    search,
)
from delegraph.tools.differing.difference import own_kernels
from delegraph.tools.differing.input_runs import OFFICIAL
from delegraph.tools.differing.probe_work import ANSWERS, Candidates, Job, ProbeWork
from delegraph.tools.differing.probes import Probes
from delegraph.tools.differing.reproduction import Reproducer, Reproduction, earlier_files
from delegraph.tools.differing.tolerances import Tolerances
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

TIME_LIMIT = 60.0
"""Seconds after which applying the delegates, or a run, counts as hanging."""

MOST_PROBES = 500

MOST_CULPRITS = 20

_FEW_FILES = 4
"""Largest number of files that a remark names."""

_FAULTS_OF_ROUNDINGS = {"roundings": 0, "magnified roundings": 3}
"""Number of faults after which the search stops, by the kind of a cause with right nodes only."""


def _nodes(nodes: Sequence[NodePlacement]) -> list[dict[str, Any]]:
    keys = ("subgraph", "index", "op", "name", "delegate")
    return [{key: getattr(node, key) for key in keys} for node in nodes]


@dataclass(frozen=True, slots=True)
class Culprit(JsonRecord):
    """A smallest set of nodes that makes the result wrong if delegates have all of them.

    Attributes:
        nodes: placement of each node when no rule excludes it.
        outcome: result of the probe in which delegates have these nodes only.
        named_after: number of probes before the nodes were found.
        is_smallest: whether the fault needs every one of the nodes; False if the probes ran out
            before this was known.
        reproduction: files that reproduce the fault; None if no folder was given.
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
    """Result of ``bisect``: the nodes that cause a wrong result.

    Attributes:
        setup, reference: the compared set-ups.
        candidates: the nodes that delegates claim without additional rules.
        culprits: the faulty sets of nodes in the order in which they were found; empty if the
            result is right.
        probes: all probes, in order.
        run: description of the input values on which the last check failed.
        baseline: the failure when no delegate has a node; None if that result is right.
        is_complete: whether the result is right without the culprits; False if the search stopped
            before.
        cause: why the outputs are beyond the tolerance, as in JSON of ``diff``: mapping with kind,
            node, operator, tensor and text. It is None without a tolerance, and if it is unknown.
        remarks: unusual facts about the search, in words.
        rules_file: path of rules that exclude the culprits from delegates; empty without a folder
            or culprits.
        is_interrupted: whether an interrupt (Ctrl-C) stopped the search.
    """

    setup: Setup
    reference: Setup
    candidates: tuple[NodePlacement, ...] = field(default=(), metadata={"json_value": _nodes})
    culprits: tuple[Culprit, ...] = ()
    probes: tuple[Probe, ...] = ()
    run: str = ""
    baseline: Outcome | None = None
    is_complete: bool = True
    remarks: tuple[str, ...] = ()
    rules_file: str = ""
    cause: Mapping[str, Any] | None = None
    is_interrupted: bool = False

    @property
    def is_right(self) -> bool:
        """Whether the result is within the tolerance when delegates have all their nodes."""
        return not self.culprits and self.baseline is None and self.is_complete

    @property
    def has_right_nodes(self) -> bool:
        """Whether each node is right alone, so that roundings cause the difference."""
        return self.cause is not None and self.cause["kind"] in _FAULTS_OF_ROUNDINGS

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
    tolerance: Tolerances | None = None,
    inputs: InputRequest = OFFICIAL,
    runs: int | None = None,
    signature: str | None = None,
    time_limit: float = TIME_LIMIT,
    most_probes: int = MOST_PROBES,
    most_culprits: int = MOST_CULPRITS,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = untold,
) -> Bisection:
    """Find the smallest sets of nodes that make a result wrong if a delegate has them.

    Each probe excludes all other nodes from the delegates by placement rules, and runs in a child
    process. A result is wrong if it is beyond the tolerance, if an exception is raised, or if the
    process crashes or takes too long. An interrupt ends the search, and its results so far are
    returned, if there is a culprit.

    Args:
        setup: the tested set-up. Its ``require`` is ignored, because probes exclude nodes. LiteRT's
            XNNPACK is not used, because it ignores rules and rounds differently.
        reference: the set-up whose results count as right; None means the same runtime without
            delegates.
        tolerance: largest allowed difference of outputs; None means the numerics profile.
        inputs: input values for both set-ups; the search continues with the first values that fail.
        runs: number of runs. None means one run per file of a folder, one run if no value is
            random, and otherwise 50 runs.
        signature: name of the signature to call in both models; None means the whole models.
        time_limit: seconds that applying the delegates, or a run, may take.
        most_probes: largest number of probes; after them the search returns its results so far.
        most_culprits: number of culprits after which the search returns them, likewise.
        folder: folder for the smallest failing models, their inputs and rules, which are written as
            each culprit is found.
        progress: function that is called with the number of finished probes.

    Raises:
        ArgumentError: rules pin nodes, delegates are objects but the system cannot fork processes,
            inputs do not fit, or a name is unknown.
        PluginError: a delegate is missing or broken.
        DelegraphError: the reference cannot run its model on these inputs.
        KeyboardInterrupt: the search is interrupted before there is a culprit.
    """
    if setup.runtime != "delegraph":
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
            lambda done: progress(
                f"{plural(done, 'probe')}, {plural(len(files), 'culprit')}, "
                f"{plural(probes.left, 'candidate')} left",
                done,
                None,
            ),
        )
        files: list[Reproduction | None] = []  # of the culprits so far

        def keep(fault: Fault) -> None:
            writes = folder is not None
            files.append(reproducer().reproduce(fault, len(files)) if writes else None)

        def reproducer() -> Reproducer:
            return Reproducer(os.fspath(folder or ""), job, process, probes, progress)

        cause = None if tolerance is None else _cause(process, probes, tuple(sorted(by_key)))
        most = _most_faults(cause, most_culprits)
        is_plain = (reference.runtime, reference.delegates) == (setup.runtime, ("none",))
        result = search(sorted(by_key), probes, most_faults=most, found=keep)
        if not result.is_interrupted:
            for fault in result.faults[len(files) :]:  # without probes for its baseline
                keep(fault)
        bisection = Bisection(
            setup,
            reference,
            found.nodes,
            tuple(
                _culprit(fault, by_key, file)
                for fault, file in zip_longest(result.faults, files[: len(result.faults)])
            ),
            tuple(probes.probes),
            _fed(process, probes),
            result.baseline,
            result.is_complete,
            (
                *_remarks(result, probes, by_key, cause, most, is_plain=is_plain),
                *(f"{name} takes no node" for name in found.idle),
            ),
            cause=cause,
            is_interrupted=result.is_interrupted,
        )
        if folder is None:
            return bisection
        if bisection.culprits:
            owners = {key: node.delegate for key, node in by_key.items()}
            file = reproducer().write_rules(result.faults, owners)
            bisection = replace(bisection, rules_file=file)
        return _with_earlier_files(bisection, os.fspath(folder))


def _with_earlier_files(found: Bisection, folder: str) -> Bisection:
    """Return *found* with a remark on files that an earlier search left in *folder*, if any."""
    culprits = (culprit.reproduction for culprit in found.culprits)
    written = {path for files in culprits if files is not None for path in files.paths}
    names = earlier_files(folder, {*written, found.rules_file})
    if not names:
        return found
    more = f" and {len(names) - _FEW_FILES} more" if len(names) > _FEW_FILES else ""
    told = f"{folder} also has files of an earlier search: {', '.join(names[:_FEW_FILES])}{more}"
    return replace(found, remarks=(*found.remarks, told))


def _without_delegates(setup: Setup) -> Setup:
    """Return *setup* without delegates, as it computes the nodes that a probe excludes."""
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
    """Whether all delegates are given by name, so that another process can create them."""
    return all(isinstance(d, str) for setup in setups for d in setup.delegates or ())


def _candidates(process: Worker) -> Candidates:
    """Return the nodes that delegates claim, or all nodes if the set-up fails at once."""
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
    """Return a description, from *process*, of the inputs on which the last probe failed."""
    answer = process.ask("run_of", probes.run, patiently=True)
    return "" if isinstance(answer, Death) else answer.words


def _culprit(fault: Fault, nodes: dict[Node, NodePlacement], file: Reproduction | None) -> Culprit:
    chosen = tuple(nodes[key] for key in fault.nodes)
    return Culprit(chosen, fault.outcome, fault.named_after, fault.is_smallest, file)


def _cause(process: Worker, probes: Probes, nodes: Nodes) -> Mapping[str, Any] | None:
    """Return why the outputs are beyond the tolerance, as in :class:`Bisection`.

    Args:
        process: the process of the probes.
        probes: the probes.
        nodes: all candidates.
    """
    try:
        if probes.check(nodes).kind != "differs":
            return None
        answer = process.ask("cause", probes.run)
    except (OutOfProbesError, DelegraphError):
        return None
    return None if isinstance(answer, Death) else answer


def _most_faults(cause: Mapping[str, Any] | None, most: int) -> int:
    """Number of faults to search: at most *most*, and few if each node is right alone."""
    return most if cause is None else min(most, _FAULTS_OF_ROUNDINGS.get(cause["kind"], most))


def _remarks(
    result: Search,
    probes: Probes,
    nodes: dict[Node, NodePlacement],
    cause: Mapping[str, Any] | None,
    most: int,
    *,
    is_plain: bool,
) -> Iterator[str]:
    """Yield remarks for the user about unusual facts of a search.

    Args:
        result: the search.
        probes: its probes.
        nodes: placement of each candidate.
        cause: why the outputs are beyond the tolerance; None if unknown.
        most: number of faults after which the search stops.
        is_plain: whether the reference is the tested set-up without delegates.
    """
    if result.baseline is not None:
        advice = ": compare with a reference of the same runtime without those delegates"
        yield (
            "the result is as wrong when no node is with a delegate that follows rules, so none is "
            f"to blame{'' if is_plain else advice}"
        )
        return
    if result.is_interrupted:
        yield "interrupted: more nodes may be faulty"
    elif not result.is_complete and most == len(result.faults):
        yield (
            "--layers --sort worst shows how much each node adds"
            if cause is not None and cause["kind"] in _FAULTS_OF_ROUNDINGS
            else f"the search ended after {plural(most, 'culprit')}: more nodes may be faulty; "
            "with --rules of the written file, another search goes on"
        )
    elif not result.is_complete:
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
