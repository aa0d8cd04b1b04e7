"""Recognizes the boxes of objects among a model's outputs.

Source:
    tflite/kernels/detection_postprocess.cc; ``ObjectDetector``,
    tensorflow_lite_support/cc/task/vision/object_detector.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delegraph.graph.metadata import BoxLayout
from delegraph.tools.recognition.findings import Box, Findings
from delegraph.tools.recognition.picture_answer import Seen, TensorValues, stated_count

POSTPROCESS = "TFLite_Detection_PostProcess"
"""Name of the operator that ends most detectors; outputs boxes, classes, scores, count."""

_ITS_LAYOUT = BoxLayout("boundaries", (1, 0, 3, 2))
_NO_CLASS = ("???", "background")
"""Labels of class 0 that stand for no class; the model's first class then has label 1."""


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """Boxes, classes and scores as the model stores them, before they are converted.

    Attributes:
        tensors: indices of boxes, classes, scores, and of other outputs that belong to them.
        layout: order and meaning of the boxes' four numbers.
        boxes: ``[n, 4]``: the boxes.
        classes: ``[n]``: class of each box.
        scores: ``[n]``: score of each box.
    """

    tensors: tuple[int, ...]
    layout: BoxLayout
    boxes: NDArray[np.float64]
    classes: NDArray[np.float64]
    scores: NDArray[np.float64]


def find_boxes(seen: Seen) -> Findings | None:
    """Return the boxes in the outputs *seen*; None if there are none."""
    raw = _postprocessed(seen) or _by_metadata(seen)
    if raw is None:
        return None
    where, kinds, sure = raw.tensors[:3]
    labels = tuple(seen.labels) or seen.metadata.tensor(kinds).value_labels
    threshold = seen.least_score(sure, kinds, where)
    corners = _corners(raw.boxes, raw.layout, seen.size or (1, 1))
    rows = np.concatenate([corners, raw.scores[:, None], raw.classes[:, None]], axis=1)
    found = [
        Box(left, top, right, bottom, score, int(kind), _label(labels, int(kind)))
        for left, top, right, bottom, score, kind in rows[np.isfinite(rows).all(axis=1)].tolist()
        if score >= threshold
    ]
    found.sort(key=lambda box: -box.score)
    return Findings(frozenset(raw.tensors), threshold, len(rows), boxes=tuple(found))


def _postprocessed(seen: Seen) -> _Raw | None:
    """Return the boxes of a detection post-processing node, or None if there is none."""
    made = seen.made_by(POSTPROCESS)
    if len(made) != 4 or made[0][1].shape[-1:] != (4,):
        return None
    return _raw(made, _ITS_LAYOUT, stated_count(made[3][1]))


def _by_metadata(seen: Seen) -> _Raw | None:
    """Return the boxes, classes and scores that the metadata names; None if one is missing."""
    if all(said.boxes is None for said in seen.metadata.outputs):
        return None
    found: dict[str, TensorValues] = {}
    layout = None
    for index, values in seen.real():
        said = seen.metadata.tensor(index)
        name = said.name.lower()
        if said.boxes is not None and values.ndim == 3 and values.shape[-1] == 4:
            layout, found["boxes"] = said.boxes, (index, values)
        elif name.startswith(("class", "categor")):
            found["classes"] = (index, values)
        elif name.startswith("score"):
            found["scores"] = (index, values)
    if layout is None or len(found) != 3:
        return None
    return _raw([found[name] for name in ("boxes", "classes", "scores")], layout)


def _raw(made: Sequence[TensorValues], layout: BoxLayout, count: int | None = None) -> _Raw:
    """Return the first *count* boxes, classes and scores in *made*, or fewer if one is shorter.

    *layout* is the meaning of a box's four numbers.
    """
    values = [array for _, array in made]
    boxes, classes, scores = values[0].reshape(-1, 4), values[1].reshape(-1), values[2].reshape(-1)
    n = min(len(boxes), len(classes), len(scores))
    n = n if count is None else min(n, count)
    return _Raw(tuple(i for i, _ in made), layout, boxes[:n], classes[:n], scores[:n])


def _corners(
    boxes: NDArray[np.float64], layout: BoxLayout, size: tuple[int, int]
) -> NDArray[np.float64]:
    """Return left, top, right, bottom of *boxes*, ``[n, 4]``, as shares of the picture's size.

    *layout* is the order and meaning of a box's four numbers. *size* is width and height, in
    pixels, of the input that takes the picture.
    """
    a, b, c, d = boxes[:, list(layout.index)].T
    if layout.type == "boundaries":
        sides = np.stack([a, b, c, d], axis=1)
    elif layout.type == "upper left":
        sides = np.stack([a, b, a + c, b + d], axis=1)
    else:
        sides = np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], axis=1)
    return sides / np.array([*size, *size], np.float64) if layout.is_pixels else sides


def _label(labels: Sequence[str], index: int) -> str | None:
    """Return the name of the class *index*; None if *labels* has no such name.

    A first label ``???`` or ``background`` stands for no class, and is not counted.

    >>> _label(["cat", "dog"], 1), _label(["???", "cat", "dog"], 1), _label([], 1)
    ('dog', 'dog', None)
    """
    if labels and labels[0] in _NO_CLASS:
        index += 1
    return labels[index] if 0 <= index < len(labels) else None
