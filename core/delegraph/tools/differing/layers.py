"""``diff_layers``: compares all intermediate tensors of two set-ups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numpy.typing import NDArray

from delegraph.delegation.placement import PartitionPlacement
from delegraph.delegation.tolerance import Tolerance
from delegraph.tools.differing import tensor_pairs
from delegraph.tools.differing.array_metrics import have_same_bits
from delegraph.tools.differing.difference import OutputDifference, own_kernels, type_name
from delegraph.tools.differing.input_runs import OFFICIAL, InputRuns
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference
from delegraph.tools.differing.layer_units import FOLDED, HANDLES, Unit, Values, Whole, units_of
from delegraph.tools.differing.matching import converted, matched_inputs
from delegraph.tools.differing.metrics import Figures, TensorDifference, tensor_difference
from delegraph.tools.differing.nodes_in_place import compute_in_place
from delegraph.tools.differing.numerics_profile import in_compared_numbers
from delegraph.tools.differing.tolerances import outside
from delegraph.tools.differing.unit_group import UnitGroup
from delegraph.tools.differing.watched_side import Inner, Watched, usual_inner
from delegraph.tools.progress import Progress, part_of, untold
from delegraph.tools.requested_inputs import InputRequest
from delegraph.tools.setup import Setup
from delegraph.tools.tensor_names import called_name

LayerTolerance = Callable[[NDArray[Any], Mapping[str, Any], Mapping[str, Any]], Tolerance]
"""Function that returns a tensor's tolerance.

Its arguments are the reference's values, the reference's details and the test's details.
"""

_OneRun = tuple[TensorDifference, int]
"""Difference of a tensor in one run, and the number of elements beyond the tolerance."""

_Found = dict[int, list[_OneRun]]
"""Mapping from a tensor's index to one entry per run."""


def diff_layers(
    setup: Setup,
    reference: Setup | None = None,
    *,
    inner: Inner | None = None,
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

    A delegate computes no tensor that only its own partition reads. *inner* makes these tensors
    readable, or omits them with a note. All compared tensors are kept or become outputs of the
    model, so that their memory is not reused before they are read.

    Args:
        setup: the tested set-up.
        reference: the set-up whose results count as right; None means Delegraph's kernels. If its
            model is another file, tensors are paired by name.
        inner: method by which tensors inside partitions are made readable; None means
            :func:`~delegraph.tools.differing.watched_side.usual_inner`.
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
    inner = usual_inner(setup, reference) if inner is None else inner
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
                    allowed = self._tolerance(right, other, entry)
                    allowed = in_compared_numbers(allowed, difference, other)
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
            placed.is_constant,
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
