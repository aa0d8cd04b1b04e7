"""Differences of outputs and layers as data for the page, with the worst run of each layer."""

from __future__ import annotations

from typing import Any

from delegraph.tools.differing.difference import Difference, OutputDifference
from delegraph.tools.differing.difference_texts import (
    alone_texts,
    layer_figures,
    output_facts,
    uncompared_layers,
    unequal_elements,
)
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference, noise
from delegraph.tools.differing.layer_units import SAME_KERNELS
from delegraph.tools.differing.verdict import verdict_of


def differences_json(
    found: LayersDifference, difference: Difference | None = None
) -> dict[str, Any]:
    """Return the layers of *found* in execution order, and the two set-ups compared, for JSON.

    *difference* has the outputs, for the verdict; None leaves it out.
    """
    place = {id(layer): position for position, layer in enumerate(found.layers)}
    told = {
        "test": str(found.test),
        "reference": str(found.reference),
        "inner": found.inner,
        "runs": len(found.runs),
        "notes": list(found.notes),
        "figures": layer_figures(found),
        "left_out": list(uncompared_layers(found)),
        "same_inputs_say_more": found.same_inputs_say_more,
        "worst_first": [place[id(layer)] for layer in found.shown(worst_first=True)],
        "layers": list(map(_layer_json, found.layers)),
    }
    return told if difference is None else told | _outputs_json(difference, found)


def _outputs_json(difference: Difference, layers: LayersDifference) -> dict[str, Any]:
    """Return for JSON: the verdict, which *layers* decide too, and each output's figures."""
    return {
        "verdict": verdict_of(difference, layers).to_json(),
        "outputs": [
            {
                "name": output.name,
                "type": " / ".join(dict.fromkeys((output.dtype, output.reference_dtype))),
                "max": output.shown("max"),
                "snr_db": None if output.are_labels else output.shown("snr_db"),
                "unequal": unequal_elements(output),
                "facts": list(output_facts(output, difference.runs)),
            }
            for output in difference.outputs
        ],
        "alone": list(alone_texts(difference)),
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

    An infinite noise becomes None. A node with the reference's kernel adds no noise. ``is_off``
    is there if the layers were compared with a tolerance. *note* is the reason why there is no
    comparison; empty otherwise.
    """
    if found is None:
        return {"noise": 0.0, "max": 0.0, "note": note} if note == SAME_KERNELS else {"note": note}
    metrics = found.compared()
    told: dict[str, Any] = {
        "noise": noise(found),
        "note": "; ".join((note, *found.remarks)).strip("; "),
    }
    if found.outside is not None:
        told["is_off"] = found.outside > 0
    if metrics:
        told |= {"max": metrics["max"].max, "mean": metrics["mean"].avg}
        told["cosine"] = metrics["cosine"].min
        told["snr_db"] = None if found.are_labels else found.signal()["snr_db"].min
    return told
