"""Operators on ragged tensors: values, and row splits (positions at which rows begin and end)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_range, check_rank, scalar
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.sparse_parts import within_rows

_RANGES = {DataType.INT32, DataType.INT64, DataType.FLOAT32, DataType.FLOAT64}


def check_splits(splits: NDArray[Any], count: int) -> None:
    """Check that *splits* are row splits of *count* values.

    Raises:
        ValueError: the splits do not ascend from 0 to *count*.
    """
    if splits.ndim != 1 or not splits.size or splits[0] or splits[-1] != count:
        raise ValueError(f"row splits {splits.reshape(-1)[:9].tolist()} of {count} values")
    if (splits[1:] < splits[:-1]).any():
        raise ValueError("row splits decrease")


def check_nested(nested: Sequence[NDArray[Any]], values: NDArray[Any]) -> None:
    """Check that nested row splits fit each other, and that the innermost splits fit the values.

    Raises:
        ValueError: the splits do not fit.
    """
    counts = [splits.size - 1 for splits in nested[1:]] + [len(values) if values.ndim else 0]
    for splits, count in zip(nested, counts, strict=True):
        check_splits(splits, count)


@operator("RaggedRange", types=_RANGES)
def ragged_range(node: FlexNode) -> Step:
    """Return a function that makes rows of numbers from start to limit: row splits and values."""
    dtype, splits_dtype = node.type("T").dtype, node.type("Tsplits", DataType.INT64).dtype

    def run(*bounds: NDArray[Any]) -> list[NDArray[Any]]:
        rows = {part.size for part in bounds if part.ndim}
        if len(rows) > 1 or any(part.ndim > 1 for part in bounds):
            raise ValueError(
                f"starts, limits, deltas of shapes {[list(part.shape) for part in bounds]},"
                " expected scalars and equally long vectors"
            )
        starts, limits, deltas = (part.reshape(-1) for part in bounds)
        lengths = _lengths(starts, limits, deltas)
        splits = np.zeros(lengths.size + 1, np.int64)
        lengths.cumsum(out=splits[1:])
        require((int(splits[-1]),), np.int64)
        values = within_rows(lengths).astype(dtype)
        if deltas.size != 1 or deltas[0] != 1:
            values = values * _for_each(deltas, lengths)
        return [splits.astype(splits_dtype, copy=False), values + _for_each(starts, lengths)]

    return run


def _for_each(bound: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return each range's value in *bound*, repeated for all elements of the range.

    *lengths* are the numbers of elements of the ranges. If *bound* has a single element, it is
    returned unchanged, since it broadcasts.
    """
    return bound if bound.size == 1 else bound.repeat(lengths)


def _lengths(starts: NDArray[Any], limits: NDArray[Any], deltas: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of elements in each range from *starts* to before *limits* by *deltas*."""
    if (deltas == 0).any():
        raise ValueError("a delta is zero")
    wide: Any = np.int64 if starts.dtype.kind in "iu" else np.float64
    spans, steps = limits.astype(wide) - starts.astype(wide), deltas.astype(wide)
    sizes = -(-spans // steps) if wide is np.int64 else np.ceil(spans / steps)
    if not np.isfinite(sizes).all():
        raise ValueError("a range is not finite")
    return np.asarray(np.maximum(np.minimum(sizes, 1 << 40), 0), np.int64)


@operator("RaggedGather")
def ragged_gather(node: FlexNode) -> Step:
    """Return a function that returns rows of a ragged tensor by index, as row splits and values."""
    rank, out_rank = node.int("PARAMS_RAGGED_RANK"), node.int("OUTPUT_RAGGED_RANK")
    if rank < 1:
        raise Unsupported(f"PARAMS_RAGGED_RANK is {rank}, expected at least 1")

    def run(*inputs: NDArray[Any]) -> list[NDArray[Any]]:
        nested, values, indices = inputs[:rank], inputs[rank], inputs[rank + 1]
        if indices.ndim + rank - 1 != out_rank:
            raise ValueError(f"indices of {indices.ndim} dimensions give no {out_rank} splits")
        check_nested(nested, values)
        check_range(indices, len(nested[0]) - 1)
        dtype = nested[0].dtype
        results = [_even_splits(indices.shape[: i + 2], dtype) for i in range(indices.ndim - 1)]
        rows = indices.reshape(-1).astype(np.intp)
        for splits in nested:
            lengths = splits[rows + 1] - splits[rows]
            ends = np.cumsum(lengths, dtype=np.int64)
            results.append(np.concatenate(([0], ends)).astype(dtype))
            require((int(ends[-1]) if ends.size else 0,), np.intp)
            rows = splits[rows].repeat(lengths) + within_rows(lengths)
        require((len(rows), *values.shape[1:]), values.dtype)
        return [*results[len(results) - out_rank :], values[rows]]

    return run


def _even_splits(shape: Sequence[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return row splits, of *dtype*, for the last of the dense dimensions *shape*."""
    return np.arange(math.prod(shape[:-1]) + 1, dtype=dtype) * shape[-1]


@operator("RaggedTensorToSparse")
def ragged_tensor_to_sparse(node: FlexNode) -> Step:
    """Return a function that converts a ragged tensor to a sparse tensor.

    The outputs are indices, values and shape.
    """
    rank = node.int("RAGGED_RANK")
    if rank < 1:
        raise Unsupported(f"RAGGED_RANK is {rank}, expected at least 1")

    def run(*inputs: NDArray[Any]) -> list[NDArray[Any]]:
        nested, values = inputs[:rank], inputs[rank]
        check_nested(nested, values)
        columns: list[NDArray[Any]] = [np.arange(len(nested[0]) - 1)]
        shape = [len(nested[0]) - 1]
        for splits in nested:
            lengths = np.diff(splits)
            columns = [column.repeat(lengths) for column in columns] + [within_rows(lengths)]
            shape.append(int(lengths.max(initial=0)))
        inner = values.shape[1:]
        size = math.prod(inner)
        require((values.size, len(columns) + len(inner)), np.int64)
        columns = [column.repeat(size) for column in columns]
        columns += [np.tile(index.reshape(-1), len(values)) for index in np.indices(inner)]
        indices = np.stack(columns, axis=1).astype(np.int64)
        return [indices, values.reshape(-1), np.array([*shape, *inner], np.int64)]

    return run


@operator("RaggedTensorToTensor")
def ragged_tensor_to_tensor(node: FlexNode) -> Step:
    """Return a function that converts a ragged tensor to a dense tensor.

    Rows are cut, or filled with a default value.
    """
    kinds = [kind.decode(errors="replace") for kind in node.strings("row_partition_types")]
    has_size = kinds[:1] == ["FIRST_DIM_SIZE"]
    for kind in kinds[has_size:]:
        if kind not in ("ROW_SPLITS", "VALUE_ROWIDS"):
            raise Unsupported(f"row partition {kind!r}, expected 'ROW_SPLITS' or 'VALUE_ROWIDS'")
    if len(kinds) == has_size or (not has_size and kinds[0] == "VALUE_ROWIDS"):
        raise Unsupported(f"row partitions {kinds} leave the number of rows open")

    def run(
        shape: NDArray[Any], values: NDArray[Any], default: NDArray[Any], *parts: NDArray[Any]
    ) -> NDArray[Any]:
        first = scalar(parts[0], "the number of rows") if has_size else parts[0].size - 1
        require((first,), np.int64)
        rows = [
            _row_of_each(part) if kind == "ROW_SPLITS" else part
            for kind, part in zip(kinds[has_size:], parts[has_size:], strict=True)
        ]
        columns = [_places_in_runs(part) for part in rows]
        sizes = _dense_shape(shape, first, columns, values)
        result = np.empty(sizes, values.dtype)
        result[...] = default
        places = np.where(np.arange(first) < sizes[0], np.arange(first), -1)
        for row, column, size in zip(rows, columns, sizes[1:], strict=False):
            check_rank(row, 1, "row partition")
            check_range(row, places.size, "row partition")
            parents = places[row]
            places = np.where((parents >= 0) & (column < size), parents * size + column, -1)
        if not values.ndim or places.size > len(values):
            raise ValueError(f"row partitions of {places.size} values of {list(values.shape)}")
        keep = places >= 0
        inner = result.reshape(math.prod(sizes[: len(rows) + 1]), *values.shape[1:])
        inner[places[keep]] = values[: places.size][keep]
        return result

    return run


def _row_of_each(splits: NDArray[Any]) -> NDArray[np.intp]:
    """Return the row of each value, by the row *splits*."""
    check_rank(splits, 1, "row splits")
    check_splits(splits, int(splits[-1]) if splits.size else 0)
    require((int(splits[-1]),), np.intp)
    return np.arange(splits.size - 1).repeat(np.diff(splits))


def _places_in_runs(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the position of each element of *rows* in its run of equal elements, from 0 on."""
    starts = np.flatnonzero(np.diff(rows, prepend=-1)) if rows.size else np.zeros(0, np.intp)
    return within_rows(np.diff(starts, append=rows.size))


def _dense_shape(
    shape: NDArray[Any], first: int, columns: list[NDArray[Any]], values: NDArray[Any]
) -> tuple[int, ...]:
    """Return *shape*, with -1 replaced by the length of the longest row.

    *first* is the number of outer rows; *columns* has the position of each value in its row, per
    ragged dimension.
    """
    rank = len(columns) + values.ndim
    wanted = shape.tolist() if shape.ndim else [-1] * rank
    widths = [int(column.max(initial=-1)) + 1 for column in columns]
    natural = [first, *widths, *values.shape[1:]]
    if len(wanted) != rank or (shape.ndim == 0 and int(shape) != -1):
        raise ValueError(f"shape {shape.tolist()} for a ragged tensor of {rank} dimensions")
    result = tuple(own if dim == -1 else dim for dim, own in zip(wanted, natural, strict=True))
    if result[len(columns) + 1 :] != values.shape[1:]:
        raise ValueError(f"shape {wanted} for rows of {list(values.shape[1:])}")
    require(result, values.dtype)
    return result
