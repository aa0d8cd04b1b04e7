"""Mean average precision of detections, by any definition, for all pictures or a random draw.

Detections are matched with true objects once for each picture. The results (right detections and
numbers of objects) are then added up over all pictures, or over the pictures of one draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

RECALLS = 101
"""Number of recalls at which precision is measured: 0, 0.01, ..., 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Which detections of one picture match an object.

    Attributes:
        right: ``[thresholds, n], bool``: whether each detection matches an object that no other
            detection has.
        ignored: ``[thresholds, n], bool``: whether a detection counts neither as right nor as
            wrong.
        objects: ``[m], int64``: classes of the objects in the picture.
    """

    right: Booleans
    ignored: Booleans
    objects: Integers


class Definition(Protocol):
    """Definition of average precision: thresholds and matching rules."""

    @property
    def thresholds(self) -> NDArray[np.floating]:
        """Thresholds of overlap, as intersection over union, ``[thresholds]``."""

    @property
    def counts_stray_classes(self) -> bool:
        """Whether a detected class without true objects counts as 0, or else is ignored."""

    def match(self, truth: TruePicture, found: Detections) -> Matches:
        """Return which detections *found* in one picture match its objects *truth*."""

    def levels(self, right: Integers, objects: Integers) -> NDArray[np.float64]:
        """Return how many of the recall levels 0, 0.01, ..., 1 are reached.

        Args:
            right: ``[k]``: numbers of objects found.
            objects: ``[k]``: numbers of objects to find, at least 1.
        """


@dataclass(frozen=True, slots=True, eq=False)
class AveragePrecisions:
    """Average precision at each threshold and of each class.

    Attributes:
        classes: ``[c], int64``, ascending.
        values: ``[thresholds, c], float64``; NaN for classes that are not counted.
    """

    classes: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over all thresholds and classes; NaN if there are no classes."""
        known = self.values[~np.isnan(self.values)]
        return float(known.mean()) if len(known) else np.nan

    def by_threshold(self) -> NDArray[np.float64]:
        """Return the mean over classes at each threshold."""
        known = ~np.isnan(self.values).any(axis=0)
        return (
            self.values[:, known].mean(axis=1) if known.any() else np.full(len(self.values), np.nan)
        )

    def by_class(self) -> dict[int, float]:
        """Return the mean over thresholds of each class."""
        means = self.values.mean(axis=0).tolist()
        return dict(zip(self.classes.tolist(), means, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Hits:
    """Right detections at one threshold, sorted by class and score.

    Attributes:
        at: ``[k], int64``: positions of the hits among all detections.
        kind: ``[k], int64``: positions of the hits' classes.
        is_first: ``[k], bool``: whether a hit is the first one of its class.
        ignored: ``[i], int64``: positions of the detections that do not count.
        ignored_before: ``[2, k], int64``: number of ignored detections before the hit's class, and
            before the hit.
    """

    at: Integers
    kind: Integers
    is_first: Booleans
    ignored: Integers
    ignored_before: Integers

    @classmethod
    def of(cls, right: Booleans, ignored: Booleans, kind: Integers, first: Integers) -> _Hits:
        """Return the hits among all detections.

        Args:
            right: ``[n], bool``: whether each detection is right.
            ignored: ``[n], bool``: whether each detection is ignored.
            kind: ``[n]``: positions of the detections' classes.
            first: ``[n]``: position at which the class of each detection begins.
        """
        at, left_out = np.flatnonzero(right), np.flatnonzero(ignored)
        before = np.searchsorted(left_out, np.stack([first[at], at]))
        return cls(at, kind[at], np.diff(kind[at], prepend=-1) != 0, left_out, before)


class Tally:
    """All detections and true objects of a data set, sorted once so that draws are quick."""

    def __init__(
        self, definition: Definition, truth: Sequence[TruePicture], found: Sequence[Detections]
    ) -> None:
        """Match detections *found* with objects *truth*, picture by picture."""
        self._definition = definition
        matches = [definition.match(*pair) for pair in zip(truth, found, strict=True)]
        objects, kinds = [m.objects for m in matches], [f.classes for f in found]
        self._classes = np.unique(_joined([*objects, *kinds], np.int64))
        self._objects, self._found = self._counts(objects), self._counts(kinds)
        picture = np.repeat(np.arange(len(found)), [len(f.scores) for f in found])
        kind = np.searchsorted(self._classes, _joined(kinds, np.int64))
        order = np.lexsort((-_joined([f.scores for f in found], np.float32), kind))
        self._picture, kind = picture[order], kind[order]
        self._first = np.searchsorted(kind, kind)  # where the class of each detection begins
        none = np.empty((len(definition.thresholds), 0), np.bool_)
        right = np.concatenate([none, *(m.right for m in matches)], axis=1)[:, order]
        ignored = np.concatenate([none, *(m.ignored for m in matches)], axis=1)[:, order]
        self._hits = [
            _Hits.of(*each, kind, self._first) for each in zip(right, ignored, strict=True)
        ]

    def _counts(self, classes: Sequence[Integers]) -> Integers:
        """Return the number of objects of each class in each picture, ``[pictures, classes]``."""
        counts = np.zeros((len(classes), len(self._classes)), np.int64)
        for row, kinds in zip(counts, classes, strict=True):
            np.add.at(row, np.searchsorted(self._classes, kinds), 1)
        return counts

    def average_precisions(self, drawn: Integers | None = None) -> AveragePrecisions:
        """Return the average precisions of all pictures, or of a random draw of pictures.

        Args:
            drawn: positions of the drawn pictures; a position may occur several times.
        """
        pictures = len(self._objects)
        times = np.bincount(np.arange(pictures) if drawn is None else drawn, minlength=pictures)
        objects, found = times @ self._objects, times @ self._found
        each = times[self._picture]
        so_far = np.concatenate([[0], np.cumsum(each)])
        ranks = so_far[1:] - so_far[self._first]
        values = np.stack([self._curve_areas(hits, each, ranks, objects) for hits in self._hits])
        there = objects + found if self._definition.counts_stray_classes else objects
        values[:, there == 0] = np.nan
        return AveragePrecisions(self._classes, values)

    def _curve_areas(
        self, hits: _Hits, times: Integers, ranks: Integers, objects: Integers
    ) -> NDArray[np.float64]:
        """Return the area under the precision-recall curve of each class, ``[classes]``.

        The precision at a recall is the highest precision at that recall or a larger one. Only hits
        are considered, because a miss keeps the recall and lowers the precision.

        Args:
            hits: hits at one threshold.
            times: number of times that each detection is drawn.
            ranks: number of drawn detections of the same class up to and including each detection.
            objects: number of true objects of each class.
        """
        if not len(hits.at):
            return np.zeros(len(objects))
        drawn = times[hits.at]
        right = np.cumsum(drawn)
        right -= (right - drawn)[hits.is_first][np.cumsum(hits.is_first) - 1]  # of the class alone
        counted = ranks[hits.at]
        if len(hits.ignored):
            left_out = np.concatenate([[0], np.cumsum(times[hits.ignored])])[hits.ignored_before]
            counted -= left_out[1] - left_out[0]
        level = self._definition.levels(right, np.maximum(objects, 1)[hits.kind])
        levels = np.diff(level, prepend=0)
        levels[hits.is_first] = level[hits.is_first]
        precision = right / np.maximum(counted, 1)
        apart = 2.0 * (hits.kind[-1] - hits.kind)  # keeps classes apart from each other
        best = np.maximum.accumulate((precision + apart)[::-1])[::-1] - apart
        return np.bincount(hits.kind, best * levels, minlength=len(objects)) / RECALLS


def _joined(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """Concatenate *arrays*, which may be an empty list; the result has at least *dtype*."""
    return np.concatenate([np.empty(0, dtype), *arrays])
