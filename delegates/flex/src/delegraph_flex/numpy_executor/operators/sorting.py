"""Operators that sort numbers, or find positions in sorted numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, widened
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.indices import scalar
from delegraph_flex.numpy_executor.registry import REAL, functions, operator


@operator("TopK", types=REAL)
def top_k(node: FlexNode) -> Step:
    """Function that returns the k largest numbers of each row, descending, and their positions.

    Equal numbers keep their order.
    """
    k = node.int("k")
    return lambda x: _largest(x, k, np.dtype(np.int32))


@operator("TopKV2", types=REAL)
def top_k_v2(node: FlexNode) -> Step:
    """Function that returns the k largest numbers of each row and their positions; k is an input.

    The order is descending, even with ``sorted`` false, for which TensorFlow defines no order.
    """
    dtype = node.type("index_type", DataType.INT32).dtype
    return lambda x, k: _largest(x, scalar(k, "k"), dtype)


_LONG = 256
"""Row length above which the largest numbers are found before they are sorted."""


def _largest(x: NDArray[Any], k: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if not x.ndim or not 0 <= k <= x.shape[-1]:
        raise ValueError(f"the {k} largest of an input of shape {list(x.shape)}")
    falling = _falling(x)
    if x.shape[-1] > _LONG and 0 < k < x.shape[-1] // 8:
        order = _first_of_many(falling, k)
    else:
        order = falling.argsort(axis=-1, kind="stable")[..., :k]
    if x.ndim == 1:
        return x[order], order.astype(dtype)
    count = math.prod(x.shape[:-1])
    rows, columns = x.reshape(count, x.shape[-1]), order.reshape(count, k)
    values = rows[np.arange(count)[:, None], columns]
    return values.reshape(order.shape), order.astype(dtype)


def _falling(x: NDArray[Any]) -> NDArray[Any]:
    """Return numbers whose ascending order is the descending order of *x*."""
    if x.dtype.kind in "iu":
        return ~x
    return -widened(x)


def _first_of_many(x: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Return the positions of the *k* smallest numbers in each long row of *x*, in stable order."""
    rows = x.reshape(-1, x.shape[-1])
    result = np.empty((len(rows), k), np.intp)
    for row, places in zip(rows, result, strict=True):
        limit = np.partition(row, k - 1)[k - 1]
        some = np.flatnonzero(row <= limit) if limit == limit else np.arange(row.size)
        places[:] = some[row[some].argsort(kind="stable")[:k]]
    return result.reshape(*x.shape[:-1], k)


@operator("NthElement", types=REAL)
def nth_element(node: FlexNode) -> Step:
    """Return a function that returns the n-th smallest or n-th largest number of each row."""
    is_reverse = node.bool("reverse", False)

    def run(x: NDArray[Any], n: NDArray[Any]) -> NDArray[Any]:
        place = scalar(n, "n")
        if not x.ndim or not 0 <= place < x.shape[-1]:
            raise ValueError(f"element {place} of an input of shape {list(x.shape)}")
        ordered = np.sort(x, axis=-1)
        return ordered[..., x.shape[-1] - 1 - place if is_reverse else place].copy()

    return run


@operator("InTopK")
def in_top_k(node: FlexNode) -> Step:
    """Return a function that tells whether each row's target is among its k best predictions."""
    k = node.int("k")
    return lambda predictions, targets: _is_among(predictions, targets, k)


functions({"InTopKV2": lambda x, targets, k: _is_among(x, targets, scalar(k, "k"))})


def _is_among(predictions: NDArray[Any], targets: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """Return, for each row of *predictions*, whether the class in *targets* is among the top k.

    This holds if fewer than *k* predictions of the row exceed the target's prediction. The result
    is False for invalid values.
    """
    if predictions.ndim != 2 or targets.shape != predictions.shape[:1]:
        raise ValueError(
            f"predictions {list(predictions.shape)} and targets {list(targets.shape)}, expected"
            " [rows, classes] and [rows]"
        )
    classes = predictions.shape[1]
    if not classes:
        return np.zeros(targets.shape, np.bool_)
    known = (targets >= 0) & (targets < classes)
    chosen = predictions[np.arange(targets.size), np.where(known, targets, 0)]
    larger = (predictions > chosen[:, None]).sum(axis=1)
    return np.asarray(known & np.isfinite(predictions).all(axis=1) & (larger < k))


@operator("LowerBound", "UpperBound")
def bound(node: FlexNode) -> Step:
    """Return a function that finds the insertion positions of values in sorted rows.

    The positions are before or after equal numbers, depending on the operator.
    """
    side: Any = "left" if node.op == "LowerBound" else "right"
    dtype = node.type("out_type", DataType.INT32).dtype

    def run(ordered: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
        if ordered.ndim != 2 or values.ndim != 2 or len(ordered) != len(values):
            raise ValueError(
                f"{list(ordered.shape)} and {list(values.shape)}, expected as many rows in both"
            )
        result = np.empty(values.shape, dtype)
        for row, places, wanted in zip(ordered, result, values, strict=True):
            places[:] = row.searchsorted(wanted, side)
        return result

    return run


@operator("IsotonicRegression")
def isotonic_regression(node: FlexNode) -> Step:
    """Return a function for the nonincreasing numbers nearest to each row.

    Nearest means the smallest sum of squared differences. The second output has the number of the
    run of equal numbers to which each number belongs.

    Source: core/kernels/isotonic_regression_op.cc.
    """
    type, result = node.type("T"), node.type("output_dtype", DataType.FLOAT32)
    if type not in REAL or result not in REAL:
        raise Unsupported(f"IsotonicRegression of {type.name} as {result.name}", "dtype")

    def run(x: NDArray[Any]) -> list[NDArray[Any]]:
        y, stretches = np.empty(x.shape, result.dtype), np.empty(x.shape, np.int32)
        rows = x.reshape(-1, x.shape[-1] if x.ndim else 1) if x.size else ()
        for i, row in enumerate(rows):
            sums, counts = _falling_stretches(row.astype(result.dtype).tolist())
            y.reshape(len(rows), -1)[i] = np.repeat(np.divide(sums, counts), counts)
            stretches.reshape(len(rows), -1)[i] = np.repeat(np.arange(len(counts)), counts)
        return [y, stretches]

    return run


def _falling_stretches(row: list[float]) -> tuple[list[float], list[int]]:
    """Return sums and counts of runs of neighbours in *row*, merged until their means decrease.

    >>> _falling_stretches([3, 1, 2])
    ([3, 3], [1, 2])
    """
    sums: list[float] = []
    counts: list[int] = []
    for value in row:
        sums.append(value)
        counts.append(1)
        while len(sums) > 1 and sums[-1] * counts[-2] > sums[-2] * counts[-1]:
            sums[-2:] = [sums[-2] + sums[-1]]
            counts[-2:] = [counts[-2] + counts[-1]]
    return sums, counts
