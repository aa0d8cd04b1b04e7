"""Operators that return elements or slices by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import zeros
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import SMALL, require
from delegraph_flex.numpy_executor.indices import (
    axis_of,
    check_depth,
    check_range,
    ignores_bad_indices,
    inside,
    places,
)
from delegraph_flex.numpy_executor.registry import operator, step_of


@step_of("Gather")
def gather(params: NDArray[Any], indices: NDArray[Any]) -> Any:
    """Return slices of *params* along the first axis."""
    return _take(params, indices, 0)


@operator("GatherV2")
def gather_v2(node: FlexNode) -> Step:
    """Function that returns slices of its first input along an axis, with batch dimensions."""
    batch_dims = node.int("batch_dims", 0)

    def run(params: NDArray[Any], indices: NDArray[Any], axis: NDArray[Any]) -> Any:
        return _take(params, indices, axis_of(axis, max(params.ndim, 1)))

    def run_in_batches(params: NDArray[Any], indices: NDArray[Any], axis: NDArray[Any]) -> Any:
        batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
        return _take_in_batches(params, indices, axis_of(axis, max(params.ndim, 1)), batch)

    return run_in_batches if batch_dims else run


def _take(params: NDArray[Any], indices: NDArray[Any], axis: int) -> NDArray[Any]:
    if not params.ndim:
        raise ValueError("params is a scalar, expected at least one dimension")
    check_range(indices, params.shape[axis])
    if params.size * indices.size > SMALL:
        require(params.shape[:axis] + indices.shape + params.shape[axis + 1 :], params.dtype)
    return params.take(indices, axis)


def _take_in_batches(
    params: NDArray[Any], indices: NDArray[Any], axis: int, batch: int
) -> NDArray[Any]:
    shape = params.shape
    if not (0 <= batch <= indices.ndim and batch <= axis):
        raise ValueError(
            f"batch_dims is {batch}, expected at most axis {axis} and {indices.ndim} dimensions"
        )
    if shape[:batch] != indices.shape[:batch]:
        raise ValueError(
            f"params {list(shape)} and indices {list(indices.shape)} differ in their first {batch}"
            " dimensions"
        )
    check_range(indices, shape[axis])
    count, last = int(np.prod(shape[:batch])), int(np.prod(shape[axis + 1 :]))
    middle = int(np.prod(shape[batch:axis]))
    blocks = params.reshape(count, middle, shape[axis], last).transpose(0, 2, 1, 3)
    rows = indices.reshape(count, int(np.prod(indices.shape[batch:])))
    require((count, rows.shape[1], middle, last), params.dtype)
    found = blocks[np.arange(count)[:, None], rows]  # [count, indices, middle, last]
    result: NDArray[Any] = found.transpose(0, 2, 1, 3)
    return result.reshape(shape[:axis] + indices.shape[batch:] + shape[axis + 1 :])


@operator("GatherNd")
def gather_nd(node: FlexNode) -> Step:
    """Return a function that returns elements or slices of its first input, by index tuples."""
    ignores = ignores_bad_indices(node)

    def run(params: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
        check_depth(indices, params.ndim)
        depth = indices.shape[-1]
        if depth == 0 or params.size * indices.size > SMALL:
            require(indices.shape[:-1] + params.shape[depth:], params.dtype)
        if depth == 0:
            return np.broadcast_to(params, indices.shape[:-1] + params.shape).copy()
        inner = params.shape[depth:]
        rows = params.reshape(math.prod(params.shape[:depth]), *inner)
        where = places(indices, params.shape)
        if where is not None:
            return rows.take(where, 0)
        good = inside(indices, params.shape, ignores)
        result = zeros(indices.shape[:-1] + inner, params.dtype)
        result[good] = run(params, indices[good])
        return result

    return run


@step_of("UnravelIndex")
def unravel_index(indices: NDArray[Any], dims: NDArray[Any]) -> NDArray[Any]:
    """Return the coordinates of flat positions in an array, ``[dimensions, n]``.

    A negative position gives negative coordinates, as in TensorFlow. Source:
    core/kernels/unravel_index_op.cc.
    """
    if indices.ndim > 1 or dims.ndim != 1 or 0 in dims:
        shapes = f"{list(indices.shape)} in {dims.tolist()}"
        raise ValueError(f"indices of shape {shapes}, expected a vector, and sizes above 0")
    if (indices >= dims.prod(dtype=dims.dtype)).any():
        raise ValueError(f"indices are {indices.tolist()}, expected to lie in {dims.tolist()}")
    require((len(dims), indices.size), dims.dtype)
    spans = np.append(dims[::-1].cumprod(dtype=dims.dtype)[::-1], dims.dtype.type(1))
    spans = spans.reshape((-1,) + (1,) * indices.ndim)
    rest = np.fmod(indices, spans[:-1])
    result: NDArray[Any] = (rest - np.fmod(rest, spans[1:])) // spans[1:]
    return result
