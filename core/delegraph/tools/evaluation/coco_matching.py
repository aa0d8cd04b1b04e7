"""Matching of detections and recall levels by COCO's definition.

The library ``pycocotools``, used in :mod:`coco_precision`, computes COCO's figures for all
pictures. Confidence intervals also need the figures of random draws of pictures, which this module
computes.

Source:
    COCOeval.evaluateImg and accumulate, pycocotools/cocoeval.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.evaluation.average_precision import Matches
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import InPixels, TruePicture

THRESHOLDS = np.linspace(0.5, 0.95, 10)
MOST = 100
"""Largest number of detections of a class that count in a picture."""

_RECALLS = np.linspace(0.0, 1.0, 101)

Floats = NDArray[np.float64]


class CocoDefinition:
    """Definition of COCO's first figure: average precision of objects of all sizes."""

    thresholds = THRESHOLDS
    counts_stray_classes = False

    def match(self, truth: TruePicture, found: Detections) -> Matches:
        """Return which detections *found* are right, and which are ignored, at each threshold.

        Detections are matched in order of score, the best first. Each detection takes the object of
        its class that it overlaps most, among the objects that no other detection has taken. A
        detection without such an object is ignored if it lies in a crowd.

        Args:
            truth: the objects that the picture shows.
            found: what the model detected in it.
        """
        pixels = truth.pixels
        assert pixels is not None  # pictures without pixels were rejected before
        right = np.zeros((len(THRESHOLDS), len(found.scores)), np.bool_)
        ignored = np.zeros_like(right)
        same = found.classes[:, None] == truth.classes[None]
        shares = np.where(same, overlaps(in_pixels(found, pixels), pixels), 0.0)
        free = np.repeat(~pixels.crowds[None], len(THRESHOLDS), axis=0)
        able = (shares >= THRESHOLDS[0]).any(axis=1)  # all other detections are wrong
        order = np.argsort(-found.scores, kind="stable")
        ignored[:, _beyond(found.classes, order)] = True
        for i in order[able[order] & ~ignored[0, order]]:
            left = np.where(free, shares[i], 0.0)
            best = left.shape[1] - 1 - left[:, ::-1].argmax(axis=1)  # the last of equal ones
            right[:, i] = left.max(axis=1) >= THRESHOLDS
            free[right[:, i], best[right[:, i]]] = False
            in_crowd = shares[i][pixels.crowds].max(initial=0.0) >= THRESHOLDS
            ignored[:, i] = in_crowd & ~right[:, i]
        return Matches(right, ignored, truth.classes[~pixels.crowds])

    def levels(self, right: NDArray[np.int64], objects: NDArray[np.int64]) -> Floats:
        """Return how many of the recall levels 0, 0.01, ..., 1 are reached.

        The recall is *right* divided by *objects*, computed in float64.
        """
        return np.searchsorted(_RECALLS, right / objects, side="right").astype(np.float64)


def in_pixels(found: Detections, pixels: InPixels) -> Floats:
    """Return the boxes *found* in COCO's form, in pixels: left, top, width >= 0, height >= 0."""
    size = np.array([pixels.height, pixels.width], np.float64)
    low, high = found.boxes[:, :2] * size, found.boxes[:, 2:] * size
    lengths = np.maximum(high - low, 0)
    return np.concatenate([low[:, ::-1], lengths[:, ::-1]], axis=1)


def overlaps(boxes: Floats, truth: InPixels) -> Floats:
    """Return intersection over union of boxes and objects; for crowds, intersection over box area.

    Args:
        boxes: ``[n, 4]``: left, top, width, height of each box.
        truth: m objects.

    Returns:
        ``[n, m], float64``.
    """
    others = truth.boxes
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    ends, other_ends = boxes[:, :2] + boxes[:, 2:], others[:, :2] + others[:, 2:]
    high = np.minimum(ends[:, None], other_ends[None])
    both = np.prod(np.maximum(high - low, 0), axis=2)
    areas, other_areas = boxes[:, 2] * boxes[:, 3], others[:, 2] * others[:, 3]
    union = np.where(truth.crowds, areas[:, None], areas[:, None] + other_areas[None] - both)
    shares: Floats = np.divide(both, union, out=np.zeros_like(both), where=both > 0)
    return shares


def _beyond(classes: NDArray[np.int64], order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the positions of the detections of each class after its :data:`MOST` best ones."""
    if len(order) <= MOST:
        return order[:0]
    rests = [order[classes[order] == kind][MOST:] for kind in np.unique(classes)]
    return np.concatenate(rests)
