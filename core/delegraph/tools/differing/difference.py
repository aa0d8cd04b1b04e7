"""``diff``: compares the outputs of two set-ups on the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from delegraph.delegation.html_tables import html_table
from delegraph.delegation.placement import Placement
from delegraph.delegation.tolerance import Tolerance
from delegraph.json_records import JsonRecord, to_json
from delegraph.quantities import plural
from delegraph.tools.differing.figures import Metrics
from delegraph.tools.differing.input_runs import OFFICIAL, FedRun, InputRuns
from delegraph.tools.differing.matching import clipped, converted, matched, matched_inputs
from delegraph.tools.differing.metrics import (
    Spread,
    TensorDifference,
    spreads,
    tensor_difference,
)
from delegraph.tools.differing.numerics_profile import in_compared_numbers, rounding
from delegraph.tools.differing.side import Outputs, Side
from delegraph.tools.differing.tolerances import (
    Tolerances,
    outside,
    require_known_outputs,
    tolerance_of,
)
from delegraph.tools.latency import Latency
from delegraph.tools.model_call import Details
from delegraph.tools.progress import Progress, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup

SHOWN = {"mean": "avg", "max": "max", "p999": "max", "snr_db": "min", "cosine": "min"}
"""Mapping from each metric in tables to the part of its spread over runs that they show.

For the mean difference, this is the mean over the runs; for other metrics, the worst run.
"""

_STRING = "string"
_LABELS = {"int32", "int64", "uint32", "uint64", _STRING}


@dataclass(frozen=True, slots=True)
class OutputDifference(JsonRecord):
    """Difference of one output between test and reference, over all runs.

    Attributes:
        name: name of the output in the test.
        reference_name: name of the output in the reference.
        dtype, reference_dtype: element types.
        runs: the difference of each run.
        outside: number of elements beyond the tolerance, over all runs; None if no tolerance is
            given.
        beyond_rounding: number of elements beyond the numerics profile, over all runs; None if that
            was not counted.
    """

    json_properties: ClassVar = {
        "remarks": "remarks",
        "worst_run": "worst_run",
        "raw": "raw",
        "real": "real",
    }

    name: str
    reference_name: str
    dtype: str
    reference_dtype: str
    runs: tuple[TensorDifference, ...]
    outside: int | None = field(default=None, metadata={"json_key": "outside_tolerance"})
    beyond_rounding: int | None = None

    @property
    def are_labels(self) -> bool:
        """Whether the values are strings, or integers of 32 or 64 bits without a scale.

        Their distance says nothing: a class number is right or wrong.
        """
        return {self.dtype, self.reference_dtype} <= _LABELS and not self.real()

    @property
    def are_strings(self) -> bool:
        """Whether the values are strings, which have no distance at all."""
        return self.dtype == self.reference_dtype == _STRING

    @property
    def remarks(self) -> tuple[str, ...]:
        """Reasons why the values cannot be compared directly, without duplicates."""
        return tuple(dict.fromkeys(d.remark for d in self.runs if d.remark))

    @property
    def worst_run(self) -> int:
        """Index of the run with the largest difference, or of a run that cannot be compared."""
        return max(range(len(self.runs)), key=lambda run: _badness(self.runs[run]))

    @property
    def worst(self) -> TensorDifference:
        """Difference in the run with the index :attr:`worst_run`."""
        return self.runs[self.worst_run]

    def raw(self) -> dict[str, Spread]:
        """Mean, deviation and extremes over all runs of each metric of the stored values."""
        return _spreads([d.raw for d in self.runs])

    def real(self) -> dict[str, Spread]:
        """Mean, deviation and extremes over all runs of each metric of the dequantised values."""
        return _spreads([d.real for d in self.runs])

    def compared(self) -> dict[str, Spread]:
        """Return the spread of the main metrics; see :attr:`TensorDifference.compared`."""
        return _spreads([d.compared for d in self.runs])

    def shown(self, metric: str) -> float | None:
        """Value of *metric* by :data:`SHOWN`; None of strings, and if not compared."""
        spreads = {} if self.are_strings else self.compared()
        return getattr(spreads[metric], SHOWN[metric]) if spreads else None

    def signal(self) -> dict[str, Spread]:
        """Return the spread of SNR and cosine; see :attr:`TensorDifference.signal`."""
        return _spreads([d.signal for d in self.runs])


def _badness(difference: TensorDifference) -> float:
    compared = difference.compared
    return np.inf if compared is None else compared.max


def _spreads(metrics: Sequence[Metrics | None]) -> dict[str, Spread]:
    found = [m for m in metrics if m is not None]
    return spreads(found) if found else {}


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between the results of two set-ups.

    Attributes:
        test, reference: the set-ups.
        signature: name of the called signature; None for the whole model.
        runs: description of the input values of each run.
        outputs: differences of the outputs that both set-ups have, in the test's order.
        only_in_test, only_in_reference: names of outputs that the other set-up lacks.
        test_latency, reference_latency: statistics of the run times, without warm-up runs.
        test_placement, reference_placement: which delegate or kernel ran each node.
        tolerance: the requested tolerance; None if there was none.
        notes: sentences about the inputs that figures depend on.
    """

    test: Setup
    reference: Setup
    signature: str | None
    runs: tuple[str, ...]
    outputs: tuple[OutputDifference, ...]
    only_in_test: tuple[str, ...]
    only_in_reference: tuple[str, ...]
    test_latency: Latency
    reference_latency: Latency
    test_placement: Placement
    reference_placement: Placement
    tolerance: Tolerances | None = None
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences about outputs beyond the tolerance; empty if all are within it."""
        if self.tolerance is None:
            return ()
        found = [
            f"{o.name}: {o.outside} of {sum(d.count for d in o.runs)} elements"
            if o.worst.compared is not None
            else f"{o.name}: {'; '.join(o.remarks)}"
            for o in self.outputs
            if o.outside
        ]
        alone = {"test": self.only_in_test, "reference": self.only_in_reference}
        found += [f"{name}: only the {side} has it" for side in alone for name in alone[side]]
        return tuple(found)

    def _repr_html_(self) -> str:
        """Return a table of the outputs with their worst run, which notebooks display."""
        rows = [
            (o.name, o.dtype, *(o.shown(m) for m in SHOWN), "; ".join(o.remarks))
            for o in self.outputs
        ]
        columns = ("output", "type", *SHOWN, "remark")
        count = plural(len(self.runs), "run")
        title = f"{self.test} against {self.reference}: mean over {count}, worst of the others"
        return html_table(title, columns, rows)

    def to_json(self) -> dict[str, Any]:
        """Return all data of the difference; NaN and infinity stay floats."""
        is_one = isinstance(self.tolerance, Tolerance)
        by_name = {"": self.tolerance} if is_one else self.tolerance
        return {
            "test": _side_json(self.test, self.test_placement, self.test_latency),
            "reference": _side_json(
                self.reference, self.reference_placement, self.reference_latency
            ),
            "signature": self.signature,
            "runs": list(self.runs),
            "notes": list(self.notes),
            "outputs": to_json(self.outputs),
            "only_in_test": list(self.only_in_test),
            "only_in_reference": list(self.only_in_reference),
            "tolerance": to_json(by_name),
            "failures": list(self.failures),
        }


def _side_json(setup: Setup, placement: Placement, latency: Latency) -> dict[str, Any]:
    placed = str(placement)
    return {"setup": setup.to_json(), "placement": placed, "latency": latency.to_json()}


def own_kernels(setup: Setup) -> Setup:
    """Return *setup* with Delegraph's kernels only: without requested or default delegates."""
    return replace(
        setup,
        runtime="delegraph",
        delegates=("none",),
        delegate_files=(),
        rules=None,
        require=None,
        partition_policy="largest",
        on_failure=None,
        validate=False,
        isolate=None,
        timeout=None,
    )


def diff(
    setup: Setup,
    reference: Setup | None = None,
    *,
    inputs: InputRequest = OFFICIAL,
    runs: int | None = None,
    first: int = 0,
    signature: str | None = None,
    warmup: int = 1,
    tolerance: Tolerances | None = None,
    progress: Progress = untold,
) -> Difference:
    """Run a model in two set-ups on the same inputs and return the differences of the outputs.

    Each run computes once with each set-up; the set-ups alternate in running first. Variables are
    zero at the start of each run.

    Args:
        setup: the tested set-up.
        reference: the set-up whose results count as right; None means :func:`own_kernels`. Its
            model may be another file with the same inputs; values are quantised or dequantised for
            its types.
        inputs: input values for both set-ups; for a folder, each of its files is used in one run.
        runs: number of runs. None means one run per file of a folder, one run if no value is
            random, and otherwise 50 runs. The first run has the seed of *inputs*, each later run
            the next seed.
        first: number of the first run.
        signature: name of the signature to call in both models; None means the whole models.
        warmup: number of computations of each set-up before the counted ones.
        tolerance: largest allowed difference of outputs; ``failures`` lists outputs beyond it.
        progress: function that is called with the number of finished runs.

    Raises:
        ArgumentError: inputs do not fit, a model lacks the signature, or a tolerance names an
            unknown output.
        PluginError: a delegate is missing or broken.
        DelegraphError: a set-up cannot run its model on these inputs.
    """
    reference = own_kernels(setup) if reference is None else reference
    with ExitStack() as stack:
        test = Side(stack, setup, signature)
        right = Side(stack, reference, signature, is_reference=True)
        order = matched_inputs(test.inputs, right.inputs)
        fed = InputRuns(setup, signature, test.inputs, inputs, runs)
        stack.enter_context(fed.timed())
        found = _Found()
        counts = np.zeros((len(test.inputs), 2), np.int64)  # clipped and all values
        for number in range(len(fed)):
            progress("comparing", number, len(fed))
            run = fed.run(first + number)
            test.values = list(run.values)
            right.values = [
                converted(run.values[i], test.inputs[i], right.inputs[j])
                for j, i in enumerate(order)
            ]
            for j, i in enumerate(order):
                stored, given = right.values[j], run.values[i]
                count = clipped(given, stored, test.inputs[i], right.inputs[j])
                counts[i] += count, given.size
            with fed.explained():
                for side in (test, right) if number % 2 else (right, test):
                    side.compute(warmup if number == 0 else 0)
            found.take(run, test.outputs(), right.outputs(), tolerance)
        notes = [
            f"{entry['name']}: {count} of {total} values are beyond the range of the reference's "
            "input, which gets the nearest that it can hold"
            for entry, (count, total) in zip(test.inputs, counts.tolist(), strict=True)
            if count
        ]
        return found.difference(setup, reference, signature, test, right, tolerance, notes)


class _Found:
    """Differences of all runs so far, from which the result is made."""

    def __init__(self) -> None:
        self._runs: list[str] = []
        self._pairs: list[tuple[Details, Details]] = []
        self._differences: list[list[TensorDifference]] = []
        self._outside: list[int] = []
        self._beyond_rounding: list[int] = []
        self._left: tuple[list[str], list[str]] = ([], [])

    def take(
        self, run: FedRun, test: Outputs, reference: Outputs, tolerance: Tolerances | None
    ) -> None:
        """Compare the outputs *test* and *reference* of one run and add the result."""
        ours, theirs = [entry for entry, _ in test], [entry for entry, _ in reference]
        pairs, left, right = matched(ours, theirs)
        if not self._runs:
            require_known_outputs(tolerance, ours)
            self._pairs = [(ours[i], theirs[j]) for i, j in pairs]
            self._differences = [[] for _ in pairs]
            self._outside, self._beyond_rounding = [0] * len(pairs), [0] * len(pairs)
            self._left = [ours[i]["name"] for i in left], [theirs[j]["name"] for j in right]
        self._runs.append(str(run))
        for n, (i, j) in enumerate(pairs):
            (entry, a), (other, b) = test[i], reference[j]
            difference = tensor_difference(a, b, entry, other)
            self._differences[n].append(difference)
            given = tolerance_of(tolerance, entry)
            profile = in_compared_numbers(rounding(b, other, entry), difference, other)
            for counts, allowed in ((self._outside, given), (self._beyond_rounding, profile)):
                if allowed is not None and not difference.are_equal:
                    counts[n] += outside(difference, a, b, entry, other, allowed)

    def difference(
        self,
        setup: Setup,
        reference: Setup,
        signature: str | None,
        test: Side,
        right: Side,
        tolerance: Tolerances | None,
        notes: Sequence[str],
    ) -> Difference:
        """Return the difference of two set-ups, with latency and placement.

        *test* is the running side of *setup*; *right* is the running side of *reference*.
        """
        outputs = [
            OutputDifference(
                a["name"],
                b["name"],
                type_name(a),
                type_name(b),
                tuple(differences),
                None if tolerance_of(tolerance, a) is None else count,
                beyond,
            )
            for (a, b), differences, count, beyond in zip(
                self._pairs, self._differences, self._outside, self._beyond_rounding, strict=True
            )
        ]
        return Difference(
            setup,
            reference,
            signature,
            tuple(self._runs),
            tuple(outputs),
            tuple(self._left[0]),
            tuple(self._left[1]),
            Latency.of(test.seconds),
            Latency.of(right.seconds),
            test.interpreter.placement,
            right.interpreter.placement,
            tolerance,
            tuple(notes),
        )


def type_name(details: Details) -> str:
    """Return the name of the element type of the tensor *details*, for tables."""
    dtype = np.dtype(details["dtype"])
    return _STRING if dtype.kind == "S" else dtype.name
