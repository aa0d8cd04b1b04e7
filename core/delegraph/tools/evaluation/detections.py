"""Detections in a picture, read from a detector's four outputs in any order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.graph.model import SubgraphSpec
from delegraph.json_records import JsonRecord
from delegraph.operators.flexbuffer_options import flexbuffer_options
from delegraph.tools.evaluation.task import Outputs
from delegraph.tools.model_call import Details, declared_shape
from delegraph.tools.quantizing import dequantized
from delegraph.tools.recognition.boxes import POSTPROCESS
from delegraph.tools.recognition.picture_answer import stated_count

PARTS = ("boxes", "classes", "scores", "count")
"""Meanings of a detector's outputs, in the official tool's order."""


def _boxes(rows: object) -> NDArray[np.float32]:
    return np.array(rows, np.float32).reshape(-1, 4)  # so that no rows also have the shape [0, 4]


@dataclass(frozen=True, slots=True, eq=False)
class Detections(JsonRecord):
    """Objects that a model has detected in a picture.

    Attributes:
        boxes: ``[n, 4], float32``: top, left, bottom, right; 0 and 1 are the picture's edges.
        classes: ``[n], int64``, numbered as in the ground truth.
        scores: ``[n], float32``: confidence of each detection.
        no_numbers: number of further detections, left out because of infinities or NaN.
    """

    boxes: NDArray[np.float32] = field(metadata={"json_read": _boxes})
    classes: NDArray[np.int64]
    scores: NDArray[np.float32]
    no_numbers: int = 0


def detections(outputs: Outputs, order: Sequence[int], class_offset: int) -> Detections:
    """Return the first *count* detections in a model's outputs.

    *order* has the positions of boxes, classes, scores and count among the outputs. *class_offset*
    is added to the model's classes after their fractions are cut off.

    Raises:
        ArgumentError: the values of the boxes are no boxes.
    """
    parts = [outputs[position] for position in order]
    _require_values(parts[0], parts[3])
    boxes, classes, scores, count = (dequantized(values, entry) for entry, values in parts)
    boxes, classes, scores = boxes.reshape(-1, 4), classes.reshape(-1), scores.reshape(-1)
    n = min(len(boxes), len(classes), len(scores), stated_count(count))
    rows = np.concatenate([boxes[:n], scores[:n, None], classes[:n, None]], axis=1)
    sound = rows[np.isfinite(rows).all(axis=1)]
    return Detections(
        sound[:, :4].astype(np.float32),
        np.trunc(sound[:, 5]).astype(np.int64) + class_offset,
        sound[:, 4].astype(np.float32),
        n - len(sound),
    )


def _require_values(
    boxes: tuple[Details, NDArray[Any]], count: tuple[Details, NDArray[Any]]
) -> None:
    """Check that there are four numbers for each box, and one count."""
    for what, (entry, values), fits, expected in (
        ("boxes", boxes, boxes[1].shape[-1:] == (4,), "[1, n, 4]"),
        ("count", count, count[1].size == 1, "[1]"),
    ):
        if not fits:
            raise ArgumentError(
                f"output {entry['name']!r} cannot be the {what}: it has the shape "
                f"{list(values.shape)}, expected {expected}"
            )


def made_by_postprocess(graph: SubgraphSpec) -> tuple[int, ...]:
    """Return the outputs of the detection postprocessing node, in the order of :data:`PARTS`.

    The result is empty unless there is exactly one such operator.
    """
    made = [operator.outputs for operator in graph.operators if operator.name == POSTPROCESS]
    return made[0] if len(made) == 1 else ()


def class_count(graph: SubgraphSpec) -> int:
    """Return the number of classes of the detection postprocessing node; 0 if it is not known.

    Raises:
        OperatorError: its options are damaged.
    """
    nodes = [operator for operator in graph.operators if operator.name == POSTPROCESS]
    options = [bytes(n.custom_options) for n in nodes if n.custom_options is not None]
    return max((int(flexbuffer_options(data).get("num_classes", 0)) for data in options), default=0)


def order_of(
    outputs: Sequence[Details], made: Sequence[int] = (), named: Sequence[str] = ()
) -> tuple[int, ...]:
    """Return the positions of boxes, classes, scores and count among the outputs.

    The user's choice is used first; it must contradict neither shapes nor the postprocessing
    operator, whose order is used next. Otherwise names and shapes decide if they allow a single
    order; or else the official tool's order is used if they allow it.

    Args:
        outputs: details of all outputs.
        made: result of :func:`made_by_postprocess`.
        named: the user's meaning of each output, from :data:`PARTS`; may be empty.

    Raises:
        ArgumentError: the model has no such outputs, or their meanings are not clear.
    """
    if len(outputs) != len(PARTS):
        raise ArgumentError(
            f"expected 4 outputs of a detector: boxes [1, n, 4], classes [1, n], scores [1, n] and "
            f"their count [1]; the model has {len(outputs)}"
        )
    order = _as_named(named) if named else ()
    _require_shapes(outputs, named)
    at = {int(entry["index"]): position for position, entry in enumerate(outputs)}
    if set(made) == at.keys():
        computed = tuple(at[index] for index in made)
        if order not in ((), computed):
            raise ArgumentError(
                f"the outputs cannot be {','.join(named)}: the model's operator {POSTPROCESS} "
                f"computes {','.join(PARTS[computed.index(i)] for i in range(len(PARTS)))}"
            )
        return computed
    return order or _by_names_and_shapes(outputs)


def _as_named(named: Sequence[str]) -> tuple[int, ...]:
    for name in named:
        if name not in PARTS:
            raise ArgumentError(
                f"an output cannot be {name!r}{did_you_mean(name, PARTS)}: name the outputs in the "
                f"model's order, each once: {', '.join(PARTS)}"
            )
    if len(named) != len(PARTS) or len(set(named)) < len(named):
        raise ArgumentError(
            f"expected each of {', '.join(PARTS)} once, in the order of the model's outputs; found "
            f"{', '.join(named)}"
        )
    return tuple(named.index(part) for part in PARTS)


def _require_shapes(outputs: Sequence[Details], named: Sequence[str]) -> None:
    """Check that each output has a shape that fits the user's meaning of it.

    Raises:
        ArgumentError: a shape does not fit; the message has those of all outputs.
    """
    for part, entry in zip(named, outputs, strict=False):
        shape = declared_shape(entry)
        text = "".join(f"{size}," for size in shape)
        if shape and re.fullmatch(_NAMED_SIZES.get(part, _NAMED_LINE), text) is None:
            shown = ", ".join(f"{each['name']!r} {declared_shape(each)}" for each in outputs)
            raise ArgumentError(
                f"output {entry['name']!r} {shape} cannot be {part!r}: boxes are [1, n, 4], "
                "classes and scores [1, n], and the count is [1]; the outputs are, in their order: "
                f"{shown}"
            )


def _by_names_and_shapes(outputs: Sequence[Details]) -> tuple[int, ...]:
    """Return the position in *outputs* of each of :data:`PARTS`.

    Names and shapes must allow a single order, or the official order.

    Raises:
        ArgumentError: they allow several other orders, or none.
    """
    able = [
        {part for part in PARTS if _may_be(part, entry)} & (_said(entry["name"]) or set(PARTS))
        for entry in outputs
    ]
    official = tuple(range(len(PARTS)))
    orders = [
        order
        for order in permutations(official)
        if all(part in able[position] for part, position in zip(PARTS, order, strict=True))
    ]
    if len(orders) == 1:
        return orders[0]
    if official in orders:
        return official
    shown = ", ".join(f"{entry['name']!r} {declared_shape(entry)}" for entry in outputs)
    raise ArgumentError(
        f"which outputs are boxes, classes, scores and count is not clear: {shown}; say it, in "
        f"their order"
    )


_SIZES = {"boxes": r"(1,)?-?\d+,4,", "count": r"(1,)*"}
_LINE = r"(1,)*-?\d+,"

_NAMED_SIZES = {"boxes": r"(-?1,)?-?\d+,(4|-1),", "count": r"(-?1,)*"}
_NAMED_LINE = r"(-?1,)*-?\d+,"
"""As above, of outputs that the user names: unknown sizes fit."""


def _may_be(part: str, entry: Details) -> bool:
    """Whether the output *entry* has a shape that fits *part*, one of :data:`PARTS`."""
    shape = "".join(f"{size}," for size in declared_shape(entry))
    return re.fullmatch(_SIZES.get(part, _LINE), shape) is not None


_WORDS = {
    "boxes": ("box", "location"),
    "classes": ("class", "categor"),
    "scores": ("score",),
    "count": ("num", "count"),
}


def _said(name: str) -> set[str]:
    """Return which of boxes, classes, scores and count an output's *name* suggests.

    >>> sorted(_said("detection_scores")), sorted(_said("StatefulPartitionedCall:1"))
    (['scores'], [])
    """
    last = name.lower().rpartition("/")[2]
    return {part for part, words in _WORDS.items() if any(word in last for word in words)}
