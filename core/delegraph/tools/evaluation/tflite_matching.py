"""Matching of detections and recall levels by the official tool's definition.

Source:
    tflite/tools/evaluation/stages/utils/image_metrics.cc;
    tflite/tools/evaluation/stages/object_detection_average_precision_stage.cc.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.evaluation.average_precision import Matches
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture

THRESHOLDS = np.float32(0.5) + np.arange(10, dtype=np.float32) * np.float32(0.05)
"""Thresholds of overlap (intersection over union): 0.5, 0.55, ..., 0.95."""

Floats = NDArray[np.float32]


class TfliteDefinition:
    """Average precision by the definition and the arithmetic of the official tool.

    Detections of equal score keep the order of pictures and outputs; in the official tool their
    order is undefined.
    """

    thresholds = THRESHOLDS
    counts_stray_classes = True

    def match(self, truth: TruePicture, found: Detections) -> Matches:
        """Return which detections *found* match the objects *truth*, at each threshold.

        Detections are matched in order of score, the best first. Each detection takes the object of
        its class that it overlaps most, among the objects that no other detection has taken. The
        detection is right if this overlap reaches the threshold.
        """
        right = np.zeros((len(THRESHOLDS), len(found.scores)), np.bool_)
        same = found.classes[:, None] == truth.classes[None]
        shares = np.where(same, overlaps(found.boxes, truth.boxes), np.float32(0))
        free = np.ones((len(THRESHOLDS), len(truth.classes)), np.bool_)
        able = (shares >= THRESHOLDS[0]).any(axis=1)  # all other detections are wrong
        order = np.argsort(-found.scores, kind="stable")
        for i in order[able[order]]:
            left = np.where(free, shares[i], np.float32(0))
            best = left.argmax(axis=1)
            right[:, i] = left.max(axis=1) >= THRESHOLDS
            free[right[:, i], best[right[:, i]]] = False
        return Matches(right, np.zeros_like(right), truth.classes)

    def levels(self, right: NDArray[np.int64], objects: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how many of the recall levels 0, 0.01, ..., 1 are reached, as float64.

        The recall is *right* divided by *objects*, computed in float32.
        """
        recall = right.astype(np.float32) / objects.astype(np.float32)
        return (np.floor(recall * np.float32(100)) + 1).astype(np.float64)


def overlaps(boxes: Floats, others: Floats) -> Floats:
    """Return intersection over union of each pair of boxes, 0 for boxes without area.

    The order and type of the computation are the official tool's, so that an overlap exactly at a
    threshold falls on the same side.

    Args:
        boxes: ``[n, 4], float32``: top, left, bottom, right of each box.
        others: ``[m, 4], float32``: top, left, bottom, right of other boxes.

    Returns:
        ``[n, m], float32``.
    """
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    both = np.prod(np.maximum(high - low, np.float32(0)), axis=2)
    total = _areas(boxes)[:, None] + _areas(others)[None] - both
    shares: Floats = np.divide(both, total, out=np.zeros_like(both), where=total > 0)
    return shares


def _areas(boxes: Floats) -> Floats:
    areas: Floats = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], np.float32(0)), axis=1)
    return areas
