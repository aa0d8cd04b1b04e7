"""Short descriptions of a model's outputs: best classes, or a summary of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.quantizing import dequantized

FIRST = 8
"""Number of values that a summary shows."""

MIN_CLASSES = 10
"""Least number of scores for which an output without labels counts as a classifier's."""

_ROUNDING = 0.1
"""Largest difference from 1 of the sum of quantized probabilities."""


@dataclass(frozen=True, slots=True)
class Score:
    """A class: its index, its score as a real number, and its label (None if unknown)."""

    index: int
    score: float
    label: str | None


@dataclass(frozen=True, slots=True)
class OutputSummary:
    """Short description of one output.

    Attributes:
        name: the output's name.
        index: the tensor's index.
        dtype: dtype of the stored values.
        shape: dimensions of the tensor.
        top: best classes, best first; empty for outputs that are not class scores.
        minimum: smallest stored value, NaN apart; None if there is none, or values have no order.
        maximum: largest stored value; None in the same cases.
        first: the first stored values, at most :data:`FIRST`.
        threshold: smallest score of a class in *top*; None if the output is not class scores.
        scale: real value of one step of the stored integers; None if they are not quantized.
        zero_point: stored integer of the real value 0; None if they are not quantized.
        nan_count: number of values that are NaN.
    """

    name: str
    index: int
    dtype: str
    shape: tuple[int, ...]
    top: tuple[Score, ...]
    minimum: float | None
    maximum: float | None
    first: tuple[Any, ...]
    threshold: float | None = None
    scale: float | None = None
    zero_point: int | None = None
    nan_count: int = 0


def summarize(
    values: NDArray[Any],
    details: Mapping[str, Any],
    labels: Sequence[str] = (),
    top: int = 5,
    threshold: float | None = None,
) -> OutputSummary:
    """Return a short description of an output.

    Args:
        values: values that ``get_tensor`` returned.
        details: the output's entry of ``get_output_details``, with the name to show.
        labels: class names by index.
        top: number of classes to keep.
        threshold: classes with a lower score are left out; None keeps all classes.
    """
    values = np.asarray(values)
    has_classes = holds_scores(values, labels) and (labels or _is_distribution(values, details))
    best = best_classes(values, details, labels, top) if has_classes else ()
    scale, zero_point = details["quantization"] if values.dtype.kind in "iu" else (0.0, 0)
    numbers = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    ordered = numbers.size > 0 and values.dtype.kind not in "OSUc"
    return OutputSummary(
        details["name"],
        int(details["index"]),
        "string" if values.dtype.kind in "OSU" else values.dtype.name,
        values.shape,
        tuple(score for score in best if threshold is None or score.score >= threshold),
        float(numbers.min()) if ordered else None,
        float(numbers.max()) if ordered else None,
        tuple(_plain(value) for value in values.reshape(-1)[:FIRST].tolist()),
        threshold if best else None,
        float(scale) if scale else None,
        int(zero_point) if scale else None,
        values.size - numbers.size,
    )


def holds_scores(
    values: NDArray[Any], labels: Sequence[str] = (), least: int = MIN_CLASSES
) -> bool:
    """Whether the output *values* look like the scores of classes.

    With labels, they do if there are as many values as labels. Otherwise all dimensions but the
    last must be 1, and the last one must fit the number of classes: one more than labels, for the
    background, or without labels at least *least*.
    """
    if values.dtype.kind not in "fiu":
        return False
    if labels and values.size == len(labels):
        return True
    if values.ndim == 0 or values.shape[-1] != values.size:
        return False
    if labels:
        return values.size == len(labels) + 1
    return values.size >= least and (values.dtype.kind == "f" or values.dtype.itemsize <= 2)


def _is_distribution(values: NDArray[Any], details: Mapping[str, Any]) -> bool:
    """Whether *values* are probabilities that add up to about 1, as those of SOFTMAX do.

    The shape alone is not enough, because masks and features may have the same shape.
    """
    shares = dequantized(values.reshape(-1), details)
    return bool((shares >= 0).all() and abs(shares.sum() - 1) <= _ROUNDING)


def best_classes(
    values: NDArray[Any], details: Mapping[str, Any], labels: Sequence[str], top: int
) -> tuple[Score, ...]:
    """Return the *top* classes of highest dequantised score; equal scores are in index order.

    If there is one class more than labels, class 0 is the background.
    """
    scores = dequantized(values.reshape(-1), details)
    if len(scores) == len(labels) + 1:
        labels = ("background", *labels)
    best = np.argsort(-scores, kind="stable")[:top].tolist()
    return tuple(Score(i, float(scores[i]), labels[i] if i < len(labels) else None) for i in best)


def _plain(value: Any) -> Any:
    """Return *value* in a form that JSON can represent."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value) if isinstance(value, complex) else value
