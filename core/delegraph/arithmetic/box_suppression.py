"""Greedy non-maximum suppression: keep the best boxes, drop boxes that overlap a kept box."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def overlaps(boxes: Floats, one: int, others: NDArray[Any]) -> Floats:
    """Return the intersection over union of a box with each of *others*: ``[N], float32``.

    Args:
        boxes: ``[boxes, 4], float32``: two opposite corners as y, x, y, x, the smaller y and x
            first.
        one: row number of the box in *boxes*.
        others: row numbers of other boxes in *boxes*.

    A box without area overlaps nothing; if a corner is NaN, the result is NaN.
    """
    y0, x0, y1, x1 = boxes[others].T
    top, left, bottom, right = boxes[one]
    area = (bottom - top) * (right - left)
    areas = (y1 - y0) * (x1 - x0)
    height = np.maximum(np.minimum(y1, bottom) - np.maximum(y0, top), np.float32(0))
    width = np.maximum(np.minimum(x1, right) - np.maximum(x0, left), np.float32(0))
    common = height * width
    share: Floats = np.zeros(len(others), np.float32)
    np.divide(common, area + areas - common, out=share, where=~((area <= 0) | (areas <= 0)))
    return share


def suppressed(boxes: Floats, ranked: NDArray[Any], threshold: float, limit: int) -> list[int]:
    """Return the rows of the *boxes* that are kept, best first, at most *limit*.

    A box is dropped if its overlap with a better kept box is more than *threshold*.

    Args:
        boxes: ``[boxes, 4], float32``.
        ranked: row numbers of *boxes*, best first.
        threshold: intersection over union, in (0, 1].
        limit: largest number of kept boxes, at least 0.

    >>> suppressed(np.array([[0, 0, 1, 1], [0, 0, 1, .9], [2, 2, 3, 3]], np.float32),
    ...            np.array([1, 0, 2]), 0.5, 10)
    [1, 2]
    """
    kept: list[int] = []
    while len(ranked) and len(kept) < limit:
        best, ranked = int(ranked[0]), ranked[1:]
        kept.append(best)
        ranked = ranked[~(overlaps(boxes, best, ranked) > np.float32(threshold))]
    return kept


def descending(scores: NDArray[Any]) -> NDArray[np.intp]:
    """Return the positions that sort *scores*, ``[N]``, descending; ties keep their order."""
    return len(scores) - 1 - np.argsort(scores[::-1], kind="stable")[::-1]
