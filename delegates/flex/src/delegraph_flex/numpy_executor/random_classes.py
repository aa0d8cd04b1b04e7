"""Draws random classes, with probabilities given as logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_scalar
from delegraph_flex.numpy_executor.philox import Philox, doubles, flat_words


def draw_classes(
    logits: NDArray[Any],
    count: NDArray[Any],
    reserve: Callable[[int], Philox],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    """Return *count* classes for each row of *logits*: ``[rows, count]``, *dtype*.

    Classes with logits that are not finite are never drawn. TensorFlow divides many rows among its
    threads, so its numbers depend on the number of threads; these are the numbers of one thread.

    Args:
        logits: real logits, ``[rows, classes]``.
        count: number of draws per row, a scalar.
        reserve: function that returns the position in the stream of the random numbers for a number
            of outputs.
        dtype: dtype of the result.

    Raises:
        ValueError: a shape or the count is invalid.

    Source:
        MultinomialOp, core/kernels/multinomial_op.cc.
    """
    if logits.ndim != 2 or not logits.shape[1]:
        raise ValueError(f"logits have shape {list(logits.shape)}, expected [rows, classes]")
    check_scalar(count, "number of samples")
    rows, draws = len(logits), int(count)
    require((rows, 2 * draws), np.float64)
    result = np.empty((rows, draws), dtype)
    if not result.size:
        return result
    random = reserve(rows * 2 * (-(-draws // 4) * 4))
    points = doubles(flat_words(random, 2 * rows * draws)).reshape(rows, draws)
    odds = _cumulative_odds(logits)
    for row, point, classes in zip(odds, points, result, strict=True):
        classes[...] = np.searchsorted(row, point * row[-1], side="right")
    return result


def _cumulative_odds(logits: NDArray[Any]) -> NDArray[np.float64]:
    values = logits.astype(np.float64)
    finite = np.isfinite(values)
    lowest = float(np.iinfo(logits.dtype).min) if logits.dtype.kind in "iu" else -np.inf
    largest = values.max(axis=1, where=finite, initial=lowest, keepdims=True)
    odds = np.exp(np.where(finite, values - np.where(finite, largest, 0), -np.inf))
    return np.cumsum(odds, axis=1)
