"""Units: parts of a model that are computed separately from given input values.

A unit is a partition, or a single node without a delegate.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from delegraph.delegation.placement import PartitionPlacement, Placement
from delegraph.errors import in_words
from delegraph.graph.model import SubgraphSpec
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.tools.differing.matching import converted
from delegraph.tools.differing.side import Side
from delegraph.tools.differing.tapped_models import UNIT, copy_setup, unit_model
from delegraph.tools.setup import Setup

Values = Mapping[int, tuple[Mapping[str, Any], NDArray[Any]]]
"""Mapping from a tensor's index to its details and values."""

SAME_KERNELS = "the reference has the same kernel"

FOLDED = "a constant, which XNNPACK converts once and keeps to itself"

HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)
"""Types of tensors whose values mean nothing outside of the runtime that made them."""


_NONE: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole model from which parts (units) are cut, and the delegate of each node."""

    records: tables.Model
    spec: SubgraphSpec
    placement: Placement

    def partitions(self) -> list[PartitionPlacement]:
        """Return the partitions of the called subgraph."""
        return [p for p in self.placement.partitions if p.subgraph == self.spec.index]


class Unit:
    """Some nodes of a model, cut out as a model of their own, which runs in a set-up.

    Args:
        whole: the model that contains the nodes.
        nodes: operator indices, in execution order.
        outputs: indices of the tensors to return.
        setup: the set-up that runs the unit; its model is replaced.
        delegate: delegate that must compute all nodes; None means the host's kernels.
        note: reason why the unit is not computed; empty if it is.
        folded: mapping from each constant that the delegate folds into its readers to the node that
            writes this constant.

    Attributes:
        nodes, outputs, setup, delegate: as given.
        cut: the nodes, and before them those that convert constants for them.
        inputs: indices of the tensors that the nodes read from outside, without constants and
            variables.
        has_state: whether a node reads a variable.
        note: reason why the unit cannot be computed; empty while it can.
    """

    def __init__(
        self,
        whole: Whole,
        nodes: tuple[int, ...],
        outputs: Sequence[int],
        setup: Setup,
        delegate: str | None = None,
        note: str = "",
        folded: Mapping[int, int] = _NONE,
    ) -> None:
        self.nodes, self.setup, self.delegate = nodes, setup, delegate
        self.cut = _with_folded(whole.spec, nodes, folded)
        self.outputs = tuple(i for i in outputs if i >= 0)
        self._whole = whole
        tensors = whole.spec.tensors
        operators = [whole.spec.operators[i] for i in self.cut]
        made = {i for operator in operators for i in operator.outputs}
        read = dict.fromkeys(i for o in operators for i in o.inputs if i >= 0 and i not in made)
        self.has_state = any(tensors[i].is_variable for i in read)
        self.inputs = tuple(
            i for i in read if tensors[i].data is None and not tensors[i].is_variable
        )
        handle = next((tensors[i] for i in self.inputs if tensors[i].type in HANDLES), None)
        if handle is not None and not note:
            note = f"it reads the resource {handle.name!r}, which is made outside"
        self.note = note
        self._side: Side | None = None
        self._tensors: tuple[int, ...] = ()  # indices in the whole model of the unit's tensors

    def computed(self, known: Values, stack: ExitStack, folder: Path) -> Values:
        """Return the outputs computed from known values; empty if :attr:`note` says why not.

        Args:
            known: the values of tensors.
            stack: closes the unit's interpreter, which is made at the first call.
            folder: folder to which the unit's model is written.
        """
        missing = next((i for i in self.inputs if i not in known), None)
        if missing is not None:
            self.note = f"the reference has no values for its input, tensor {missing}"
        if self.note:
            return {}
        try:
            side = self._opened(stack, folder)
            wanted = {self._tensors[int(entry["index"])]: entry for entry in side.inputs}
            side.compute_on(
                [converted(known[i][1], known[i][0], entry) for i, entry in wanted.items()]
            )
            found = side.outputs()
        except (RuntimeError, ValueError) as error:  # of Delegraph and of LiteRT
            self.note = f"it does not run alone: {in_words(error)}"
            return {}
        here = self._whole.spec.index
        placed = [n for n in side.interpreter.placement.nodes if n.subgraph == here]
        taken = [
            n for n in placed if n.delegate == self.delegate and self.cut[n.index] in self.nodes
        ]
        if self.delegate is not None and len(taken) < len(self.nodes):
            whose = f"{len(taken)} of its {len(self.nodes)} nodes"
            self.note = f"alone, {self.delegate} takes {whose}"
            return {}
        return {self._tensors[int(entry["index"])]: (entry, values) for entry, values in found}

    def _opened(self, stack: ExitStack, folder: Path) -> Side:
        if self._side is None:
            whole = self._whole
            content, self._tensors = unit_model(
                whole.records, whole.spec.index, self.cut, self.inputs, self.outputs
            )
            path = folder / f"node{self.nodes[0]}.tflite"
            path.write_bytes(content)
            self._side = Side(stack, copy_setup(self.setup, path), UNIT)
        return self._side


def _with_folded(
    spec: SubgraphSpec, nodes: tuple[int, ...], folded: Mapping[int, int]
) -> tuple[int, ...]:
    """Return *nodes* in order, with those that convert the constants that they read."""
    cut, added = set(nodes), list(nodes)
    while added:
        read = spec.operators[added.pop()].inputs
        new = {folded[i] for i in read if i in folded} - cut
        cut |= new
        added += new
    return tuple(sorted(cut))


def units_of(
    setup: Setup,
    whole: Whole,
    *,
    shares_kernels: bool,
    uncompared: Container[int],
    folded: Mapping[int, int],
) -> list[Unit]:
    """Cut a model into parts that can run alone: its partitions, and its nodes without a delegate.

    Args:
        setup: the set-up that runs the whole model.
        whole: the whole model.
        shares_kernels: whether the reference computes nodes without a delegate by the same kernels,
            so that these nodes need no comparison.
        uncompared: indices of tensors left out because one set-up never writes them.
        folded: mapping from each constant that XNNPACK folds in this set-up to the node that writes
            this constant.
    """
    # Settings that name nodes or judge partitions are for the whole model.
    alone = replace(
        setup,
        rules=None,
        require=None,
        partition_policy="largest",
        on_failure="raise",
        validate=False,
    )

    def unit(
        nodes: tuple[int, ...],
        outputs: Sequence[int],
        host: Setup,
        delegate: str | None = None,
        note: str = "",
    ) -> Unit:
        compared = [i for i in outputs if i not in uncompared]
        why = FOLDED if outputs and not compared else note
        return Unit(whole, nodes, compared, host, delegate, why, folded)

    units = [unit(p.nodes, p.outputs, alone, p.delegate) for p in whole.partitions()]
    taken = {node for each in units for node in each.nodes}
    plain = replace(alone, delegates=("none",), delegate_files=(), use_default_delegates=False)
    note = SAME_KERNELS if shares_kernels else ""
    hosted = (o for o in whole.spec.operators if o.index not in taken)
    units += [unit((o.index,), o.outputs, plain, None, note) for o in hosted]
    return units
