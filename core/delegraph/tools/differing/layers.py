"""``diff_layers``: compares all intermediate tensors of two set-ups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.html_tables import html_table
from delegraph.delegation.placement import PartitionPlacement
from delegraph.delegation.tolerance import Tolerance
from delegraph.json_records import JsonRecord
from delegraph.tools.differing import tensor_pairs
from delegraph.tools.differing.array_metrics import have_same_bits
from delegraph.tools.differing.difference import OutputDifference, own_kernels, type_name
from delegraph.tools.differing.input_runs import OFFICIAL, InputRuns
from delegraph.tools.differing.layer_units import FOLDED, HANDLES, Unit, Values, Whole, units_of
from delegraph.tools.differing.matching import converted, matched_inputs
from delegraph.tools.differing.metrics import Figures, TensorDifference, tensor_difference
from delegraph.tools.differing.nodes_in_place import compute_in_place
from delegraph.tools.differing.numerics_profile import in_compared_numbers
from delegraph.tools.differing.tolerances import outside
from delegraph.tools.differing.unit_group import UnitGroup
from delegraph.tools.differing.watched_side import Inner, Watched
from delegraph.tools.progress import Progress, part_of, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import called_name

LayerTolerance = Callable[[NDArray[Any], Mapping[str, Any]], Tolerance]
"""Function that returns a tensor's tolerance from the reference's values and details."""

_OneRun = tuple[TensorDifference, int]
"""Difference of a tensor in one run, and the number of elements beyond the tolerance."""

_Found = dict[int, list[_OneRun]]
"""Mapping from a tensor's index to one entry per run."""


@dataclass(frozen=True, slots=True)
class LayerDifference(JsonRecord):
    """Difference of one tensor that a node of the model computes.

    Attributes:
        subgraph: index of the subgraph.
        node: index of the node in its subgraph.
        op: operator name.
        tensor: tensor index.
        name: the tensor's name; may be empty.
        delegate: delegate that ran the node in the test; None means the host's kernels.
        partition: position in the test's ``Placement.partitions``; None if no delegate ran it.
        drift: difference when each set-up computes with its own values, so that errors add up; None
            if a set-up lacks the tensor.
        drift_note: text that says why *drift* is None; empty otherwise.
        same_inputs: difference when the test computes the node, or its partition, from the
            reference's values; None if that was impossible or unnecessary.
        same_inputs_note: text that says why *same_inputs* is None; empty otherwise.
    """

    subgraph: int
    node: int
    op: str
    tensor: int
    name: str
    delegate: str | None
    partition: int | None
    drift: OutputDifference | None
    drift_note: str
    same_inputs: OutputDifference | None
    same_inputs_note: str

    @property
    def own_error(self) -> OutputDifference | None:
        """Error that this layer itself adds: *same_inputs* if known, otherwise *drift*."""
        return self.drift if self.same_inputs is None else self.same_inputs


@dataclass(frozen=True, slots=True)
class LayersDifference(JsonRecord):
    """Differences of the intermediate tensors of a model.

    Attributes:
        test, reference: the set-ups.
        inner: method by which tensors inside partitions were made readable.
        runs: description of the input values of each run.
        layers: every tensor that nodes of the called subgraph compute, in execution order.
        notes: texts about changes caused by making inner tensors readable; empty if partitions and
            results stayed equal.
    """

    test: Setup
    reference: Setup
    inner: Inner
    runs: tuple[str, ...]
    layers: tuple[LayerDifference, ...]
    notes: tuple[str, ...] = ()

    def worst_first(self) -> list[LayerDifference]:
        """Return the layers sorted by the noise they add, noisiest first; unknown noise is last."""
        return sorted(self.layers, key=_rank)

    def _repr_html_(self) -> str:
        """Return a table of the layers, noisiest first, which notebooks display."""
        rows = [
            (x.node, x.op, x.name, x.delegate, *_figures(x.drift), *_figures(x.same_inputs))
            for x in self.worst_first()
        ]
        ways = ("drift max", "drift noise", "same inputs max", "same inputs noise")
        title = "; ".join((f"{self.test} against {self.reference}", *self.notes))
        return html_table(title, ("node", "operator", "name", "runs on", *ways), rows)


def _figures(found: OutputDifference | None) -> tuple[float | None, float | None]:
    """Return the largest difference and the noise of *found*; None for each unknown figure."""
    metrics = {} if found is None else found.compared()
    return (metrics["max"].max if metrics else None, None if found is None else noise(found))


def _rank(layer: LayerDifference) -> float:
    found = layer.own_error
    return np.inf if found is None else -noise(found)


def noise(found: OutputDifference) -> float:
    """Return the noise as a share of the signal, ``10 ** (-SNR / 20)``, in the worst run.

    It is zero if all values are equal, and infinite if values are NaN or infinite on one side only,
    or cannot be compared.
    """
    shares = []
    for difference in found.runs:
        metrics = difference.signal
        if metrics is None or (np.isnan(metrics.snr_db) and metrics.max > 0):
            shares.append(np.inf)
        else:
            shares.append(0.0 if metrics.max == 0 else 10 ** (-metrics.snr_db / 20))
    return float(max(shares))


def diff_layers(
    setup: Setup,
    reference: Setup | None = None,
    *,
    inner: Inner = "boundaries",
    inputs: InputRequest = OFFICIAL,
    runs: int | None = None,
    random_runs: int = 1,
    first: int = 0,
    signature: str | None = None,
    tolerance: LayerTolerance | None = None,
    figures: Figures = "all",
    progress: Progress = untold,
) -> LayersDifference:
    """Run a model in two set-ups; return the difference of every tensor that nodes compute.

    There are two differences. For *drift*, each set-up computes with its own values, so that errors
    add up. For *same inputs*, each partition of the test, and each node without a delegate, gets
    the reference's values.

    A delegate computes no tensor that only its own partition reads. Such tensors are omitted with a
    note, unless *inner* makes them readable. All compared tensors become outputs of the model, so
    that their memory is not reused before they are read.

    Args:
        setup: the tested set-up.
        reference: the set-up whose results count as right; None means Delegraph's kernels. If its
            model is another file, tensors are paired by name.
        inner: method by which tensors inside partitions are made readable.
        inputs: input values for both set-ups; for a folder, each of its files is used in one run.
        runs: number of runs. None means one run per file of a folder, or *random_runs* if values
            are random. The first run has the seed of *inputs*, each later run the next seed.
        random_runs: number of runs if values are random; if no value is, a note says so.
        first: number of the first run.
        signature: name of the signature to call in both models; None means the whole models.
        tolerance: function that returns the tolerance of a tensor; ``OutputDifference.outside``
            counts elements beyond it.
        figures: the metrics to compute. For float32 tensors, ``"main"`` computes the largest
            difference, the SNR and the number of unequal elements, in a tenth of the time.
        progress: function that is called with the number of finished runs.

    Raises:
        ArgumentError: inputs do not fit, or a model lacks the signature.
        PluginError: a delegate is missing or broken.
        DelegraphError: a set-up cannot run its model on these inputs.
    """
    reference = own_kernels(setup) if reference is None else reference
    with ExitStack() as stack:
        # Windows deletes no mapped file, and an interpreter in a cycle may still map it.
        temporary = TemporaryDirectory(prefix="delegraph-diff-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(temporary))
        test = Watched(stack, "test", setup, signature)
        right = Watched(stack, "reference", reference, signature)
        order = matched_inputs(test.inputs, right.inputs)
        fed = InputRuns(setup, signature, test.inputs, inputs, runs, random_runs)

        def feed_both(number: int) -> str:
            run = fed.run(number)
            test.values = list(run.values)
            right.values = [
                converted(run.values[i], test.inputs[i], right.inputs[j])
                for j, i in enumerate(order)
            ]
            return str(run)

        feed_both(first)
        with fed.explained():
            progress("computing all layers", 0, 2)
            test.open(folder, inner)
            progress("computing all layers", 1, 2)
            twin = tensor_pairs.twins(test, right, order)
            right.open(folder, inner, {twin[i] for i in test.readable() if i in twin})
        comparison = _Comparison(stack, folder, test, right, twin, tolerance, figures)
        told = []
        for number in range(len(fed)):
            told.append(feed_both(first + number))
            with fed.explained():
                part = part_of(progress, number, len(fed))
                comparison.take(test.computed(), right.computed(), part)
        notes = (*test.notes, *right.notes, *fed.notes)
        return LayersDifference(setup, reference, inner, tuple(told), comparison.layers(), notes)


class _Comparison:
    """Compares the tensors of two set-ups run by run, and collects the differences."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        test: Watched,
        right: Watched,
        twin: Mapping[int, int],
        tolerance: LayerTolerance | None,
        figures: Figures,
    ) -> None:
        self._test, self._right = test, right
        self._tolerance, self._figures = tolerance, figures
        self._placed = {(n.subgraph, n.index): n for n in test.placement.nodes}
        self._twin = twin
        self._drift: _Found = {}
        self._same: _Found = {}
        self._details: dict[int, tuple[Any, Any]] = {}
        self._notes: dict[int, str] = {}  # reasons why nodes did not run alone
        whole = Whole(test.records, test.spec, test.placement)
        shares_kernels = tensor_pairs.share_kernels(test, right)
        self._zeros = tensor_pairs.folded_tensors(test), tensor_pairs.folded_tensors(right)
        self._folded = {*self._zeros[0], *(i for i, j in twin.items() if j in self._zeros[1])}
        self._units = units_of(
            test.setup,
            whole,
            shares_kernels=shares_kernels,
            uncompared=self._folded,
            folded=self._zeros[0],
        )
        self._groups = {
            has_delegate: UnitGroup(whole, stack, folder / f"group{has_delegate:d}.tflite")
            for has_delegate in (False, True)
        }
        self._stack, self._folder = stack, folder

    def take(self, test: Values, reference: Values, progress: Progress) -> None:
        """Compare the tensors of one run: drift, then differences on the same inputs."""
        known = self._known(test, reference)
        drift = self._compare(test, known, self._drift)
        pending = []
        for unit in self._units:
            if unit.note:
                continue
            if _read_the_same(unit, test, known, drift):
                for tensor in unit.outputs:
                    self._same.setdefault(tensor, []).append(drift[tensor])
            else:
                pending.append(unit)
        if (subgraph := self._test.subgraph()) is not None:
            new: _Found = {}
            take = partial(self._compare, known=known, found=new)
            left = compute_in_place(subgraph, pending, known, take, progress)
            if len(left) < len(pending):
                pending = left
                for tensor, runs in new.items():
                    self._same.setdefault(tensor, []).extend(runs)
        progress("preparing layers", 0, len(pending))
        together: dict[int, Any] = {}
        for has_delegate, group in self._groups.items():
            members = [u for u in pending if (u.delegate is not None) == has_delegate]
            together |= group.computed(members, known)
        for number, unit in enumerate(pending):
            progress("comparing layers", number, len(pending))
            values: Values = {i: together[i] for i in unit.outputs if i in together}
            values = values or unit.computed(known, self._stack, self._folder)
            self._compare(values, known, self._same)

    def _known(self, test: Values, reference: Values) -> Values:
        """Return the reference's values by the test's tensors, with folded constants of the test.

        A constant is the same on both sides, so the test's value is used where only the test writes
        it.
        """
        zeros, right_zeros = self._zeros
        own = {i: test[i] for i in self._folded if i in test and i not in zeros}
        pairs = ((i, j) for i, j in self._twin.items() if j in reference and j not in right_zeros)
        return own | {i: reference[j] for i, j in pairs}

    def _compare(self, test: Values, known: Values, found: _Found) -> dict[int, _OneRun]:
        """Compare *test* with the *known* tensors; add to *found* and return the differences."""
        new: dict[int, _OneRun] = {}
        for tensor, (entry, values) in test.items():
            if tensor in known and tensor not in self._folded:
                other, right = known[tensor]
                self._details[tensor] = entry, other
                difference = tensor_difference(values, right, entry, other, self._figures)
                count = 0
                if self._tolerance is not None and not difference.are_equal:
                    allowed = in_compared_numbers(self._tolerance(right, other), difference, other)
                    count = outside(difference, values, right, entry, other, allowed)
                new[tensor] = difference, count
                found.setdefault(tensor, []).append(new[tensor])
        return new

    def layers(self) -> tuple[LayerDifference, ...]:
        """Return the differences of all tensors, in execution order."""
        self._notes = {node: unit.note for unit in self._units for node in unit.nodes}
        return tuple(
            self._layer(operator.index, operator.name, tensor)
            for operator in self._test.spec.operators
            for tensor in operator.outputs
            if tensor >= 0
        )

    def _layer(self, node: int, op: str, tensor: int) -> LayerDifference:
        index = self._test.spec.index
        placed = self._placed[index, node]
        drift, same = (self._over_runs(tensor, d) for d in (self._drift, self._same))
        return LayerDifference(
            index,
            node,
            op,
            tensor,
            self._test.spec.tensors[tensor].name,
            placed.delegate,
            placed.partition,
            drift,
            "" if drift is not None else self._why_no_drift(tensor),
            same,
            "" if same is not None else self._why_not_same(node, tensor),
        )

    def _over_runs(self, tensor: int, differences: _Found) -> OutputDifference | None:
        if tensor not in differences:
            return None
        entry, other = self._details[tensor]
        names = self._test.spec.tensors[tensor].name, called_name(other)
        kinds = type_name(entry), type_name(other)
        runs, counts = zip(*differences[tensor], strict=True)
        return OutputDifference(*names, *kinds, runs, sum(counts) if self._tolerance else None)

    def _why_no_drift(self, tensor: int) -> str:
        if tensor in self._folded:
            return FOLDED
        if tensor in self._test.inside:
            return _inside_of(self._test.inside[tensor])
        if self._test.spec.tensors[tensor].type in HANDLES:
            return "it is a handle, which means nothing outside of its runtime"
        if tensor not in self._twin:
            return "the reference has no tensor of this name"
        twin = self._twin[tensor]
        if twin in self._right.inside:
            return f"in the reference {_inside_of(self._right.inside[twin])}"
        return "it is not computed"

    def _why_not_same(self, node: int, tensor: int) -> str:
        return self._notes.get(node) or self._why_no_drift(tensor)


def _read_the_same(unit: Unit, test: Values, known: Values, drift: Mapping[int, _OneRun]) -> bool:
    """Whether *unit* had the reference's values already when the test ran."""
    return (
        not unit.has_state
        and all(tensor in drift for tensor in unit.outputs)
        and all(
            tensor in drift
            and drift[tensor][0].are_equal
            and have_same_bits(test[tensor][1], known[tensor][1])
            for tensor in unit.inputs
        )
    )


def _inside_of(partition: PartitionPlacement) -> str:
    return f"inside partition {partition.index} of {partition.delegate}"
