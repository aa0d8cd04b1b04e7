"""``Watched``: a compared set-up in which every computed tensor can be read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Container, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from delegraph.delegation.placement import PartitionPlacement, Placement
from delegraph.graph import macs_of
from delegraph.graph.external_buffers import records_of
from delegraph.graph.model import SubgraphSpec
from delegraph.quantities import plural
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.enums import TensorType
from delegraph.tools.differing.huge_pages import advise_huge_pages
from delegraph.tools.differing.layer_units import HANDLES, Values
from delegraph.tools.differing.metrics import tensor_difference
from delegraph.tools.differing.side import Side
from delegraph.tools.differing.tapped_models import copy_setup, tapped_model, with_room_for_all
from delegraph.tools.setup import Setup

Inner = Literal["boundaries", "exposed", "alone"]
"""Change of the partitions that makes tensors inside them readable.

``"boundaries"`` changes nothing, ``"exposed"`` makes every tensor an output of its partition,
``"alone"`` makes every node a partition.
"""


def usual_inner(setup: Setup, reference: Setup) -> Inner:
    """Return the method that shows which node itself adds an error, as far as the runtimes can.

    It is ``"alone"``; the official ``CompiledModel`` can only be ``"exposed"``.

    Args:
        setup: the tested set-up.
        reference: the set-up whose results count as right.
    """
    return "exposed" if "litert2" in (setup.runtime, reference.runtime) else "alone"


VIEWED = frozenset(
    (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32)
)
"""Types of which every runtime gives views, without a copy."""

MOST_COPIED = 1 << 26
"""Bytes of copied input windows above which LiteRT does not keep all tensors.

It would keep the copies of each node as well, and getting memory for them takes longer than the
run.
"""


class Watched:
    """One of two set-ups, run with every tensor kept, or with inner tensors as outputs.

    Without delegates, the interpreter keeps all tensors of the unchanged file. Delegates would then
    get one node at a time, so with delegates, inner tensors become outputs of a copy. LiteRT keeps
    all tensors where delegates get one node at a time anyway.

    Args:
        stack: closes the interpreters.
        label: ``"test"`` or ``"reference"``.
        setup: the set-up.
        signature: name of the signature to call; None means the whole model.

    Attributes:
        inputs: details of the call's inputs.
        values: input values of the next computation.
        records: records of the model.
        spec: the called subgraph.
        placement: placement of its nodes, set by :meth:`open`.
        inside: mapping from each tensor that stays inside a partition to this partition.
        notes: texts about changes caused by making inner tensors readable.
    """

    def __init__(self, stack: ExitStack, label: str, setup: Setup, signature: str | None) -> None:
        self.setup, self.signature = setup, signature
        self._label, self._stack = label, stack
        self._model = setup.loaded_model()
        self.records = records_of(self._model, setup.table_limit)
        called = {s.key: s.subgraph_index for s in self._model.signatures}
        self.spec: SubgraphSpec = self._model.subgraphs[called.get(signature or "", 0)]
        self._can_keep_all = self.spec.index == 0 and (
            setup.runtime == "delegraph"
            or (setup.runtime == "litert" and copied_bytes(self.spec) <= MOST_COPIED)
        )
        self._keeps_all = setup.has_no_delegates and self._can_keep_all
        self._first_stack = stack.enter_context(ExitStack())
        if self._keeps_all:
            kept = with_room_for_all(setup)
            self._side = self._side_of(
                self._first_stack, kept, experimental_preserve_all_tensors=True
            )
        else:
            self._side = self._side_of(self._first_stack, setup)
        self.inputs = self._side.inputs
        self.values: list[NDArray[Any]] = []
        self.notes: list[str] = []
        self._kept: Sequence[int] | None = None  # tensors that are read one by one; None: outputs
        self._only: Container[int] = range(len(self.spec.tensors))
        self._viewed = {
            t.index for t in self.spec.tensors if t.type in VIEWED and not t.is_variable
        }
        self._first: Values | None = None  # of the first run, which open() computes

    def open(self, folder: Path, inner: Inner, only: Container[int] | None = None) -> None:
        """Compute :attr:`values` once, with inner tensors readable, for :meth:`computed`.

        Args:
            folder: folder to which a changed copy of the model is written.
            inner: method by which tensors inside partitions are made readable.
            only: indices of the tensors that are of interest; None means all.
        """
        if only is not None:
            self._only = only
        self.placement: Placement
        self.inside: dict[int, PartitionPlacement] = {}
        if self._keeps_all and self._keep_all(self._watched({})):
            return
        plain = self._side
        plain.values = self.values
        plain.allocate()
        asked: Placement = plain.interpreter.placement
        cuts = inner != "boundaries" and bool(self.partitions(asked))
        inside = {} if cuts else _kept_inside(self.partitions(asked), self.spec)
        watched = self._watched(inside)
        if not cuts and set(watched) <= set(self.spec.outputs):
            self._first = self._computed()
            self.placement, self.inside = asked, inside
            return
        outputs = []
        if cuts:
            plain.compute()
            outputs = plain.outputs()
        self._first_stack.close()
        self._side = self._opened(folder, inner, watched)
        self._first = now = self._computed()
        self.placement = self._side.interpreter.placement
        self.inside = _kept_inside(self.partitions(self.placement), self.spec)
        self._note_changes(asked, outputs, now)

    def _opened(self, folder: Path, inner: Inner, watched: Sequence[int]) -> Side:
        """Return the side with delegates that makes the tensors *watched* readable.

        LiteRT makes a partition of every node when it keeps all tensors, so it needs no copy of the
        model then. Its delegates compute no tensor that is neither read nor an output.
        """
        read = {*self.spec.outputs, *(i for o in self.spec.operators for i in o.inputs)}
        can_keep_all = self._can_keep_all and self.setup.runtime == "litert"
        if inner == "alone" and can_keep_all and read.issuperset(watched):
            self._kept = watched
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Warning: Enabling `experimental_preserve_all")
                keeps_all = {"experimental_preserve_all_tensors": True}
                return self._side_of(self._stack, self.setup, **keeps_all)
        path = folder / f"{self._label}.tflite"
        path.write_bytes(tapped_model(self.records, self.spec.index, watched))
        arguments = {"experimental_disable_delegate_node_fusion": True} if inner == "alone" else {}
        return self._side_of(self._stack, copy_setup(self.setup, path), **arguments)

    def _keep_all(self, watched: Sequence[int]) -> bool:
        """Run with every tensor kept in memory; return False if that fails or is unnecessary.

        Args:
            watched: indices of the tensors that are of interest; if all are outputs, nothing else
                need be kept.
        """
        if not set(watched) <= set(self.spec.outputs):
            self._kept = watched
            try:
                self._side.values = self.values
                self._side.allocate()
                if self.setup.runtime == "litert":  # NumPy asks for Delegraph's memory
                    advise_huge_pages(self._side.views([i for i in watched if i in self._viewed]))
                self._first = self._computed()
            except (RuntimeError, ValueError):  # of Delegraph and LiteRT; the model may be wrong
                self._kept = None
            else:
                self.placement = self._side.interpreter.placement
                return True
        self._side = self._side_of(self._first_stack, self.setup)
        return False

    def _watched(self, inside: Mapping[int, PartitionPlacement]) -> list[int]:
        """Return the tensors of interest that nodes compute, except handles and those *inside*."""
        return [
            i
            for operator in self.spec.operators
            for i in operator.outputs
            if i in self._only and i not in inside and self.spec.tensors[i].type not in HANDLES
        ]

    def _side_of(self, stack: ExitStack, setup: Setup, **arguments: Any) -> Side:
        is_reference = self._label == "reference"
        return Side(
            stack, setup, self.signature, is_reference=is_reference, model=self._model, **arguments
        )

    def partitions(self, placement: Placement) -> list[PartitionPlacement]:
        """Return the partitions in *placement* of the called subgraph."""
        return [p for p in placement.partitions if p.subgraph == self.spec.index]

    def computed(self) -> Values:
        """Return a mapping from each known tensor's index to details and values.

        The first call returns the results of :meth:`open`; later calls compute again. The values of
        one call may be invalid after the next call.
        """
        first, self._first = self._first, None
        return self._computed() if first is None else first

    def subgraph(self) -> Subgraph | None:
        """Return the running subgraph, which keeps all known tensors; None in other runtimes."""
        if self.setup.runtime != "delegraph":
            return None
        subgraph: Subgraph = self._side.interpreter.session.subgraph(self.spec.index)
        return subgraph

    def readable(self) -> set[int]:
        """Return the tensors whose values :meth:`open` has made readable, inputs included."""
        assert self._first is not None
        return set(self._first)

    def _computed(self) -> Values:
        self._side.values = self.values
        self._side.compute()
        found: dict[int, tuple[Mapping[str, Any], NDArray[Any]]] = {
            int(e["index"]): (e, v) for e, v in zip(self.inputs, self.values, strict=True)
        }
        kept = self._kept
        if kept is None and self.setup.runtime == "delegraph" and self.signature is None:
            kept = [int(e["index"]) for e in self._side.interpreter.get_output_details()]
        made = self._side.outputs() if kept is None else self._side.kept(kept, self._viewed)
        return found | {int(e["index"]): (e, values) for e, values in made}

    def _note_changes(self, asked: Placement, outputs: Sequence[Any], now: Values) -> None:
        counts = [len(self.partitions(p)) for p in (asked, self.placement)]
        nodes = [sorted(p.nodes for p in self.partitions(q)) for q in (asked, self.placement)]
        if nodes[0] != nodes[1]:
            self.notes.append(
                f"{self._label}: {plural(counts[1], 'partition')} here, "
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


def copied_bytes(spec: SubgraphSpec) -> int:
    """Return about how many bytes of input windows LiteRT's CONV_2D nodes copy.

    Source: IsIm2ColRequired, tflite/kernels/conv.cc.
    """
    elements = 0
    for operator in spec.operators:
        if operator.name == "CONV_2D":
            window = math.prod(spec.tensors[operator.inputs[1]].shape[1:3])
            channels = math.prod(spec.tensors[operator.outputs[0]].shape[-1:])
            if window > 1 and channels:
                elements += macs_of(operator, spec.tensors) // channels
    return 4 * elements


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
