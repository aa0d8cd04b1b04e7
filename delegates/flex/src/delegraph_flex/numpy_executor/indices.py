"""Checks of indices that are computed during invoke, and therefore untrusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.flex_node import FlexNode


def check_range(indices: NDArray[Any], size: int, name: str = "indices") -> None:
    """Check that all *indices* are in [0, size); *name* is their name in the error.

    Raises:
        ValueError: an index is out of range.
    """
    try:
        np.ravel_multi_index((indices,), (size,))  # the fastest check of a range that NumPy has
    except ValueError:
        if indices.size:
            low, high = int(indices.min()), int(indices.max())
            bad = low if low < 0 else high
            raise ValueError(f"{name}: {bad} is not in [0, {size})") from None


def scalar(value: Any, name: str) -> int:
    """Return *value*, an array with a single element, as an integer; *name* is for the error.

    Raises:
        ValueError: the array has not exactly one element.
    """
    if np.size(value) != 1:
        raise ValueError(f"{name} has {np.size(value)} elements, expected one")
    return int(value) if np.ndim(value) == 0 else int(value.reshape(()))


def check_rank(array: NDArray[Any], rank: int, name: str) -> None:
    """Check that an array has *rank* dimensions; *name* is its name in the error.

    Raises:
        ValueError: the array has another rank.
    """
    if array.ndim != rank:
        raise ValueError(f"{name} has shape {list(array.shape)}, expected {rank} dimensions")


def check_scalar(value: Any, name: str) -> None:
    """Check that *value* has no dimensions; *name* is its name in the error.

    Raises:
        ValueError: the value has dimensions.
    """
    if np.ndim(value):
        raise ValueError(f"{name} has shape {list(np.shape(value))}, expected a scalar")


def check_matrices(x: NDArray[Any]) -> None:
    """Check that *x* is a batch of matrices.

    Raises:
        ValueError: *x* has fewer than two dimensions.
    """
    if x.ndim < 2:
        raise ValueError(f"input has shape {list(x.shape)}, expected matrices")


def axis_of(value: Any, rank: int, name: str = "axis") -> int:
    """Return the axis in *value* as an integer in [0, rank); negative values count from the end.

    *name* names the axis in the error.

    Raises:
        ValueError: the value is no scalar, or no axis of an array with this rank.
    """
    axis = scalar(value, name)
    if not -rank <= axis < rank:
        raise ValueError(f"{name} is {axis}, expected it in [{-rank}, {rank})")
    return axis + rank if axis < 0 else axis


def ignores_bad_indices(node: FlexNode) -> bool:
    """Whether attribute ``bad_indices_policy`` is ``IGNORE``; the default is an error."""
    policies = ("", "DEFAULT", "ERROR", "IGNORE")
    return node.choice("bad_indices_policy", policies, "") == "IGNORE"


def places(indices: NDArray[Any], shape: Sequence[int]) -> NDArray[np.intp] | None:
    """Return the slice number of *shape* that each row of *indices*, ``[..., n]``, selects.

    Slices are numbered in row-major order.

    Args:
        indices: index tuples of n numbers, with n at least 1.
        shape: shape that is indexed; slices have the dimensions after the first n.

    Returns:
        Slice numbers; None if an index is out of range.
    """
    depth = indices.shape[-1]
    columns = tuple(indices[..., i] for i in range(depth))
    try:
        return np.asarray(np.ravel_multi_index(columns, tuple(shape[:depth])))
    except ValueError:
        return None if indices.size else np.zeros(indices.shape[:-1], np.intp)


def inside(indices: NDArray[Any], shape: Sequence[int], ignores: bool) -> NDArray[np.bool_]:
    """Return the mask of the rows of *indices* [..., n] that address a part of *shape*.

    Indices out of range are an error unless *ignores* is true.

    Raises:
        ValueError: an index is out of range, and is not ignored.
    """
    limits = np.array(shape[: indices.shape[-1]], np.int64)
    good = np.asarray(((indices >= 0) & (indices < limits)).all(axis=-1))
    if not ignores:
        bad = indices[~good][0].tolist()
        raise ValueError(f"index {bad} is not inside shape {list(shape)}")
    return good


def check_depth(indices: NDArray[Any], rank: int) -> None:
    """Check that indices [..., n] have at most *rank* components each.

    Raises:
        ValueError: the indices are too long, or have no last dimension.
    """
    if indices.ndim < 1 or indices.shape[-1] > rank:
        raise ValueError(
            f"indices of shape {list(indices.shape)} cannot index into {rank} dimensions"
        )
