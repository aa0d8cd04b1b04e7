"""Recognizes a class for each pixel among a model's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.recognition.findings import Findings, PixelClass, Segmentation
from delegraph.tools.recognition.picture_answer import Seen

_CLASSES = "ARG_MAX"


def find_segmentation(seen: Seen) -> Findings | None:
    """Return the class of each pixel; None if no output has classes of pixels.

    The output is the result of an ARG_MAX, ``[1, h, w]``, or has a score for each pixel and label,
    ``[1, h, w, labels]``.
    """
    if len(seen.outputs) != 1 or seen.size is None:
        return None
    details, values = seen.outputs[0]
    index = int(details["index"])
    labels = tuple(seen.labels) or seen.metadata.tensor(index).axis_labels
    labels = labels or seen.metadata.tensor(index).value_labels
    mask = _classes(values, seen, index) if values.ndim == 3 else _best(values, len(labels))
    if mask is None:
        return None
    return Findings(frozenset({index}), segmentation=Segmentation(mask, _counted(mask, labels)))


def _classes(values: NDArray[Any], seen: Seen, index: int) -> NDArray[np.int64] | None:
    made = [op.name for op in seen.graph.operators if index in op.outputs]
    is_picture = values.shape[0] == 1 and min(values.shape) >= 1 and values.size > 1
    if made != [_CLASSES] or not is_picture:
        return None
    return np.asarray(values[0], np.int64)


def _best(values: NDArray[Any], labels: int) -> NDArray[np.int64] | None:
    """Return the class with the highest score for each pixel, ``[h, w]``.

    The result is None unless *values* have scores for exactly *labels* classes.
    """
    if values.ndim != 4 or values.dtype.kind not in "fiu" or values.shape[0] != 1:
        return None
    if labels < 2 or values.shape[-1] != labels or min(values.shape[1:3]) < 2:
        return None
    return np.asarray(values[0].argmax(axis=-1), np.int64)


def _counted(mask: NDArray[np.int64], labels: Sequence[str]) -> tuple[PixelClass, ...]:
    indices, counts = np.unique(mask, return_counts=True)
    found = [
        PixelClass(i, labels[i] if 0 <= i < len(labels) else None, count)
        for i, count in zip(indices.tolist(), counts.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda c: -c.pixels))
