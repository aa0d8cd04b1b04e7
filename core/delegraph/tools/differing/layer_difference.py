"""Records of the differences of intermediate tensors, and the noise that ranks them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from delegraph.delegation.html_tables import html_table
from delegraph.json_records import JsonRecord
from delegraph.tools.differing.difference import OutputDifference
from delegraph.tools.differing.watched_side import Inner
from delegraph.tools.setup import Setup


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
        partition: position in the test's ``Placement.partitions``; None without a delegate.
        drift: difference when each set-up computes with its own values, so that errors add up; None
            if a set-up lacks the tensor.
        drift_note: why *drift* is None; empty otherwise.
        same_inputs: difference when the test computes the node, or its partition, from the
            reference's values; None if that was impossible or unnecessary.
        same_inputs_note: why *same_inputs* is None; empty otherwise.
        is_constant: whether the node converts a constant, once for all runs.
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
    is_constant: bool = False

    @property
    def is_compared(self) -> bool:
        """Whether the tensor was compared with drift, with the same inputs, or in both ways."""
        return self.drift is not None or self.same_inputs is not None

    @property
    def is_equal_constant(self) -> bool:
        """Whether the tensor is a converted constant with the same values on both sides."""
        return (
            self.is_constant
            and self.drift is not None
            and all(difference.are_equal for difference in self.drift.runs)
        )


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

    @property
    def host(self) -> str:
        """Name of the runtime whose kernels run the test's nodes without a delegate."""
        return "Delegraph" if self.test.runtime == "delegraph" else "LiteRT"

    @property
    def same_inputs_say_more(self) -> bool:
        """Whether *same inputs* tells more about a layer than *drift*.

        It does not if one partition computes the whole model, from the model's inputs.
        """
        compared = [layer for layer in self.layers if layer.same_inputs is not None]
        return bool(compared) and any(map(_adds_other_than_drift, self.shown()))

    def shown(self, *, worst_first: bool = False) -> list[LayerDifference]:
        """Return the compared layers, without constants that are equal on both sides."""
        layers = self.worst_first() if worst_first else self.layers
        return [x for x in layers if x.is_compared and not x.is_equal_constant]

    def worst_first(self) -> list[LayerDifference]:
        """Return the layers sorted by their noise on the same inputs, noisiest first.

        Where that says no more than the drift, they are sorted by the noise of the drift. Unknown
        noise is last.
        """
        drift = [_rank(layer.drift) for layer in self.layers]
        same = [_rank(layer.same_inputs) for layer in self.layers]
        ranks = list(zip(same, drift, strict=True)) if self.same_inputs_say_more else drift
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        return [self.layers[i] for i in order]

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


def _adds_other_than_drift(layer: LayerDifference) -> bool:
    if layer.drift is None or layer.same_inputs is None:
        return layer.drift is None or noise(layer.drift) > 0
    return _figures(layer.same_inputs) != _figures(layer.drift)


def _rank(found: OutputDifference | None) -> float:
    return np.inf if found is None else -noise(found)


def noise(found: OutputDifference) -> float:
    """Return the noise as a share of the signal, ``10 ** (-SNR / 20)``, in the worst run.

    It is zero if all values are equal, and infinite if values are NaN or infinite on one side only,
    or cannot be compared. Of labels, it is the share that differs.
    """
    if found.are_labels and all(d.raw is not None and d.count for d in found.runs):
        return max(difference.unequal / difference.count for difference in found.runs)
    shares = []
    for difference in found.runs:
        metrics = difference.signal
        if metrics is None or (np.isnan(metrics.snr_db) and metrics.max > 0):
            shares.append(np.inf)
        else:
            shares.append(0.0 if metrics.max == 0 else 10 ** (-metrics.snr_db / 20))
    return float(max(shares))
