"""Operators that count how often numbers occur."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_range, check_rank, scalar
from delegraph_flex.numpy_executor.operators.ragged import check_splits
from delegraph_flex.numpy_executor.registry import operator

_TYPES = {DataType.INT32, DataType.INT64, DataType.FLOAT32, DataType.FLOAT64}


@operator("Bincount", types=_TYPES)
def bincount(node: FlexNode) -> Step:
    """Function that counts each number in [0, size), or sums the weights of its occurrences."""
    bins = _bins(node)

    def run(values: NDArray[Any], size: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        return bins(np.zeros(values.size, np.intp), values, 1, size, weights).reshape(-1)

    return run


@operator("DenseBincount", types=_TYPES)
def dense_bincount(node: FlexNode) -> Step:
    """Function that counts each number in [0, size), in a vector or in each row of a matrix."""
    bins = _bins(node)

    def run(values: NDArray[Any], size: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
        if values.ndim > 2:
            raise ValueError(f"input has shape {list(values.shape)}, expected a vector or matrix")
        count = len(values) if values.ndim == 2 else 1
        rows = np.arange(count).repeat(values.shape[-1] if values.ndim else 1)
        made = bins(rows, values, count, size, weights)
        return made if values.ndim == 2 else made[0]

    return run


@operator("SparseBincount", types=_TYPES)
def sparse_bincount(node: FlexNode) -> Step:
    """Function that counts each number in [0, size), in a sparse vector or in rows of a matrix."""
    bins = _bins(node)

    def run(
        indices: NDArray[Any],
        values: NDArray[Any],
        shape: NDArray[Any],
        size: NDArray[Any],
        weights: NDArray[Any],
    ) -> NDArray[Any]:
        check_rank(shape, 1, "dense_shape")
        rank = shape.size
        if rank not in (1, 2) or indices.shape != (values.size, rank):
            raise ValueError(
                f"indices have shape {list(indices.shape)} for {values.size} values in {rank}"
                " dimensions, expected one or two"
            )
        count = int(shape[0]) if rank == 2 else 1
        rows = indices[:, 0] if rank == 2 else np.zeros(values.size, np.intp)
        check_range(rows, count)
        made = bins(rows, values, count, size, weights)
        return made if rank == 2 else made[0]

    return run


@operator("RaggedBincount", types=_TYPES)
def ragged_bincount(node: FlexNode) -> Step:
    """Return a function that counts each number in [0, size), in each row of a ragged matrix."""
    bins = _bins(node)

    def run(
        splits: NDArray[Any], values: NDArray[Any], size: NDArray[Any], weights: NDArray[Any]
    ) -> NDArray[Any]:
        check_splits(splits, values.size)
        lengths = np.diff(splits)
        rows = np.arange(lengths.size).repeat(lengths)
        return bins(rows, values, lengths.size, size, weights)

    return run


def _bins(node: FlexNode) -> Callable[..., NDArray[Any]]:
    """Return the function that counts each value in each row, ``[count, size]``.

    It takes the row of each value, the values, the number of rows, the size and the weights. Values
    of *size* and more are ignored. Weights, if there are any, are summed; if the output is binary,
    a count is at most 1.
    """
    dtype, is_binary = node.type("T").dtype, node.bool("binary_output", False)

    def run(
        rows: NDArray[Any],
        values: NDArray[Any],
        count: int,
        bound: NDArray[Any],
        weights: NDArray[Any],
    ) -> NDArray[Any]:
        size, flat = scalar(bound, "size"), values.reshape(-1)
        require((count, size), np.int64)
        if flat.size and flat.min() < 0:
            raise ValueError(f"input has {flat.min()}, expected no negative number")
        if weights.size and weights.size != flat.size:
            raise ValueError(f"{weights.size} weights for {flat.size} values")
        keep = flat < size
        where = rows[keep] * size + flat[keep]
        result = np.zeros(count * size, dtype)
        if is_binary:
            result[where] = 1
        elif weights.size:
            np.add.at(result, where, weights.reshape(-1)[keep])
        else:
            result += np.bincount(where, minlength=count * size).astype(dtype)
        return result.reshape(count, size)

    return run


@operator("HistogramFixedWidth", types=_TYPES)
def histogram_fixed_width(node: FlexNode) -> Step:
    """Function that counts values in bins of equal width; values outside count in the end bins."""
    dtype = node.type("dtype", DataType.INT32).dtype

    def run(values: NDArray[Any], limits: NDArray[Any], count: NDArray[Any]) -> NDArray[Any]:
        bins = scalar(count, "nbins")
        if bins <= 0 or limits.shape != (2,) or not limits[0] < limits[1]:
            raise ValueError(f"{bins} bins in {limits.tolist()}, expected some in a rising range")
        require((bins,), np.int64)
        flat = values.reshape(-1)
        if np.isnan(flat).any():
            raise ValueError("values have NaN, which is in no bin")
        width = float(limits[1] - limits[0]) / bins
        offsets = (np.maximum(flat, limits[0]) - limits[0]).astype(np.float64) / width
        places = np.minimum(offsets, bins - 1).astype(np.intp)
        return np.bincount(places, minlength=bins).astype(dtype)

    return run
