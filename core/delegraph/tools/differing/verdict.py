"""Verdict on two set-ups: whether their outputs are equal, and the first differing node."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from delegraph.delegation.placement import node_numbers
from delegraph.json_records import JsonRecord
from delegraph.quantities import plural
from delegraph.tools.differing.difference import Difference, OutputDifference
from delegraph.tools.differing.difference_texts import unequal_elements
from delegraph.tools.differing.layer_difference import LayerDifference, LayersDifference
from delegraph.tools.differing.layer_units import FOLDED

_ALONE = "--inner alone tells which node"

Word = Literal["same", "within profile", "within tolerance", "differs"]


@dataclass(frozen=True, slots=True)
class Verdict(JsonRecord):
    """Whether two set-ups have the same outputs, in words.

    Attributes:
        word: ``same`` if no element differs; ``within profile`` if elements differ only by
            rounding; ``within tolerance`` if a tolerance was given and holds; otherwise
            ``differs``.
        node: the first node whose result differs by more than rounding; None if there is none, or
            if layers were not compared.
        text: the verdict as a sentence.
    """

    word: Word
    node: int | None
    text: str


def verdict_of(found: Difference, layers: LayersDifference | None = None) -> Verdict:
    """Return the verdict on a difference.

    An output is judged by its tolerance, or by the numerics profile if it has none.

    Args:
        found: the difference of the outputs.
        layers: the differences of all tensors, judged by the numerics profile.
    """
    wrong = [output for output in found.outputs if _is_off(output)]
    alone = [*found.only_in_test, *found.only_in_reference]
    if wrong or alone:
        return _differs(wrong, alone, layers)
    furthest = _furthest(found)
    if furthest is None or not any(d.unequal for o in found.outputs for d in o.runs):
        count = len(found.runs)
        if found.outputs and not any(d.count for o in found.outputs for d in o.runs):
            text = "same, but all outputs are empty: other shapes or values of inputs may fill them"
            return Verdict("same", None, text)
        text = f"same: no element of an output differs in {plural(count, 'run')}"
        return Verdict("same", None, text)
    has_tolerance = any(output.outside is not None for output in found.outputs)
    bound = "the tolerance" if has_tolerance else "the numerics profile"
    text = f"same within {bound}: {furthest.name} is off by up to {_extent(furthest)}"
    return Verdict("within tolerance" if has_tolerance else "within profile", None, text)


def worst_run(found: Difference) -> int:
    """Index of the run in which the output that the verdict names is furthest off."""
    output = _furthest(found)
    return 0 if output is None else output.worst_run


def _furthest(found: Difference) -> OutputDifference | None:
    """Output with the greatest difference, of those that are off if there are some."""
    wrong = [output for output in found.outputs if _is_off(output)]
    return max(wrong or found.outputs, key=_distance, default=None)


def _differs(
    wrong: list[OutputDifference], alone: list[str], layers: LayersDifference | None
) -> Verdict:
    first = None if layers is None else _first_off(layers)
    start = "differs"
    if layers is not None and first is not None:
        start = f"differs from {_place(first, layers)[0]} on"
    if not wrong:
        return Verdict("differs", None, f"{start}: one side alone has {', '.join(alone)}")
    output = max(wrong, key=_distance)
    if output.worst.compared is None:
        text = f"{start}: {output.name}: {'; '.join(output.remarks)}"
    elif output.are_labels and output.outside is None:
        text = f"{start}: of {output.name} {unequal_elements(output)} elements differ"
    else:
        count = sum(difference.count for difference in output.runs)
        bound = "numerics profile" if output.outside is None else "tolerance"
        text = (
            f"{start}: {_off(output)} of {count} elements of {output.name} are off by more than "
            f"the {bound}, by up to {_extent(output)}"
        )
    if layers is not None:
        is_beyond_rounding = any(output.beyond_rounding for output in wrong)
        text += f"; {_blame(layers, is_beyond_rounding=is_beyond_rounding)}"
    return Verdict("differs", None if first is None else first.node, text)


def _off(output: OutputDifference) -> int:
    counted = output.beyond_rounding if output.outside is None else output.outside
    return counted or 0


def _is_off(output: OutputDifference) -> bool:
    return _off(output) > 0 or output.worst.compared is None


def _distance(output: OutputDifference) -> float:
    compared = output.worst.compared
    return float("inf") if compared is None else compared.max


def _extent(output: OutputDifference) -> str:
    distance = _distance(output)
    if math.isinf(distance):
        return "inf, as one side has NaN or infinities"
    if output.worst.raw is None or output.worst.unit != "step":
        return f"{distance:.4g}"
    return f"{distance:.4g} step{'s' * (distance != 1)}"


def _blame(layers: LayersDifference, *, is_beyond_rounding: bool) -> str:
    """Sentence that names the layer that computes wrong results from the reference's inputs.

    Args:
        layers: the differences of all tensors.
        is_beyond_rounding: whether an output differs by more than rounding.
    """
    if all(x.same_inputs is None for x in layers.layers):
        return f"no layer was computed from the reference's inputs{_why_none(layers)}"
    wrong = next((x for x in layers.layers if x.same_inputs and x.same_inputs.outside), None)
    if wrong is None:
        together = ""
        if is_beyond_rounding and layers.inner == "alone" and _first_off(layers) is None:
            together = "; --inner exposed computes nodes of a partition together"
        return f"on the reference's inputs each layer is within the numerics profile{together}"
    place, advice = _place(wrong, layers)
    if not advice and layers.inner == "exposed" and _shares_its_partition(wrong, layers):
        whole = f"partition {wrong.partition} of {wrong.delegate}"
        return f"on the reference's inputs {whole} is off from {place} on; {_ALONE}"
    return f"on the reference's inputs {place} is the first that is off{advice}"


def _why_none(layers: LayersDifference) -> str:
    """Return ``:`` and what explains that no layer was computed.

    That is the option that helps, or the most frequent reason. Without both, the text is empty.
    """
    if layers.inner == "boundaries":
        return ": --inner alone does that"
    reasons = Counter(x.same_inputs_note for x in layers.layers if x.same_inputs_note)
    return f": {reasons.most_common(1)[0][0]}" if reasons else ""


def _place(layer: LayerDifference, layers: LayersDifference) -> tuple[str, str]:
    """Return the node of *layer*, or its partition if the nodes inside were not compared.

    The second text says how to compare them; it is empty for a node.
    """
    inside = [x for x in layers.layers if layer.partition is not None and _are_together(x, layer)]
    if all(x.drift is not None or x.drift_note == FOLDED for x in inside):
        return f"node {layer.node} ({layer.op})", ""
    nodes = node_numbers(sorted({x.node for x in inside}))
    where = f"partition {layer.partition} of {layer.delegate} (nodes {nodes})"
    return where, f"; {_ALONE}"


def _shares_its_partition(layer: LayerDifference, layers: LayersDifference) -> bool:
    """Whether other nodes were computed together with the node of *layer*, and may be wrong."""
    return layer.partition is not None and any(
        x.node != layer.node and _are_together(x, layer) for x in layers.layers
    )


def _are_together(one: LayerDifference, other: LayerDifference) -> bool:
    return (one.subgraph, one.partition) == (other.subgraph, other.partition)


def _first_off(layers: LayersDifference) -> LayerDifference | None:
    """Return the first layer whose difference rounding does not explain; None if there is none."""
    return next((x for x in layers.layers if x.drift is not None and x.drift.outside), None)
