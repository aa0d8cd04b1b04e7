"""Writes files that reproduce a fault: smallest failing model, inputs, rules and command."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.rules import PlacementRule, PlacementRules
from delegraph.delegation.rules_file import rules_text
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError, DelegraphError
from delegraph.json_records import JsonRecord
from delegraph.processes.ending import Death
from delegraph.processes.worker import Worker
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.tools.differing.bisection import Fault, Node, Nodes, Outcome
from delegraph.tools.differing.command_line import diff_command
from delegraph.tools.differing.probe_work import ComparedRun, Job, inner_tolerance
from delegraph.tools.differing.probes import Probes, excluding
from delegraph.tools.differing.tolerances import Tolerances
from delegraph.tools.progress import Progress
from delegraph.tools.shrinking import shrunk, with_output_shapes

Array = NDArray[Any]
Named = Sequence[tuple[str, Array]]

SHRINKING_TIME = 10.0
"""Seconds after which the shrinking of a failing model stops."""


@dataclass(frozen=True, slots=True)
class Reproduction(JsonRecord):
    """Files that reproduce a fault.

    Attributes:
        model: path of the smallest model that fails.
        inputs: path of the model's inputs, ``.npz``.
        outputs: path of the model's outputs, ``.npz``: ``expected/NAME`` and, if there are outputs,
            ``found/NAME``.
        rules: path of rules that exclude all other nodes from the delegates; empty if the model
            fails without rules.
        command: command line that shows the fault again.
        is_whole: whether the model is the whole model, because the nodes alone do not fail.
    """

    model: str
    inputs: str
    outputs: str
    rules: str
    command: str
    is_whole: bool

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all files; that of the rules may be empty."""
        return self.model, self.inputs, self.outputs, self.rules


_NAMES = re.compile(r"(culprit\d*\.)?rules\.toml|culprit\d*(\.tflite|(\.outputs)?\.npz)")
"""Names of all files that a bisection may write."""


def earlier_files(folder: str, written: Collection[str]) -> list[str]:
    """Sorted names of the files in *folder* that bisections write, except the paths *written*."""
    if not os.path.isdir(folder):
        return []
    names = sorted(filter(_NAMES.fullmatch, os.listdir(folder)))
    return [name for name in names if os.path.join(folder, name) not in written]


@dataclass(frozen=True, eq=False)
class FailingCase:
    """A failing model with its input values, which the shrinker makes smaller."""

    records: tables.Model
    steps: tuple[tuple[Array, ...], ...]
    reference: tables.Model | None = None


class Reproducer:
    """Writes the reproduction files of one bisection.

    Args:
        folder: path of the folder; created if it does not exist.
        job: the compared set-ups with their inputs.
        process: worker that computes the probes.
        probes: all probes of the search.
        progress: function that is called with the number of smaller models that were tried.

    Raises:
        ArgumentError: the folder cannot be created.
    """

    def __init__(
        self, folder: str, job: Job, process: Worker, probes: Probes, progress: Progress
    ) -> None:
        self._folder, self._job, self._process = folder, job, process
        self._probes, self._progress = probes, progress
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise ArgumentError(f"no folder {folder!r} can be made: {error.strerror}") from error

    def reproduce(self, fault: Fault, number: int) -> Reproduction:
        """Write the files that reproduce *fault*.

        Args:
            fault: the faulty nodes.
            number: number of the fault, from 0; files of the first fault have no number in their
                names.
        """
        stem = f"culprit{number + 1 if number else ''}"
        run = next(
            probe.runs[-1]
            for probe in self._probes.probes
            if probe.nodes == fault.nodes and probe.outcome.fails
        )
        return self._alone(fault, stem, run) or self._whole(fault, stem, run)

    def write_rules(self, faults: Sequence[Fault], owners: Mapping[Node, str | None]) -> str:
        """Write rules that exclude the nodes of all faults from their delegates; return the path.

        They exclude the nodes from all delegates if the result is wrong with another delegate.

        Args:
            faults: the faults.
            owners: name of the delegate of each candidate; None if it is unknown.
        """
        own = self._probes.own_rules
        nodes = sorted({node for fault in faults for node in fault.nodes})
        names = sorted({name for node in nodes if (name := owners[node]) is not None})
        by_owner = (excluding([n for n in nodes if owners[n] == name], [name]) for name in names)
        rules = PlacementRules((*own, *(rule for found in by_owner for rule in found)))
        everywhere = PlacementRules((*own, *excluding(nodes, self._probes.delegates)))
        if [*rules] != [*everywhere] and not (names and self._probes.is_right(rules)):
            rules = everywhere
        return self._write("rules.toml", rules_text(rules))

    # -- a model of the nodes alone ----------------------------------------------------------------

    def _alone(self, fault: Fault, stem: str, run: int) -> Reproduction | None:
        """Write a small model that shows the fault, and its inputs; None if no small model does.

        The model has the faulty nodes alone, or all nodes from the first to the last of them.
        *stem* begins the names of the files; *run* is the number of the failing run.
        """
        job = self._job
        if job.signature is not None or job.reference.model != job.setup.model:
            return None
        first, last = fault.nodes[0], fault.nodes[-1]
        between = tuple((first[0], index) for index in range(first[1], last[1] + 1))
        for nodes in dict.fromkeys((fault.nodes, between)):
            found = self._case(fault, nodes, stem, run)
            if found is not None:
                return self._written(fault, nodes, stem, found)
        return None

    def _case(self, fault: Fault, nodes: Nodes, stem: str, run: int) -> FailingCase | None:
        """Return a small model of *nodes* that fails like *fault*; None if it does not fail so."""
        try:
            cut = self._process.ask("cut", nodes, run, patiently=True)
        except DelegraphError:
            return None
        if isinstance(cut, Death):
            return None
        content, values = cut
        case = FailingCase(read_model(np.frombuffer(content, np.uint8)), (values,))
        rules = self._rules(fault, nodes)
        end = time.monotonic() + SHRINKING_TIME
        tries = 0

        def fails(other: FailingCase) -> bool:
            nonlocal tries
            tries += 1
            self._progress("smaller models", tries, None)
            return self._judged(other, stem, rules).kind == fault.outcome.kind

        if not fails(case):
            return None
        case = shrunk(case, lambda other: time.monotonic() < end and fails(other))
        model = self._write(f"{stem}.tflite", write_model(case.records))
        computed = self._process.ask("right_of", model, case.steps[0], patiently=True)
        exact = with_output_shapes(case, [array.shape for _, array in computed])
        return exact if fails(exact) else case

    def _judged(self, case: FailingCase, stem: str, rules: PlacementRules) -> Outcome:
        path = self._write(f"{stem}.tflite", write_model(case.records))
        answer = self._process.ask("judge", path, case.steps[0], rules)
        if isinstance(answer, Death):
            return Outcome("hung" if answer.is_hung else "crashed", answer.text)
        outcome: Outcome = answer
        return outcome

    def _rules(self, fault: Fault, nodes: Nodes) -> PlacementRules:
        """Return rules for a model of *nodes* that leave only the fault's nodes to delegates."""
        others = [(0, i) for i, node in enumerate(nodes) if node not in fault.nodes]
        return PlacementRules(excluding(others, self._probes.delegates))

    def _written(self, fault: Fault, nodes: Nodes, stem: str, case: FailingCase) -> Reproduction:
        rules, values = self._rules(fault, nodes), case.steps[0]
        outcome = self._judged(case, stem, rules)
        found, profile = self._found(outcome)
        model = os.path.join(self._folder, f"{stem}.tflite")
        expected = self._process.ask("right_of", model, values, patiently=True)
        names = _input_names(case.records)
        run = ComparedRun("", names, values, tuple(expected))
        given = self._job.tolerance
        tolerance = profile if given is None else inner_tolerance(given)
        return self._files(stem, model, run, found, rules, tolerance, is_whole=False)

    # -- the whole model ---------------------------------------------------------------------------

    def _whole(self, fault: Fault, stem: str, number: int) -> Reproduction:
        """Write files that reproduce *fault* with the whole model.

        They are the inputs of run *number*, and placement rules by which the delegate gets the
        faulty nodes only. Their names begin with *stem*.
        """
        Path(self._folder, f"{stem}.tflite").unlink(missing_ok=True)
        rules = self._probes.rules_for(fault.nodes)
        run = self._process.ask("run_of", number, patiently=True)
        if fault.outcome.kind == "differs":
            self._process.ask("open", rules)
            self._process.ask("run", number)
        found, profile = self._found(fault.outcome)
        model, given = self._job.setup.model, self._job.tolerance
        tolerance = profile if given is None else given
        return self._files(stem, model, run, found, rules, tolerance, is_whole=True)

    def _found(self, outcome: Outcome) -> tuple[Named, Tolerances | None]:
        """Return the outputs of the last run, and their numerics profile; none if it failed."""
        if outcome.kind != "differs":
            return [], None
        profile: dict[str, float] = self._process.ask("profile")
        names = profile if len({*profile.values()}) > 1 else [""]
        absolute = dict(zip(names, profile.values(), strict=False))
        tolerances = {name: Tolerance(absolute=value) for name, value in absolute.items()}
        return self._process.ask("found"), tolerances or None

    # -- files -------------------------------------------------------------------------------------

    def _files(
        self,
        stem: str,
        model: str,
        run: ComparedRun,
        found: Named,
        rules: Sequence[PlacementRule] | PlacementRules,
        tolerance: Any,
        *,
        is_whole: bool,
    ) -> Reproduction:
        names = run.names
        if len({*names} - {"", "file"}) < len(names):
            names = tuple(map(str, range(len(names))))  # an input may also be named by its position
        inputs = self._save(f"{stem}.npz", dict(zip(names, run.values, strict=True)))
        arrays = {f"expected/{name}": array for name, array in run.expected}
        arrays |= {f"found/{name}": array for name, array in found}
        outputs = self._save(f"{stem}.outputs.npz", arrays)
        path = self._write(f"{stem}.rules.toml", rules_text(rules)) if len(rules) else ""
        command = diff_command(
            self._job.setup,
            model,
            self._job.reference,
            inputs=inputs,
            rules=path,
            tolerance=tolerance,
            signature=self._job.signature if is_whole else None,
        )
        return Reproduction(model, inputs, outputs, path, command, is_whole)

    def _write(self, name: str, content: bytes | str) -> str:
        path = os.path.join(self._folder, name)
        raw = content.encode() if isinstance(content, str) else content
        try:
            Path(path).write_bytes(raw)
        except OSError as error:
            raise ArgumentError(f"{path!r} cannot be written: {error.strerror}") from error
        return path

    def _save(self, name: str, arrays: dict[str, Array]) -> str:
        path = os.path.join(self._folder, name)
        plain: dict[str, Any] = {
            key: array.astype(bytes) if array.dtype.kind == "O" else array
            for key, array in arrays.items()
        }
        try:
            np.savez(path, **plain)
        except OSError as error:
            raise ArgumentError(f"{path!r} cannot be written: {error.strerror}") from error
        return path


def _input_names(records: tables.Model) -> tuple[str, ...]:
    main = (records.subgraphs or ())[0]
    return tuple((main.tensors or ())[i].name or "" for i in main.inputs or ())
