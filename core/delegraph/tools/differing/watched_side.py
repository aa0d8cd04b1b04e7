"""``Watched``: a compared set-up in which every computed tensor can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from delegraph.delegation.placement import PartitionPlacement, Placement
from delegraph.graph.external_buffers import records_of
from delegraph.graph.model import SubgraphSpec
from delegraph.tools.differing.layer_units import HANDLES, Values
from delegraph.tools.differing.metrics import tensor_difference
from delegraph.tools.differing.side import Side
from delegraph.tools.differing.tapped_models import copy_setup, tapped_model
from delegraph.tools.setup import Setup

Inner = Literal["boundaries", "exposed", "alone"]
"""How tensors inside partitions are computed: not at all, or by a change of the partitions.

``"boundaries"`` changes nothing, ``"exposed"`` makes every tensor an output of its partition,
``"alone"`` makes every node a partition.
"""


class Watched:
    """One of two set-ups: it runs unchanged first, then with inner tensors as outputs.

    Attributes:
        inputs: details of the call's inputs.
        values: input values of the next computation.
        records: records of the model.
        spec: the called subgraph.
        placement: placement of its nodes, set by :meth:`open`.
        inside: mapping from each tensor that stays inside a partition to this partition.
        notes: texts about changes caused by making inner tensors readable.
    """

    def __init__(self, label: str, setup: Setup, signature: str | None) -> None:
        self.setup, self.signature = setup, signature
        self._label = label
        model = setup.loaded_model()
        self.records = records_of(model, setup.table_limit)
        called = {s.key: s.subgraph_index for s in model.signatures}
        self.spec: SubgraphSpec = model.subgraphs[called.get(signature or "", 0)]
        with ExitStack() as stack:
            self.inputs = self._side_of(stack, setup).inputs
        self.values: list[NDArray[Any]] = []
        self.notes: list[str] = []
        self._first: Values | None = None  # of the first run, which open() computes

    def open(self, stack: ExitStack, folder: Path, inner: Inner) -> None:
        """Run the set-up unchanged, then with inner tensors as outputs, for :meth:`computed`."""
        with ExitStack() as plain_stack:
            plain = self._side_of(plain_stack, self.setup)
            plain.values = self.values
            plain.compute()
            outputs = plain.outputs()
            asked: Placement = plain.interpreter.placement
        inside = _kept_inside(self.partitions(asked), self.spec) if inner == "boundaries" else {}
        watched = [
            i
            for operator in self.spec.operators
            for i in operator.outputs
            if i >= 0 and i not in inside and self.spec.tensors[i].type not in HANDLES
        ]
        path = folder / f"{self._label}.tflite"
        path.write_bytes(tapped_model(self.records, self.spec.index, watched))
        arguments = {"experimental_disable_delegate_node_fusion": True} if inner == "alone" else {}
        tapped = copy_setup(self.setup, path)
        self._side = self._side_of(stack, tapped, **arguments)
        self._first = now = self.computed()
        self.placement: Placement = self._side.interpreter.placement
        self.inside = _kept_inside(self.partitions(self.placement), self.spec)
        self._note_changes(asked, outputs, now)

    def _side_of(self, stack: ExitStack, setup: Setup, **arguments: Any) -> Side:
        is_reference = self._label == "reference"
        return Side(stack, setup, self.signature, is_reference=is_reference, **arguments)

    def partitions(self, placement: Placement) -> list[PartitionPlacement]:
        """Return the partitions in *placement* of the called subgraph."""
        return [p for p in placement.partitions if p.subgraph == self.spec.index]

    def computed(self) -> Values:
        """Return a mapping from each known tensor's index to details and values.

        The first call returns the results of :meth:`open`; later calls compute again.
        """
        if self._first is not None:
            first, self._first = self._first, None
            return first
        self._side.values = self.values
        self._side.compute()
        found: dict[int, tuple[Mapping[str, Any], NDArray[Any]]] = {
            int(e["index"]): (e, v) for e, v in zip(self.inputs, self.values, strict=True)
        }
        return found | {int(e["index"]): (e, v) for e, v in self._side.outputs()}

    def _note_changes(self, asked: Placement, outputs: Sequence[Any], now: Values) -> None:
        counts = [len(self.partitions(p)) for p in (asked, self.placement)]
        nodes = [sorted(p.nodes for p in self.partitions(q)) for q in (asked, self.placement)]
        if nodes[0] != nodes[1]:
            self.notes.append(
                f"{self._label}: {counts[1]} partition{'s' * (counts[1] != 1)} here, "
                f"{counts[0]} without looking inside"
            )
        for entry, values in outputs:
            other, seen = now[int(entry["index"])]
            changed = tensor_difference(seen, values, other, entry).compared
            if changed is not None and changed.max > 0:
                self.notes.append(
                    f"{self._label}: looking inside changes output {entry['name']!r} by up to "
                    f"{changed.max:.4g}"
                )


def _kept_inside(
    partitions: Sequence[PartitionPlacement], spec: SubgraphSpec
) -> dict[int, PartitionPlacement]:
    """Return the partition of each tensor that only its own partition reads, by index."""
    found = {}
    for partition in partitions:
        for node in partition.nodes:
            for tensor in spec.operators[node].outputs:
                if tensor >= 0 and tensor not in partition.outputs:
                    found[tensor] = partition
    return found
