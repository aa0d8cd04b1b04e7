"""Mean average precision of detections, as the official tool defines it, on any draw of pictures.

Detections are matched with true objects once a picture. What is left, which detections hit and how
many objects there are, is added up for all pictures, or for pictures that a bootstrap drew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture

THRESHOLDS = np.float32(0.5) + np.arange(10, dtype=np.float32) * np.float32(0.05)
"""How much of boxes has to overlap: 0.5, 0.55, ..., 0.95 of their union."""

LAST_LEVEL = 100
"""Precision is taken at recall 0, 0.01, ..., 1."""

Floats = NDArray[np.float32]
Booleans = NDArray[np.bool_]


def overlaps(boxes: Floats, others: Floats) -> Floats:
    """Return intersection over union of each pair of boxes, 0 for boxes without area.

    Args:
        boxes: ``[n, 4], float32``: top, left, bottom, right.
        others: ``[m, 4], float32``.

    Returns:
        ``[n, m], float32``.

    Source:
        Box2D::IoU, tflite/tools/evaluation/stages/utils/image_metrics.cc; in its order and type,
        so that a share right at a threshold falls on the same side.
    """
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    both = np.prod(np.maximum(high - low, np.float32(0)), axis=2)
    total = _areas(boxes)[:, None] + _areas(others)[None] - both
    share: Floats = np.divide(both, total, out=np.zeros_like(both), where=total > 0)
    return share


def _areas(boxes: Floats) -> Floats:
    areas: Floats = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], np.float32(0)), axis=1)
    return areas


def hits(truth: TruePicture, found: Detections) -> Booleans:
    """Return which detections are right, at each threshold.

    The best-scored detection comes first. Each takes the object of its class that it overlaps most,
    of those that none has taken; it is right where that is at least the threshold.

    Returns:
        ``[thresholds, n], bool``.

    Source:
        AveragePrecision::FromBoxes, tflite/tools/evaluation/stages/utils/image_metrics.cc.
    """
    right = np.zeros((len(THRESHOLDS), len(found.scores)), np.bool_)
    same = found.classes[:, None] == truth.classes[None]
    shares = np.where(same, overlaps(found.boxes, truth.boxes), np.float32(0))
    free = np.ones((len(THRESHOLDS), len(truth.classes)), np.bool_)
    able = (shares >= THRESHOLDS[0]).any(axis=1)  # the others cannot be right
    order = np.argsort(-found.scores, kind="stable")
    for i in order[able[order]]:
        left = np.where(free, shares[i], np.float32(0))
        best = left.argmax(axis=1)
        right[:, i] = left.max(axis=1) >= THRESHOLDS
        free[right[:, i], best[right[:, i]]] = False
    return right


@dataclass(frozen=True, slots=True, eq=False)
class AveragePrecisions:
    """Average precision at each threshold, of each class that is in the ground truth or was found.

    Attributes:
        classes: ``[c], int64``, ascending.
        values: ``[thresholds, c], float64``; NaN for classes that are in no picture of a draw.
    """

    classes: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over all thresholds and classes; NaN where there is no class."""
        known = self.values[~np.isnan(self.values)]
        return float(known.mean()) if len(known) else np.nan

    def by_threshold(self) -> NDArray[np.float64]:
        """Return the mean over classes at each threshold."""
        known = ~np.isnan(self.values).any(axis=0)
        return (
            self.values[:, known].mean(axis=1) if known.any() else np.full(len(THRESHOLDS), np.nan)
        )

    def by_class(self) -> dict[int, float]:
        """Return the mean over thresholds of each class."""
        means = self.values.mean(axis=0).tolist()
        return dict(zip(self.classes.tolist(), means, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Hits:
    """The detections that are right at one threshold, by class and score.

    Attributes:
        at: ``[k], int64``: positions among all detections.
        kind: ``[k], int64``: positions of their classes.
        is_first: ``[k], bool``: whether no hit of the class comes before.
    """

    at: NDArray[np.int64]
    kind: NDArray[np.int64]
    is_first: Booleans


class Tally:
    """Hits and objects of pictures, sorted once, so that any draw of pictures is quick to judge.

    Source:
        AveragePrecision::FromPRCurve, image_metrics.cc, and
        ObjectDetectionAveragePrecisionStage::LatestMetrics,
        object_detection_average_precision_stage.cc, in tflite/tools/evaluation/stages. Detections
        of the same score come in the order of pictures and outputs; there, in any order.
    """

    def __init__(self, truth: Sequence[TruePicture], found: Sequence[Detections]) -> None:
        """Match detections and objects, picture by picture, in the same order."""
        right = [_NO_HITS, *(hits(*pair) for pair in zip(truth, found, strict=True))]
        self._classes = np.unique(
            _joined([*(t.classes for t in truth), *(f.classes for f in found)], np.int64)
        )
        self._objects = self._counts([t.classes for t in truth])
        self._found = self._counts([f.classes for f in found])
        picture = np.repeat(np.arange(len(found)), [len(f.scores) for f in found])
        kind = np.searchsorted(self._classes, _joined([f.classes for f in found], np.int64))
        order = np.lexsort((-_joined([f.scores for f in found], np.float32), kind))
        self._picture, kind = picture[order], kind[order]
        self._first = np.searchsorted(kind, kind)  # where the class of each detection begins
        self._hits = [
            _Hits(at, kind[at], np.diff(kind[at], prepend=-1) != 0)
            for at in map(np.flatnonzero, np.concatenate(right, axis=1)[:, order])
        ]

    def _counts(self, classes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return how many of each class each picture has, ``[pictures, classes]``."""
        counts = np.zeros((len(classes), len(self._classes)), np.int64)
        for row, kinds in zip(counts, classes, strict=True):
            np.add.at(row, np.searchsorted(self._classes, kinds), 1)
        return counts

    def average_precisions(self, drawn: NDArray[np.int64] | None = None) -> AveragePrecisions:
        """Return the average precisions of all pictures, or of a draw.

        Args:
            drawn: positions of pictures, some of which may occur repeatedly.
        """
        pictures = len(self._objects)
        times = np.bincount(np.arange(pictures) if drawn is None else drawn, minlength=pictures)
        objects, found = times @ self._objects, times @ self._found
        each = times[self._picture]
        so_far = np.concatenate([[0], np.cumsum(each)])
        ranks = so_far[1:] - so_far[self._first]
        values = np.stack([_curve_areas(hit, each, ranks, objects) for hit in self._hits])
        values[:, objects + found == 0] = np.nan
        return AveragePrecisions(self._classes, values)


def _curve_areas(
    hits: _Hits, times: NDArray[np.int64], ranks: NDArray[np.int64], objects: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the area under the curve of each class, ``[classes]``.

    Only hits are looked at: after a miss recall is the same and precision is less. The arithmetic
    is the official tool's, so that a recall right at a level falls on the same side.

    Args:
        hits: at one threshold.
        times: how often each detection is drawn.
        ranks: how many of its class there are up to each detection, itself included.
        objects: how many there are of each class.
    """
    if not len(hits.at):
        return np.zeros(len(objects))
    drawn = times[hits.at]
    right = np.cumsum(drawn)
    right -= (right - drawn)[hits.is_first][np.cumsum(hits.is_first) - 1]  # of the class alone
    count = np.maximum(objects, 1).astype(np.float32)[hits.kind]
    precision = right.astype(np.float32) / np.maximum(ranks[hits.at], 1).astype(np.float32)
    level = np.floor(right.astype(np.float32) / count * np.float32(LAST_LEVEL)) + 1
    levels = np.diff(level, prepend=0)
    levels[hits.is_first] = level[hits.is_first]
    apart = 2.0 * (hits.kind[-1] - hits.kind)  # keeps classes from each other
    best = np.maximum.accumulate((precision + apart)[::-1])[::-1] - apart
    return np.bincount(hits.kind, best * levels, minlength=len(objects)) / (LAST_LEVEL + 1)


_NO_HITS = np.empty((len(THRESHOLDS), 0), np.bool_)


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """Return arrays one after the other; there may be none."""
    return np.concatenate([np.empty(0, dtype), *arrays])
