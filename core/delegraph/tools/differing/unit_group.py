"""Unit group: nodes of a model that run in one model, each on given values.

Making and preparing one model of 100 nodes takes far less time than 100 models of one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from delegraph.tools.differing.layer_units import HANDLES, Unit, Values, Whole
from delegraph.tools.differing.matching import converted
from delegraph.tools.differing.side import Side
from delegraph.tools.differing.tapped_models import UNIT, copy_setup, separated_model


class UnitGroup:
    """Parts (units) of one node each that run together in one model, each on given values.

    All are computed by the host's kernels, or all by delegates. Nodes that convert constants for
    them are in the model, too.

    Args:
        whole: the model that contains the nodes.
        stack: closes the interpreters.
        path: path to which the group's model is written.
    """

    def __init__(self, whole: Whole, stack: ExitStack, path: Path) -> None:
        self._whole, self._stack, self._path = whole, stack, path
        self._has_failed = False
        self._units: tuple[Unit, ...] = ()
        self._side: Side | None = None
        self._tensors: tuple[int, ...] = ()  # indices in the whole model of the group's tensors

    def computed(self, units: Sequence[Unit], known: Values) -> Values:
        """Return the outputs of those *units* that run together, computed from known values.

        The outputs of a unit are missing if it has to run alone.
        """
        able = [unit for unit in units if self._is_able(unit, known)]
        if len(able) < 2 or self._has_failed:
            return {}
        try:
            return self._results(able, known)
        except (RuntimeError, ValueError):  # of Delegraph and of LiteRT
            self._has_failed = True
            return {}

    def _is_able(self, unit: Unit, known: Values) -> bool:
        tensors = self._whole.spec.tensors
        return (
            len(unit.nodes) == 1
            and not unit.has_state
            and all(i in known for i in unit.inputs)
            and all(tensors[i].type not in HANDLES for i in unit.outputs)
        )

    def _results(self, units: Sequence[Unit], known: Values) -> Values:
        if self._side is None or not set(units) <= set(self._units):
            self._side = self._opened({*self._units, *units}, known)
        side = self._side
        wanted = [(self._tensors[int(entry["index"])], entry) for entry in side.inputs]
        side.compute_on([converted(known[i][1], known[i][0], entry) for i, entry in wanted])
        found = {self._tensors[int(e["index"])]: (e, values) for e, values in side.outputs()}
        subgraph = self._whole.spec.index
        placed = {n.index: n for n in side.interpreter.placement.nodes if n.subgraph == subgraph}
        for number, unit in enumerate(self._units, len(self._folded())):
            if placed[number].delegate != unit.delegate:
                found = {i: values for i, values in found.items() if i not in unit.outputs}
        return found

    def _folded(self) -> list[int]:
        """Nodes that convert constants for the units."""
        cut = {node for unit in self._units for node in unit.cut}
        return sorted(cut - {node for unit in self._units for node in unit.nodes})

    def _opened(self, units: Iterable[Unit], known: Values) -> Side:
        self._units = tuple(sorted(units, key=lambda unit: unit.nodes))
        content, self._tensors = separated_model(
            self._whole.records,
            self._whole.spec.index,
            [unit.nodes[0] for unit in self._units],
            {i: known[i][1].shape for unit in self._units for i in unit.inputs},
            self._folded(),
        )
        self._path.write_bytes(content)
        alone: dict[str, Any] = {}
        first = self._units[0]
        if first.delegate is not None:
            alone["experimental_disable_delegate_node_fusion"] = True
        return Side(self._stack, copy_setup(first.setup, self._path), UNIT, **alone)
