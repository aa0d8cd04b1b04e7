"""Operators that reduce the rows of each segment to one row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import finfo
from numpy.typing import NDArray

from delegraph_flex.data_types import widened
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_range, scalar
from delegraph_flex.numpy_executor.operators.strings import joiner
from delegraph_flex.numpy_executor.registry import NUMBERS, REAL, operator

Scale = Callable[[NDArray[Any]], NDArray[Any]]
"""Function that converts the numbers of rows of segments to divisors of their sums."""

_SCALES: dict[str, Scale | None] = {"Sum": None, "Mean": np.asarray, "SqrtN": np.sqrt}


_MANY = 1 << 14
"""Number of elements from which on rows are sorted by segment before they are combined."""


@operator("SegmentSum", "SegmentProd", "SegmentMean", types=NUMBERS)
@operator("SegmentMax", "SegmentMin", types=REAL)
def segment(node: FlexNode) -> Step:
    """Return a function that reduces each segment, a run of rows with equal ascending ids."""
    kind = node.op.removeprefix("Segment")
    reduce = {"Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}.get(kind, np.add)
    is_mean, empty = kind == "Mean", 1 if kind == "Prod" else 0

    def run(data: NDArray[Any], ids: NDArray[Any]) -> NDArray[Any]:
        _check_rows(data, ids)
        result = _filled(data, int(ids[-1]) + 1 if ids.size else 0, empty)
        if ids.size:
            starts = _starts(ids)
            reduced = _reduced(reduce, data, starts)
            if is_mean:
                reduced = _divided(reduced, _counts(starts, ids.size))
            result[ids[starts]] = reduced
        return result

    return run


def _check_rows(data: NDArray[Any], ids: NDArray[Any]) -> None:
    if ids.ndim != 1 or data.ndim < 1 or len(data) != len(ids):
        raise ValueError(
            f"segment ids of shape {list(ids.shape)}, expected one for each row of"
            f" {list(data.shape)}"
        )


def _starts(ids: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of the first row of each segment.

    Raises:
        ValueError: segment ids decrease, or are negative.
    """
    steps = ids[1:] - ids[:-1]
    if ids[0] < 0 or (steps < 0).any():
        raise ValueError("segment ids are not increasing from zero or more")
    return np.concatenate(([0], np.flatnonzero(steps) + 1))


def _reduced(reduce: np.ufunc, data: NDArray[Any], starts: NDArray[np.intp]) -> NDArray[Any]:
    """Return each segment of *data* reduced to a row by *reduce*; *starts* has the first rows.

    ``reduceat`` is not used, as it is slow on long rows.
    """
    if data.ndim == 1 or data.size < 128 * starts.size:
        made: NDArray[Any] = reduce.reduceat(data, starts, axis=0, dtype=data.dtype)
        return made
    result = np.empty((starts.size, *data.shape[1:]), data.dtype)
    bounds = [*starts.tolist(), len(data)]
    for row, begin, end in zip(result, bounds, bounds[1:], strict=False):
        reduce.reduce(data[begin:end], axis=0, dtype=data.dtype, out=row)
    return result


def _counts(starts: NDArray[np.intp], end: int) -> NDArray[np.intp]:
    """Return the number of rows in each segment, given the first rows *starts* and the *end*."""
    counts = np.empty_like(starts)
    counts[:-1], counts[-1] = starts[1:] - starts[:-1], end - starts[-1]
    return counts


def _filled(data: NDArray[Any], rows: int, value: Any) -> NDArray[Any]:
    shape = (rows, *data.shape[1:])
    require(shape, data.dtype)
    return np.full(shape, value, data.dtype) if value else np.zeros(shape, data.dtype)


def _divided(sums: NDArray[Any], by: NDArray[Any]) -> NDArray[Any]:
    """Return sums / by, in the type of the sums; integers are truncated towards zero."""
    divisor = by.reshape(-1, *[1] * (sums.ndim - 1))
    if sums.dtype.kind in "iu":
        signs = np.sign(sums)
        return np.asarray((sums * signs // divisor.astype(sums.dtype)) * signs)
    return np.asarray(sums / divisor.astype(sums.dtype), sums.dtype)


@operator("UnsortedSegmentSum", "UnsortedSegmentProd", types=NUMBERS)
@operator("UnsortedSegmentMax", "UnsortedSegmentMin", types=REAL)
def unsorted_segment(node: FlexNode) -> Step:
    """Function that reduces the rows of each segment; rows with a negative segment are dropped."""
    kind, dtype = node.op.removeprefix("UnsortedSegment"), node.type("T").dtype
    combine, start = {
        "Sum": (np.add, 0),
        "Prod": (np.multiply, 1),
        "Max": (np.maximum, _extreme(dtype, "min")),
        "Min": (np.minimum, _extreme(dtype, "max")),
    }[kind]

    def run(data: NDArray[Any], ids: NDArray[Any], count: NDArray[Any]) -> NDArray[Any]:
        if data.shape[: ids.ndim] != ids.shape:
            raise ValueError(
                f"segment ids have shape {list(ids.shape)}, expected the beginning of"
                f" {list(data.shape)}"
            )
        inner = data.shape[ids.ndim :]
        shape = (scalar(count, "num_segments"), *inner)
        require(shape, data.dtype)
        result = np.full(shape, start, data.dtype)
        rows, where = data.reshape(ids.size, *inner), ids.reshape(-1)
        if where.size and where.min() < 0:
            rows, where = rows[where >= 0], where[where >= 0]
        check_range(where, shape[0], "segment ids")
        if rows.ndim == 1 or rows.size < _MANY:
            combine.at(result, where, rows)
        elif where.size:
            order = where.argsort(kind="stable")
            ordered = where[order]
            starts = _starts(ordered)
            found = ordered[starts]
            result[found] = combine(result[found], _reduced(combine, rows[order], starts))
        return result

    return run


@operator("UnsortedSegmentJoin")
def unsorted_segment_join(node: FlexNode) -> Step:
    """Return a function that joins the strings of each segment, in order."""
    separator = node.bytes("separator", b"")

    def run(data: NDArray[Any], ids: NDArray[Any], count: NDArray[Any]) -> NDArray[Any]:
        if data.shape[: ids.ndim] != ids.shape:
            raise ValueError(
                f"segment ids have shape {list(ids.shape)}, expected the beginning of"
                f" {list(data.shape)}"
            )
        inner = data.shape[ids.ndim :]
        segments, width = scalar(count, "num_segments"), math.prod(inner)
        require((segments, *inner), object)
        parts: dict[tuple[int, int], list[bytes]] = {}
        where = ids.reshape(-1)
        check_range(where, segments, "segment ids")
        for segment, row in zip(where.tolist(), data.reshape(ids.size, width), strict=True):
            for column, value in enumerate(row.tolist()):
                parts.setdefault((segment, column), []).append(value)
        result = np.full((segments, width), b"", object)
        joined = joiner(separator)
        for (segment, column), values in parts.items():
            result[segment, column] = joined(values)
        return result.reshape(segments, *inner)

    return run


def _extreme(dtype: np.dtype[Any], which: str) -> Any:
    """Return the least or greatest finite number of *dtype*; *which* is ``"min"`` or ``"max"``."""
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), which)
    if dtype.kind == "c":
        return 0
    return getattr(finfo(dtype), which)  # type: ignore[no-untyped-call] # it has no annotations


@operator(
    *(f"SparseSegment{kind}{ending}" for kind in _SCALES for ending in ("", "WithNumSegments"))
)
def sparse_segment(node: FlexNode) -> Step:
    """Function that sums or averages selected rows per segment, or divides sums by sqrt(n)."""
    kind = node.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    scale = _SCALES[kind]

    def run(
        data: NDArray[Any], indices: NDArray[Any], ids: NDArray[Any], *count: NDArray[Any]
    ) -> NDArray[Any]:
        if data.ndim < 1 or ids.ndim != 1 or indices.shape != ids.shape:
            raise ValueError(
                f"indices {list(indices.shape)} and segment ids {list(ids.shape)} of rows of"
                f" {list(data.shape)}, expected two equally long vectors"
            )
        needed = int(ids[-1]) + 1 if ids.size else 0
        rows = scalar(count[0], "num_segments") if count else needed
        if rows < needed:
            raise ValueError(f"segment ids reach {needed - 1}, expected less than {rows}")
        result = _filled(data, rows, 0)
        if ids.size:
            check_range(indices, len(data))
            require((len(indices), *data.shape[1:]), data.dtype)
            starts = _starts(ids)
            sums = _reduced(np.add, widened(data[indices]), starts)
            if scale is not None:
                sums = _divided(sums, scale(_counts(starts, ids.size)))
            result[ids[starts]] = sums.astype(data.dtype)
        return result

    return run


@operator(*(f"SparseSegment{kind}Grad" for kind in _SCALES))
def sparse_segment_gradient(node: FlexNode) -> Step:
    """Return a function for the gradient of a sparse segment reduction with respect to its data."""
    scale = _SCALES[node.op.removeprefix("SparseSegment").removesuffix("Grad")]

    def run(
        grad: NDArray[Any], indices: NDArray[Any], ids: NDArray[Any], rows: NDArray[Any]
    ) -> NDArray[Any]:
        result = widened(_filled(grad, scalar(rows, "output_dim0"), 0))
        check_range(indices, len(result))
        check_range(ids, len(grad), "segment ids")
        if ids.ndim != 1 or indices.shape != ids.shape:
            raise ValueError(f"{list(indices.shape)} indices and {list(ids.shape)} segment ids")
        require((len(ids), *grad.shape[1:]), result.dtype)
        terms = widened(grad)
        if scale is not None:
            counts = np.maximum(np.bincount(ids, minlength=len(grad)), 1)
            terms = _divided(terms, scale(counts))
        np.add.at(result, indices, terms[ids])
        return result.astype(grad.dtype)

    return run
