"""Scatter: operators that write, add or compare elements or slices at indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import zeros
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import requested_shape
from delegraph_flex.numpy_executor.indices import (
    check_depth,
    check_range,
    check_rank,
    ignores_bad_indices,
    inside,
    places,
)
from delegraph_flex.numpy_executor.registry import operator, step_of

_UPDATES = {
    "TensorScatterAdd": np.add,
    "ScatterNdNonAliasingAdd": np.add,
    "TensorScatterSub": np.subtract,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
}


@operator("ScatterNd")
def scatter_nd(node: FlexNode) -> Step:
    """Return a function that adds updates at indices to zeros of a shape."""
    ignores = ignores_bad_indices(node)

    def run(indices: NDArray[Any], updates: NDArray[Any], shape: NDArray[Any]) -> NDArray[Any]:
        dims = requested_shape(shape, updates.dtype)
        return _scatter(np.add, zeros(dims, updates.dtype), indices, updates, ignores)

    return run


@operator(*_UPDATES)
def tensor_scatter(node: FlexNode) -> Step:
    """Function that returns a copy of a tensor in which updates are combined with some slices.

    The operator's name says how: each update is added or subtracted, or is a maximum or minimum.
    """
    ignores, combine = ignores_bad_indices(node), _UPDATES[node.op]

    def run(tensor: NDArray[Any], indices: NDArray[Any], updates: NDArray[Any]) -> NDArray[Any]:
        return _scatter(combine, tensor, indices, _comparable(updates, combine), ignores)

    return run


@operator("TensorScatterUpdate")
def tensor_scatter_update(node: FlexNode) -> Step:
    """Return a function that returns a copy of a tensor with slices replaced.

    The last of equal indices counts.
    """
    ignores = ignores_bad_indices(node)

    def run(tensor: NDArray[Any], indices: NDArray[Any], updates: NDArray[Any]) -> NDArray[Any]:
        return _scatter(None, tensor, indices, updates, ignores)

    return run


def _comparable(updates: NDArray[Any], combine: np.ufunc) -> NDArray[Any]:
    """Return *updates*; if *combine* is maximum or minimum, NaN becomes a value without effect."""
    if combine not in (np.maximum, np.minimum) or updates.dtype.kind in "iub":
        return updates
    worst = -np.inf if combine is np.maximum else np.inf
    return np.where(np.isnan(updates), updates.dtype.type(worst), updates)


def _scatter(
    combine: np.ufunc | None,
    start: NDArray[Any],
    indices: NDArray[Any],
    updates: NDArray[Any],
    ignores: bool,
) -> NDArray[Any]:
    """Return a copy of *start* with *updates* [..., slice] applied at *indices* [..., n].

    *combine* joins old and new values; None means that new values replace old values. *ignores*
    says whether indices out of range are ignored.
    """
    check_depth(indices, start.ndim)
    depth, result = indices.shape[-1], start.copy()
    expected = indices.shape[:-1] + start.shape[depth:]
    if updates.shape != expected:
        raise ValueError(
            f"updates have shape {list(updates.shape)}, expected {list(expected)} for indices of"
            f" shape {list(indices.shape)} into {list(start.shape)}"
        )
    if not updates.size:
        return result
    if depth == 0:
        raise ValueError("indices have an empty last dimension, expected at least one index")
    where = places(indices, start.shape)
    if where is None:
        good = inside(indices, start.shape, ignores)
        return _scatter(combine, start, indices[good], updates[good], ignores)
    rows = result.reshape(math.prod(start.shape[:depth]), *start.shape[depth:])
    if combine is None:
        rows[where] = updates
    else:
        combine.at(rows, where, updates)
    return result


@operator("InplaceUpdate", "InplaceAdd", "InplaceSub")
def inplace(node: FlexNode) -> Step:
    """Return a function that sets, increases or decreases rows in a copy; indices wrap around."""
    combine = {"InplaceAdd": np.add, "InplaceSub": np.subtract}.get(node.op)

    def run(x: NDArray[Any], i: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        if i.ndim != 1 or not x.ndim or v.shape != (i.size, *x.shape[1:]):
            raise ValueError(
                f"{i.size} rows of shape {list(v.shape)} do not fit into {list(x.shape)}"
            )
        result = x.copy()
        if not len(i):
            return result
        if not len(x):
            raise ValueError("rows are written to a tensor without rows")
        rows = i % len(x)
        if combine is None:
            result[rows] = v
        else:
            combine.at(result, rows, v)
        return result

    return run


@step_of("InvertPermutation")
def invert_permutation(x: NDArray[Any]) -> NDArray[Any]:
    """Return the inverse of the permutation *x*."""
    check_rank(x, 1, "the permutation")
    check_range(x, x.size, "the permutation")
    result = np.full_like(x, -1)
    result[x] = np.arange(x.size, dtype=x.dtype)
    if x.size and result.min() < 0:
        raise ValueError(f"{x.tolist()} is no permutation: a number occurs twice")
    return result
