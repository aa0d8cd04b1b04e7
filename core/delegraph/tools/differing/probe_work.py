"""Work in the process of a probe: runs a model under placement rules and compares the results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from delegraph.delegation.placement import NodePlacement, is_never_delegated
from delegraph.delegation.rules import PlacementRules
from delegraph.delegation.tolerance import Tolerance
from delegraph.errors import ArgumentError, DelegraphError, PluginError, in_words
from delegraph.runtime.delegates.requested_delegates import as_delegates
from delegraph.tools.differing.bisection import RIGHT, Nodes, Outcome
from delegraph.tools.differing.cause import cause_of
from delegraph.tools.differing.cut_model import cut_model
from delegraph.tools.differing.difference import diff
from delegraph.tools.differing.input_runs import InputRuns
from delegraph.tools.differing.matching import converted, matched, matched_inputs
from delegraph.tools.differing.metrics import tensor_difference
from delegraph.tools.differing.numerics_profile import in_compared_numbers, rounding
from delegraph.tools.differing.side import Outputs, Side
from delegraph.tools.differing.tolerances import (
    Tolerances,
    outside,
    require_known_outputs,
    tolerance_of,
)
from delegraph.tools.model_call import Details, model_call
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import tensor_names, with_names

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Job:
    """Set-up, reference, inputs and tolerance of all probes.

    Attributes:
        setup: the tested set-up.
        reference: the set-up with right results.
        tolerance: tolerance of the outputs; None means the numerics profile.
        inputs: input values for both set-ups.
        runs: number of runs, as for ``diff``.
        signature: name of the signature to call; None means the whole model.
    """

    setup: Setup
    reference: Setup
    tolerance: Tolerances | None
    inputs: InputRequest
    runs: int | None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Nodes that may cause a difference: nodes that delegates claim without additional rules.

    Attributes:
        nodes: placement of each of these nodes; if applying the delegates fails, of all nodes.
        delegates: names of the delegates that follow placement rules.
        idle: names of the requested delegates that claim no node.
    """

    nodes: tuple[NodePlacement, ...]
    delegates: tuple[str, ...]
    idle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """Input values of one run, and the reference's outputs for them.

    Attributes:
        words: description of the input values.
        names: names of the inputs.
        values: values of the inputs.
        expected: outputs of the reference, by name.
    """

    words: str
    names: tuple[str, ...]
    values: tuple[Array, ...]
    expected: tuple[tuple[str, Array], ...]


ANSWERS = (Candidates, ComparedRun, NodePlacement, Outcome)
"""Types of the records that a :class:`ProbeWork` returns."""


class ProbeWork:
    """Runs a model under placement rules, in a separate process, and compares its outputs."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._open = ExitStack()  # closes the tested side
        self._test: Side | None = None
        self._reference: Side | None = None
        self._inputs: InputRuns | None = None
        self._expected: dict[int, Outputs] = {}
        self._compared: tuple[Outputs, Outputs] = [], []  # of the test and of the reference

    def candidates(self) -> Candidates:
        """Return the nodes that delegates claim without extra rules."""
        interpreter = self._job.setup.interpreter()
        try:
            placement = interpreter.placement
            taken = tuple(
                replace(node, rejections={})  # rejections may hold objects of delegates
                for node in placement.nodes
                if node.delegate is not None
            )
            busy = {node.delegate for node in taken}
            idle = tuple(name for name in placement.requested_delegates if name not in busy)
            return Candidates(taken, placement.delegates, idle)
        finally:
            interpreter.close()

    def all_nodes(self) -> Candidates:
        """Return all nodes of the model, and the delegates that the user names."""
        setup = self._job.setup
        model = setup.loaded_model()
        nodes = tuple(
            NodePlacement(spec.index, operator.index, operator.name)
            for spec in model.subgraphs
            if not is_never_delegated(spec.name)
            for operator in spec.operators
        )
        requested = setup.requested_delegates()
        names = [delegate.name() for delegate in as_delegates(requested, setup.isolation)]
        return Candidates(nodes, tuple(dict.fromkeys(names)))

    def runs(self) -> int:
        """Return the number of runs."""
        return len(self._fed())

    def expect(self, number: int) -> None:
        """Compute the reference's outputs for the inputs of run *number*, unless they are known."""
        self._right(number)

    def run_of(self, number: int) -> ComparedRun:
        """Return the inputs of run *number*, and the reference's outputs."""
        fed, reference = self._fed(), self._side()
        run = fed.run(number)
        expected = tuple((d["name"], v) for d, v in self._right(number))
        names = tuple(entry["name"] for entry in self._details(reference))
        return ComparedRun(str(run), names, run.values, expected)

    def found(self) -> list[tuple[str, Array]]:
        """Return names and values of the outputs of the last run of the tested set-up."""
        return [(entry["name"], array) for entry, array in self._compared[0]]

    def profile(self) -> dict[str, float]:
        """Return the numerics profile of each output of the last run, as absolute tolerances."""
        test, reference = self._compared
        pairs, _, _ = matched([entry for entry, _ in test], [entry for entry, _ in reference])
        found = {}
        for i, j in pairs:
            (entry, a), (other, b) = test[i], reference[j]
            difference = tensor_difference(a, b, entry, other, "main")
            allowed = in_compared_numbers(rounding(b, other, entry), difference, other)
            found[entry["name"]] = allowed.absolute
        return found

    def cause(self, number: int) -> dict[str, Any] | None:
        """Return the cause of a difference in run *number*, as JSON of ``Cause``; None if unknown.

        The number of the run is counted from 0.
        """
        job = self._job
        setup = replace(job.setup, require=None)
        given: Any = {"inputs": job.inputs, "first": number}
        words: Any = {"signature": job.signature, "tolerance": job.tolerance}
        try:
            found = diff(setup, job.reference, **given, **words, runs=1, warmup=0)
        except (DelegraphError, RuntimeError, ValueError):  # LiteRT has the built-in ones
            return None
        cause = cause_of(found, **given)
        return None if cause is None else cause.to_json()

    def right_of(self, model: str, values: Sequence[Array]) -> list[tuple[str, Array]]:
        """Run *model* once in the reference set-up; return the name and value of each output.

        *model* may differ from the probed model; *values* are its inputs.

        Raises:
            DelegraphError: the reference cannot compute the run.
        """
        return [(entry["name"], array) for entry, array in self._reference_outputs(model, values)]

    def open(self, rules: PlacementRules) -> Outcome:
        """Create the tested interpreter under *rules*, for the following runs."""
        self._test = None
        self._open.close()
        setup = replace(self._job.setup, rules=rules, require=None)
        try:
            self._test = Side(self._open, setup, self._job.signature)
        except (ArgumentError, PluginError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a delegate raises
            return Outcome("raised", in_words(error))
        return RIGHT

    def run(self, number: int) -> Outcome:
        """Compute run *number* and compare it with the reference."""
        assert self._test is not None
        right, values = self._right(number), self._fed().run(number).values
        try:
            outputs = _computed(self._test, values)
        except Exception as error:  # noqa: BLE001 - whatever a delegate raises
            return Outcome("raised", in_words(error))
        self._compared = outputs, right
        return outcome_of(outputs, right, self._job.tolerance)

    def cut(self, nodes: Nodes, number: int) -> tuple[bytes, tuple[Array, ...]]:
        """Return *nodes* as a separate model, and the values of its inputs in run *number*.

        Raises:
            DelegraphError: the nodes cannot be a separate model.
        """
        return cut_model(self._job.setup, nodes, self._fed().run(number).values)

    def judge(self, model: str, values: Sequence[Array], rules: PlacementRules) -> Outcome:
        """Compare both sides on another *model* with inputs *values*, under *rules*.

        A run in which the reference fails counts as right.
        """
        setup = replace(self._job.setup, model=model, rules=rules, require=None)
        try:
            right = self._reference_outputs(model, values)
        except (DelegraphError, RuntimeError, ValueError):
            return RIGHT
        try:
            with ExitStack() as stack:
                found = _computed(Side(stack, setup, None), values)
        except Exception as error:  # noqa: BLE001 - whatever a delegate raises
            return Outcome("raised", in_words(error))
        self._compared = found, right
        return outcome_of(found, right, inner_tolerance(self._job.tolerance))

    def _reference_outputs(self, model: str, values: Sequence[Array]) -> Outputs:
        reference = replace(self._job.reference, model=model, rules=None, require=None)
        with ExitStack() as stack:
            return _computed(Side(stack, reference, None, is_reference=True), values)

    def _side(self) -> Side:
        if self._reference is None:
            stack, job = ExitStack(), self._job  # closed by the end of the process
            self._reference = Side(stack, job.reference, job.signature, is_reference=True)
        return self._reference

    def _details(self, reference: Side) -> list[Details]:
        """Return the input details of the tested model, or of the reference's model."""
        if self._job.setup.model == self._job.reference.model:
            return reference.inputs
        setup, signature = replace(self._job.setup, rules=None), self._job.signature
        with setup.interpreter() as interpreter:
            call = model_call(interpreter, signature)
            return with_names(call.input_details(), tensor_names(setup, signature, call).inputs)

    def _fed(self) -> InputRuns:
        if self._inputs is None:
            job = self._job
            details = self._details(self._side())
            self._inputs = InputRuns(job.setup, job.signature, details, job.inputs, job.runs)
        return self._inputs

    def _right(self, number: int) -> Outputs:
        if number not in self._expected:
            fed, reference = self._fed(), self._side()
            details = self._details(reference)
            values = fed.run(number).values
            order = matched_inputs(details, reference.inputs)
            own = [
                converted(values[i], details[i], reference.inputs[j]) for j, i in enumerate(order)
            ]
            with fed.explained():
                self._expected[number] = _computed(reference, own)
        return self._expected[number]


def _computed(side: Side, values: Sequence[Array]) -> Outputs:
    side.values = list(values)
    side.compute()
    return side.outputs()


def inner_tolerance(tolerance: Tolerances | None) -> Tolerance | None:
    """Tolerance of intermediate tensors: that of all outputs, or the strictest of several.

    The result is None if *tolerance* is None.
    """
    if tolerance is None or isinstance(tolerance, Tolerance):
        return tolerance
    if "" in tolerance:
        return tolerance[""]
    return min(tolerance.values(), key=lambda t: (t.absolute, t.relative))


def outcome_of(test: Outputs, reference: Outputs, tolerance: Tolerances | None) -> Outcome:
    """Return the outcome: whether the outputs *test* are within the tolerance of *reference*.

    If *tolerance* is None, the numerics profile is used.
    """
    ours, theirs = [entry for entry, _ in test], [entry for entry, _ in reference]
    require_known_outputs(tolerance, ours)
    pairs, left, right = matched(ours, theirs)
    alone = [ours[i]["name"] for i in left] + [theirs[j]["name"] for j in right]
    found = [f"only one side has {name!r}" for name in alone]
    for i, j in pairs:
        (entry, a), (other, b) = test[i], reference[j]
        allowed = tolerance_of(tolerance, entry)
        if allowed is None and tolerance is not None:
            continue
        difference = tensor_difference(a, b, entry, other)
        if allowed is None:
            allowed = in_compared_numbers(rounding(b, other, entry), difference, other)
        count = outside(difference, a, b, entry, other, allowed)
        if count:
            compared = difference.compared
            furthest = "" if compared is None else f", the furthest by {compared.max:.4g}"
            why = difference.remark or f"{count} of {a.size} elements{furthest}"
            found.append(f"{entry['name']}: {why}")
    return Outcome("differs", "; ".join(found)) if found else RIGHT
