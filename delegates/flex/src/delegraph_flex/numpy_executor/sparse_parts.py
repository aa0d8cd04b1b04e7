"""Checks of the parts of sparse tensors (indices, values, shape), which are untrusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph_flex.numpy_executor.indices import check_rank

MOST_ELEMENTS = (1 << 63) - 1
"""Largest number of elements that an index can count."""


def check(indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]) -> None:
    """Check that indices, values and shape are the parts of a sparse tensor.

    Raises:
        ValueError: the shapes of the parts do not match, or an index is out of range.
    """
    check_rank(values, 1, "values")
    check_indices(indices, values.size, shape)


def check_parts(indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]) -> None:
    """Check that the shapes of a sparse tensor's *indices*, *values* and *shape* match.

    Indices may be out of range, as in TensorFlow.

    Raises:
        ValueError: the shapes do not match.
    """
    check_rank(values, 1, "values")
    _check_count(indices, values.size, shape)


def check_shape(shape: NDArray[Any]) -> None:
    """Check that *shape* has no negative dimension, and fewer than 2^63 elements.

    Raises:
        ValueError: a dimension is negative, or there are too many elements.
    """
    dims = shape.tolist()
    if min(dims, default=0) < 0 or math.prod(dims) > MOST_ELEMENTS:
        raise ValueError(f"shape is {dims}, expected dimensions from 0, of less than 2^63 elements")


def check_indices(indices: NDArray[Any], count: int, shape: NDArray[Any]) -> None:
    """Check that *indices* are *count* indices within *shape*.

    Raises:
        ValueError: there are not *count* indices of the shape's rank, or an index is out of range.
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


def within_rows(lengths: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers 0 to length - 1 for each of *lengths*, concatenated."""
    if lengths.size == 1:
        return np.arange(int(lengths[0]))
    ends = lengths.cumsum()
    count = int(ends[-1]) if ends.size else 0
    return np.asarray(np.arange(count) - (ends - lengths).repeat(lengths))


def of_rows(
    rows: Sequence[Sequence[Any]], batch: tuple[int, ...], dtype: DTypeLike
) -> list[NDArray[Any]]:
    """Return indices, values of *dtype* and shape of the sparse tensor with *rows*.

    *batch* is the shape of the dimensions before the last.
    """
    lengths = np.array([len(row) for row in rows], np.int64)
    flat = np.arange(lengths.size).repeat(lengths)
    columns = within_rows(lengths)
    indices = np.stack((*np.unravel_index(flat, batch), columns), axis=1) if batch else columns
    values = np.array([value for row in rows for value in row], dtype)
    shape = np.array([*batch, lengths.max(initial=0)], np.int64)
    return [indices.astype(np.int64), values, shape]


def row_order(indices: NDArray[Any]) -> NDArray[np.intp]:
    """Return the order that sorts the rows of *indices*; equal rows keep their order."""
    return np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(len(indices))


def are_rising(indices: NDArray[Any]) -> bool:
    """Whether the rows of *indices* are sorted and none is repeated."""
    steps = np.diff(indices.astype(np.int64), axis=0)
    if not steps.size:
        return True
    first = (steps != 0).argmax(axis=1)
    return bool((steps[np.arange(len(steps)), first] > 0).all())
