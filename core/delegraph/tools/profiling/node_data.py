"""Values of operators as node data files, which Model Explorer shows on the graph.

Model Explorer need not be installed, since the files are JSON. They are opened together with the
model::

    model-explorer model.tflite --node_data_paths=latency_us.json

Source:
    GraphNodeData, model_explorer/node_data_builder.py; GetSubgraphName,
    src/builtin-adapter/adapters/litert/direct_flatbuffer_to_json_graph_convert.cc;
    processNodeDataProviderDataForGraph of the web page, google-ai-edge/model-explorer.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delegraph.graph.model import Model, OperatorSpec, SubgraphSpec

_log = logging.getLogger(__name__)

OperatorId = tuple[int, int]
"""Index of a subgraph, and of an operator in it, in the model file."""

HEAT = ((0.0, "#fff7ec"), (0.5, "#fc8d59"), (1.0, "#7f0000"))
"""Colours from the smallest value to the largest, readable in greyscale too."""

_PALETTE = ("#8dd3c7", "#fdb462", "#80b1d3", "#bebada", "#b3de69", "#fccde5", "#ffed6f", "#fb8072")
_OTHERS = "#d9d9d9"
_NOT_FINITE = "#ff00ff"


@dataclass(frozen=True, slots=True)
class NodeData:
    """A value (number or text) for some of a model's operators.

    Attributes:
        name: name and unit of the values; it is the heading in Model Explorer.
        values: mapping from subgraph and operator to the value. Each text gets a colour, the same
            in every file with the same texts. A text among numbers says why a number is missing,
            and is drawn grey. Infinities and NaN are shown as texts, because JSON lacks them.
        gradient: colours of numbers, each with its position between the smallest (0) and the
            largest (1).
        thresholds: colours of numbers, each with its upper bound, ascending; if given, it replaces
            *gradient*. A number above the last bound has no colour.
        colors: mapping from texts to their colours, for texts with a fixed colour.
    """

    name: str
    values: Mapping[OperatorId, float | str]
    gradient: Sequence[tuple[float, str]] = HEAT
    thresholds: Sequence[tuple[float, str]] = ()
    colors: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, model: Model) -> dict[str, Any]:
        """Return a mapping from Model Explorer's graph ids to the node data of each subgraph.

        Subgraphs with equal ids, and operators without a unique key, are omitted with a warning,
        since their values would be shown at the wrong place.
        """
        ids = graph_ids(model)
        times = Counter(ids)
        data = {}
        for spec, graph_id in zip(model.subgraphs, ids, strict=True):
            values = {i: value for (graph, i), value in self.values.items() if graph == spec.index}
            if values and times[graph_id] > 1:
                _log.warning("%s: subgraph %d is not the only %r", self.name, spec.index, graph_id)
            elif values:
                data[graph_id] = self._of_graph(spec, values)
        return data

    def write(self, path: str | os.PathLike[str], model: Model) -> None:
        """Write the values for the nodes of *model* to the file *path*; its folder must exist."""
        text = json.dumps(self.to_json(model), indent=1, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def _of_graph(self, spec: SubgraphSpec, values: Mapping[int, float | str]) -> dict[str, Any]:
        keys = node_keys(spec)
        for index in sorted(values.keys() - keys.keys()):
            _log.warning("%s: node %d of subgraph %d has no key", self.name, index, spec.index)
        colors = self._word_colors()
        shown = {keys[i]: _shown(value, colors) for i, value in values.items() if i in keys}
        return {"name": self.name, "results": shown, **self._style()}

    def _word_colors(self) -> dict[str, str]:
        words = sorted({value for value in self.values.values() if isinstance(value, str)})
        rest = [word for word in words if word not in self.colors]
        palette = () if self._has_numbers() else _PALETTE
        chosen = dict.fromkeys(rest, _OTHERS) | dict(zip(rest, palette, strict=False))
        return chosen | dict(self.colors)

    def _has_numbers(self) -> bool:
        return any(not isinstance(value, str) for value in self.values.values())

    def _style(self) -> dict[str, Any]:
        if not self._has_numbers():  # otherwise numbers count as words
            return {
                "showExpandedSummaryOnGroupNode": True,
                "showLabelCountColumnsInChildrenStatsTable": True,
            }
        if self.thresholds:
            return {"thresholds": [{"value": v, "bgColor": c} for v, c in self.thresholds]}
        return {"gradient": [{"stop": s, "bgColor": c} for s, c in self.gradient]}


def graph_ids(model: Model) -> list[str]:
    """Return the id that Model Explorer gives to each subgraph of a ``.tflite`` file.

    The id is the subgraph's name, else the key of its first signature, else ``main``,
    ``subgraph_1`` and so on.
    """
    keys: dict[int, str] = {}
    for signature in model.signatures:
        keys.setdefault(signature.subgraph_index, signature.key)
    return [
        spec.name or keys.get(spec.index) or (f"subgraph_{spec.index}" if spec.index else "main")
        for spec in model.subgraphs
    ]


def node_keys(spec: SubgraphSpec) -> dict[int, str]:
    """Return, for each operator of *spec*, a key that identifies it in Model Explorer's graph.

    The key is usually the operator's index. But Model Explorer first searches the names of tensors
    for a key. So an operator whose index is also the name of another node's tensor gets the name of
    one of its own outputs, or no key.
    """
    times = Counter(tensor.name for tensor in spec.tensors)
    keys = {op.index: _node_key(op, spec, times) for op in spec.operators}
    return {index: key for index, key in keys.items() if key is not None}


def _node_key(op: OperatorSpec, spec: SubgraphSpec, times: Mapping[str, int]) -> str | None:
    own = [spec.tensors[i].name for i in op.outputs if i >= 0]
    number = str(op.index)
    if not times[number]:
        return number
    return next((name for name in own if name and times[name] == 1), None)


def _shown(value: float | str, colors: Mapping[str, str]) -> dict[str, Any]:
    if isinstance(value, str):
        return {"value": value, "bgColor": colors[value]}
    if not math.isfinite(value):
        return {"value": str(float(value)), "bgColor": _NOT_FINITE}
    return {"value": float(value)}
