"""Writes differences of layers as node data for Model Explorer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from delegraph.errors import ArgumentError
from delegraph.tools.differing.difference import OutputDifference
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference
from delegraph.tools.profiling.node_data import NodeData, OperatorId

_WAYS: dict[str, tuple[str, Callable[[LayerDifference], OutputDifference | None]]] = {
    "max_abs_error": ("greatest difference, drift", lambda layer: layer.drift),
    "max_abs_error_same_inputs": (
        "greatest difference, same inputs",
        lambda layer: layer.same_inputs,
    ),
}


def write_layers_node_data(found: LayersDifference, folder: str | os.PathLike[str]) -> None:
    """Write ``max_abs_error.json`` (drift) and ``max_abs_error_same_inputs.json`` to *folder*.

    Each operator has the largest difference of its outputs in any run. An operator inside a
    partition, whose difference is unknown, has no value. The folder is created if it is missing.

    Raises:
        ArgumentError: a file cannot be written.
    """
    model = found.test.loaded_model()
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for file, (title, way) in _WAYS.items():
            NodeData(title, _values(found, way)).write(Path(folder, f"{file}.json"), model)
    except OSError as error:
        raise ArgumentError(f"{os.fspath(folder)!r}: {error.strerror or error}") from error


def _values(
    found: LayersDifference, way: Callable[[LayerDifference], OutputDifference | None]
) -> dict[OperatorId, float | str]:
    values: dict[OperatorId, float] = {}
    for layer in found.layers:
        difference = way(layer)
        metrics = {} if difference is None else difference.compared()
        if metrics:
            key = layer.subgraph, layer.node
            values[key] = max(values.get(key, 0.0), metrics["max"].max)
    return dict(values)
