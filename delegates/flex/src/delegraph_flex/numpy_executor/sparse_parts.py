"""The parts of sparse tensors, and checks on them: they are not trusted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.numpy_executor.indices import check_rank

MOST_ELEMENTS = (1 << 63) - 1
"""What an index can count."""


def check(indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]) -> None:
    """Refuse parts that are no sparse tensor.

    Raises:
        ValueError: their shapes do not go together, or an index is outside.
    """
    check_rank(values, 1, "values")
    check_indices(indices, values.size, shape)


def check_parts(indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]) -> None:
    """Refuse parts whose shapes do not go together; indices may be outside, as in TensorFlow.

    Raises:
        ValueError: they do not.
    """
    check_rank(values, 1, "values")
    _check_count(indices, values.size, shape)


def check_shape(shape: NDArray[Any]) -> None:
    """Refuse a shape that no tensor has, of whatever memory.

    Raises:
        ValueError: a negative dimension, or more elements than 64 bits count.
    """
    dims = shape.tolist()
    if min(dims, default=0) < 0 or math.prod(dims) > MOST_ELEMENTS:
        raise ValueError(f"shape is {dims}, expected dimensions from 0, of less than 2^63 elements")


def check_indices(indices: NDArray[Any], count: int, shape: NDArray[Any]) -> None:
    """Refuse indices that are not inside a shape.

    Raises:
        ValueError: they are not *count* indices of its rank, or one is outside.
    """
    _check_count(indices, count, shape)
    bad = ((indices < 0) | (indices >= shape)).any(axis=1)
    if bad.any():
        raise ValueError(f"index {indices[bad][0].tolist()} is not inside {shape.tolist()}")


def _check_count(indices: NDArray[Any], count: int, shape: NDArray[Any]) -> None:
    if shape.ndim != 1 or indices.shape != (count, shape.size):
        raise ValueError(
            f"indices {list(indices.shape)} and {count} values of a tensor with"
            f" {shape.size} dimensions"
        )


def row_order(indices: NDArray[Any]) -> NDArray[np.intp]:
    """Order that sorts indices, row by row; equal ones stay in order."""
    return np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(len(indices))


def are_rising(indices: NDArray[Any]) -> bool:
    """Return whether rows of indices are in order, and none is repeated."""
    steps = np.diff(indices.astype(np.int64), axis=0)
    if not steps.size:
        return True
    first = (steps != 0).argmax(axis=1)
    return bool((steps[np.arange(len(steps)), first] > 0).all())
