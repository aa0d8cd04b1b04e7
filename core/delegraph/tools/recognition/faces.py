"""Recognizes the faces among the outputs of BlazeFace, whose boxes are relative to anchors.

Source:
    mediapipe/calculators/tflite/ssd_anchors_calculator.cc and
    mediapipe/calculators/tensor/tensors_to_detections_calculator.cc, with the options of
    mediapipe/modules/face_detection: ``face_detection_short_range``, ``..._full_range``. Of
    overlapping boxes, the best box is kept here; MediaPipe takes their average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.recognition.findings import Box, Findings
from delegraph.tools.recognition.picture_answer import Seen

_OVERLAP = 0.3
"""Intersection over union from which two boxes count as one face."""


@dataclass(frozen=True, slots=True)
class _Family:
    """Anchors of a BlazeFace model: side length of the input, and grids with anchors per cell.

    Attributes:
        side: side length of the input in pixels.
        grids: for each grid, the number of cells along a side and of anchors per cell.
    """

    side: int
    grids: tuple[tuple[int, int], ...]


_FAMILIES = {896: _Family(128, ((16, 2), (8, 6))), 2304: _Family(192, ((48, 1),))}
"""Mapping from the number of anchors to the model family."""


def find_faces(seen: Seen) -> Findings | None:
    """Return the faces in the outputs *seen*; None if they are not outputs of BlazeFace.

    BlazeFace has two outputs: ``[1, anchors, 16]``, a box and six points for each anchor, and
    ``[1, anchors, 1]``, the scores.
    """
    shapes = {np.shape(values): index for index, (_, values) in enumerate(seen.outputs)}
    for anchors, family in _FAMILIES.items():
        wanted = {(1, anchors, 16), (1, anchors, 1)}
        if set(shapes) == wanted and len(seen.outputs) == 2:
            if seen.size != (family.side, family.side):
                return None
            outputs = seen.real()
            (where, boxes), (sure, logits) = (outputs[shapes[s]] for s in sorted(wanted)[::-1])
            threshold = seen.least_score(sure, where)
            found = _faces(boxes[0, :, :4], logits.reshape(-1), family, threshold)
            return Findings(frozenset({where, sure}), threshold, anchors, boxes=found)
    return None


def _faces(
    raw: NDArray[np.float64], logits: NDArray[np.float64], family: _Family, threshold: float
) -> tuple[Box, ...]:
    """Return non-overlapping boxes with a score of at least *threshold*, best first.

    *raw* has the boxes relative to the anchors of *family*, and *logits* their scores.
    """
    scores = 1 / (1 + np.exp(-np.clip(np.nan_to_num(logits), -100, 100)))
    centers = _anchors(family) + raw[:, :2] / family.side
    halves = raw[:, 2:] / family.side / 2
    sides = np.concatenate([centers - halves, centers + halves], axis=1)
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if scores[i] < threshold:
            break
        is_new = not np.any(_overlaps(sides[i], sides[kept]) > _OVERLAP)
        if is_new and np.isfinite(sides[i]).all():
            kept.append(i)
    rows = np.concatenate([sides, scores[:, None]], axis=1)[kept].tolist()
    return tuple(Box(a, b, c, d, score, 0, "face") for a, b, c, d, score in rows)


def _anchors(family: _Family) -> NDArray[np.float64]:
    """Return the centres (x, y) of all anchors, ``[anchors, 2]``, as shares of the input's size."""
    grids = []
    for cells, count in family.grids:
        y, x = np.mgrid[:cells, :cells]
        centers = (np.stack([x, y], axis=-1).reshape(-1, 2) + 0.5) / cells
        grids.append(np.repeat(centers, count, axis=0))
    return np.concatenate(grids)


def _overlaps(box: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the intersection over union of a box with each of *others*, ``[n]``."""
    corners = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.clip(corners, 0, None).prod(axis=1)
    both = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(axis=1) - shared
    return np.asarray(shared / np.maximum(both, np.finfo(np.float64).tiny))
