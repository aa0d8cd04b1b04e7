"""Units: parts of a model that are computed separately from given input values.

A unit is a partition, or a single node without a delegate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from delegraph.tools.progress import Progress, untold
from delegraph.tools.setup import Setup

Values = Mapping[int, tuple[Mapping[str, Any], NDArray[Any]]]
"""Mapping from a tensor's index to its details and values."""

SAME_KERNELS = "the reference has the same kernel"

_PREPARING = "preparing layers"

HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)
"""Types of tensors whose values mean nothing outside of the runtime that made them."""


class Unit:
    """Some nodes of a model as a separate model in a set-up.

    Args:
        nodes: operator indices, in execution order.
        note: reason why the unit is not computed; empty if it is.

    Attributes:
        nodes: operator indices, in execution order.
        note: reason why the unit cannot be computed; empty while it can.
    """

    def __init__(self, nodes: tuple[int, ...], note: str = "") -> None:
        self.nodes = nodes
        self.note = note
        self._side: Side | None = None
        self._delegate: str | None = None
        self._tensors: tuple[int, ...] = ()  # indices in the whole model of the unit's tensors

    def open(
        self, stack: ExitStack, path: Path, setup: Setup, whole: Whole, outputs: Sequence[int]
    ) -> None:
        """Create the unit's model and interpreter; if that fails, set :attr:`note`.

        Args:
            stack: exit stack that closes the interpreter.
            path: path to which the unit's model is written.
            setup: the set-up that runs the unit; its model is replaced.
            whole: the model that contains the nodes.
            outputs: indices of the tensors to return.
        """
        tensors, inputs = whole.spec.tensors, self._inputs(whole.spec)
        handle = next((tensors[i] for i in inputs if tensors[i].type in HANDLES), None)
        if handle is not None:
            self.note = f"it reads the resource {handle.name!r}, which is made outside"
            return
        content, self._tensors = unit_model(
            whole.records, whole.spec.index, self.nodes, inputs, outputs
        )
        path.write_bytes(content)
        try:
            self._side = Side(stack, copy_setup(setup, path), UNIT)
        except (RuntimeError, ValueError) as error:  # of Delegraph and of LiteRT
            self._give_up(f"it does not run alone: {in_words(error)}")

    def require(self, delegate: str) -> None:
        """Accept results only if *delegate* computes all nodes of the unit."""
        self._delegate = delegate

    def _inputs(self, spec: SubgraphSpec) -> list[int]:
        """Return tensors that the nodes read but do not write, except constants and variables."""
        operators = [spec.operators[i] for i in self.nodes]
        made = {i for operator in operators for i in operator.outputs}
        read = dict.fromkeys(i for operator in operators for i in operator.inputs if i >= 0)
        return [
            i
            for i in read
            if i not in made and spec.tensors[i].data is None and not spec.tensors[i].is_variable
        ]

    def computed(self, known: Values) -> Values:
        """Return the outputs, computed from known values; empty if :attr:`note` has a reason."""
        if self._side is None:
            return {}
        wanted = {self._tensors[int(entry["index"])]: entry for entry in self._side.inputs}
        missing = next((i for i in wanted if i not in known), None)
        if missing is not None:
            return self._give_up(f"the reference has no values for its input, tensor {missing}")
        try:
            self._side.values = [
                converted(known[i][1], known[i][0], entry) for i, entry in wanted.items()
            ]
            self._side.compute()
            found = self._side.outputs()
        except (RuntimeError, ValueError) as error:
            return self._give_up(f"it does not run alone: {in_words(error)}")
        taken = [n for n in self._side.interpreter.placement.nodes if n.delegate == self._delegate]
        if self._delegate is not None and len(taken) < len(self.nodes):
            whose = f"{len(taken)} of its {len(self.nodes)} nodes"
            return self._give_up(f"alone, {self._delegate} takes {whose}")
        return {self._tensors[int(entry["index"])]: (entry, values) for entry, values in found}

    def _give_up(self, note: str) -> Values:
        self.note, self._side = note, None
        return {}


@dataclass(frozen=True, slots=True)
class Whole:
    """The model from which units are cut: file, subgraph, and the delegate of each node."""

    records: tables.Model
    spec: SubgraphSpec
    placement: Placement

    def partitions(self) -> list[PartitionPlacement]:
        """Return the partitions of the called subgraph."""
        return [p for p in self.placement.partitions if p.subgraph == self.spec.index]


def units_of(
    stack: ExitStack,
    folder: Path,
    setup: Setup,
    whole: Whole,
    *,
    shares_kernels: bool,
    progress: Progress = untold,
) -> list[Unit]:
    """Return a unit for each partition, and for each node without a delegate.

    Args:
        stack: exit stack that closes the units' interpreters.
        folder: folder to which the units' models are written.
        setup: the set-up that runs the whole model.
        whole: the whole model.
        shares_kernels: whether the reference computes nodes without a delegate by the same kernels,
            so that these nodes need no comparison.
        progress: function that is called with the number of units made.
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
    units: list[Unit] = []
    count = len(whole.spec.operators)
    for partition in whole.partitions():
        progress(_PREPARING, len(units), count)
        unit = Unit(partition.nodes)
        path = folder / f"partition{partition.index}.tflite"
        unit.open(stack, path, alone, whole, [i for i in partition.outputs if i >= 0])
        unit.require(partition.delegate)
        units.append(unit)
    taken = {node for unit in units for node in unit.nodes}
    hosted = [o for o in whole.spec.operators if o.index not in taken]
    plain = replace(alone, delegates=("none",), delegate_files=(), use_default_delegates=False)
    for operator in hosted:
        progress(_PREPARING, len(units), count)
        unit = Unit((operator.index,), SAME_KERNELS if shares_kernels else "")
        if not shares_kernels:
            outputs = [i for i in operator.outputs if i >= 0]
            unit.open(stack, folder / f"node{operator.index}.tflite", plain, whole, outputs)
        units.append(unit)
    return units
