"""Differences of layers as data for the page, with the worst run of each layer."""

from __future__ import annotations

from typing import Any

from delegraph.tools.differing.difference import OutputDifference
from delegraph.tools.differing.layers import LayerDifference, LayersDifference, noise


def differences_json(found: LayersDifference) -> dict[str, Any]:
    """Return the layers of *found* in execution order, and the two set-ups compared, for JSON."""
    return {
        "test": str(found.test),
        "reference": str(found.reference),
        "inner": found.inner,
        "runs": len(found.runs),
        "notes": list(found.notes),
        "layers": list(map(_layer_json, found.layers)),
    }


def _layer_json(layer: LayerDifference) -> dict[str, Any]:
    return {
        "subgraph": layer.subgraph,
        "node": layer.node,
        "op": layer.op,
        "tensor": layer.tensor,
        "name": layer.name,
        "delegate": layer.delegate,
        "drift": _way_json(layer.drift, layer.drift_note),
        "same_inputs": _way_json(layer.same_inputs, layer.same_inputs_note),
    }


def _way_json(found: OutputDifference | None, note: str) -> dict[str, Any]:
    """Return largest difference, mean and noise of one kind of comparison, for JSON.

    An infinite noise becomes None.

    Args:
        found: the comparison of a layer's tensor; None if there is none.
        note: reason why there is none; empty otherwise.
    """
    if found is None:
        return {"note": note}
    metrics = found.compared()
    told: dict[str, Any] = {
        "noise": noise(found),
        "note": "; ".join((note, *found.remarks)).strip("; "),
    }
    if metrics:
        told |= {"max": metrics["max"].max, "mean": metrics["mean"].avg}
        told["cosine"] = metrics["cosine"].min
    return told
