"""Operators on sparse tensors: indices [n, rank], values [n] and a shape [rank]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import requested_shape, require
from delegraph_flex.numpy_executor.indices import axis_of, check_range, check_rank
from delegraph_flex.numpy_executor.registry import NUMBERS, operator


def _check(indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]) -> None:
    """Refuse parts that are no sparse tensor.

    Raises:
        ValueError: their shapes do not go together, or an index is outside.
    """
    check_rank(values, 1, "values")
    _check_indices(indices, values.size, shape)


def _check_indices(indices: NDArray[Any], count: int, shape: NDArray[Any]) -> None:
    """Refuse parts that are no sparse tensor.

    Raises:
        ValueError: their shapes do not go together, or an index is outside.
    """
    if shape.ndim != 1 or indices.shape != (count, shape.size):
        raise ValueError(
            f"indices {list(indices.shape)} and {count} values of a tensor with"
            f" {shape.size} dimensions"
        )
    bad = ((indices < 0) | (indices >= shape)).any(axis=1)
    if bad.any():
        raise ValueError(f"index {indices[bad][0].tolist()} is not inside {shape.tolist()}")


def _order(indices: NDArray[Any]) -> NDArray[np.intp]:
    """Return what sorts indices, row by row; equal ones stay in order."""
    return np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(len(indices))


@operator("SparseToDense")
def sparse_to_dense(node: FlexNode) -> Step:
    """A tensor with values at some indices, and a default everywhere else."""
    validates = node.bool("validate_indices", True)

    def run(
        indices: NDArray[Any], shape: NDArray[Any], values: NDArray[Any], default: NDArray[Any]
    ) -> NDArray[Any]:
        dims = requested_shape(shape, values.dtype)
        where = indices.reshape(-1, 1) if indices.ndim < 2 else indices
        if values.ndim > 1 or (values.ndim and values.size != len(where)):
            raise ValueError(f"{values.shape} values at {len(where)} indices")
        _check_indices(where, len(where), shape)
        if validates:
            _check_rising(where)
        result = np.full(dims, default, values.dtype)
        result[tuple(where.T)] = values
        return result

    return run


def _check_rising(indices: NDArray[Any]) -> None:
    steps = np.diff(indices.astype(np.int64), axis=0)
    if not steps.size:
        return
    first = (steps != 0).argmax(axis=1)
    if (steps[np.arange(len(steps)), first] <= 0).any():
        raise ValueError("indices are out of order, or repeated")


@operator("SparseReshape")
def sparse_reshape(node: FlexNode) -> Step:
    """The indices of a sparse tensor in another shape, and that shape; one may be -1."""

    def run(indices: NDArray[Any], shape: NDArray[Any], wanted: NDArray[Any]) -> Any:
        _check_indices(indices, indices.shape[0] if indices.ndim else 0, shape)
        check_rank(wanted, 1, "new_shape")
        dims = _resolved(wanted.tolist(), math.prod(shape.tolist()))
        places = np.zeros(len(indices), np.int64)
        for column, size in zip(indices.T, shape.tolist(), strict=True):
            places = places * size + column
        columns = []
        for size in reversed(dims):
            columns.append(places % max(size, 1))
            places = places // max(size, 1)
        result = np.array(columns[::-1], np.int64).reshape(len(dims), len(indices))
        return [np.ascontiguousarray(result.T), np.array(dims, np.int64)]

    return run


def _resolved(dims: list[int], count: int) -> list[int]:
    """Return dimensions of *count* elements, one of which may be -1."""
    if count >= 1 << 63:
        raise ValueError("the shape has more elements than an index can tell")
    known = math.prod(dim for dim in dims if dim != -1)
    if dims.count(-1) == 1 and known > 0 and count % known == 0:
        return [count // known if dim == -1 else dim for dim in dims]
    if -1 in dims or min(dims, default=0) < 0 or known != count:
        raise ValueError(f"{count} elements cannot have shape {dims}")
    return dims


@operator("SparseFillEmptyRows")
def sparse_fill_empty_rows(node: FlexNode) -> Step:
    """Rows without an element get one; indices, values, which rows, where elements went."""

    def run(
        indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any], default: NDArray[Any]
    ) -> list[NDArray[Any]]:
        check_rank(shape, 1, "dense_shape")
        if not shape.size or indices.shape != (values.size, shape.size):
            raise ValueError(f"indices {list(indices.shape)} in {shape.size} dimensions")
        count = int(shape[0])
        require((count, shape.size), np.int64)
        check_range(indices[:, 0], count, "rows")
        is_empty = np.ones(count, np.bool_)
        is_empty[indices[:, 0]] = False
        added = np.zeros((int(is_empty.sum()), shape.size), np.int64)
        added[:, 0] = np.flatnonzero(is_empty)
        every = np.concatenate((indices, added))
        order = every[:, 0].argsort(kind="stable")
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        filled = np.concatenate((values, np.full(len(added), default, values.dtype)))
        return [every[order], filled[order], is_empty, places[: values.size]]

    return run


@operator("SparseFillEmptyRowsGrad", types=NUMBERS)
def sparse_fill_empty_rows_gradient(node: FlexNode) -> Step:
    """The gradients of the values, and of the default."""

    def run(places: NDArray[Any], grad: NDArray[Any]) -> list[Any]:
        check_rank(grad, 1, "gradient")
        check_rank(places, 1, "reverse_index_map")
        check_range(places, grad.size, "reverse_index_map")
        rest = np.ones(grad.size, np.bool_)
        rest[places] = False
        return [grad[places], np.asarray(grad[rest].sum(), grad.dtype)]

    return run


@operator("SparseReorder")
def sparse_reorder(node: FlexNode) -> Step:
    """Indices and values, row by row."""

    def run(indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]) -> list[NDArray[Any]]:
        _check(indices, values, shape)
        order = _order(indices)
        return [indices[order], values[order]]

    return run


@operator("SparseSlice")
def sparse_slice(node: FlexNode) -> Step:
    """The part of a sparse tensor from a start, of a size or as much as there is."""

    def run(
        indices: NDArray[Any],
        values: NDArray[Any],
        shape: NDArray[Any],
        start: NDArray[Any],
        size: NDArray[Any],
    ) -> list[NDArray[Any]]:
        _check(indices, values, shape)
        if start.shape != shape.shape or size.shape != shape.shape or (size < 0).any():
            raise ValueError(f"start {start.tolist()}, size {size.tolist()} of {shape.tolist()}")
        made = np.maximum(np.minimum(size, shape - start), 0)
        keep = ((indices >= start) & (indices < start + size)).all(axis=1)
        return [indices[keep] - start, values[keep], made]

    return run


@operator("SparseAdd", types=NUMBERS)
def sparse_add(node: FlexNode) -> Step:
    """The sum of two sparse tensors; what adds up to less than a threshold is left out."""

    def run(
        a_indices: NDArray[Any],
        a_values: NDArray[Any],
        a_shape: NDArray[Any],
        b_indices: NDArray[Any],
        b_values: NDArray[Any],
        b_shape: NDArray[Any],
        threshold: NDArray[Any],
    ) -> list[NDArray[Any]]:
        _check(a_indices, a_values, a_shape)
        _check(b_indices, b_values, b_shape)
        if a_shape.tolist() != b_shape.tolist():
            raise ValueError(f"shapes {a_shape.tolist()} and {b_shape.tolist()} differ")
        indices = np.concatenate((a_indices, b_indices))
        order = _order(indices)
        indices, values = indices[order], np.concatenate((a_values, b_values))[order]
        steps = (np.diff(indices, axis=0) != 0).any(axis=1)
        starts = np.flatnonzero(np.concatenate(([True], steps))) if len(indices) else order
        if len(indices):
            values = np.add.reduceat(values, starts, dtype=values.dtype)
        is_alone = np.diff(starts, append=len(indices)) == 1
        keep = is_alone | (np.abs(values) >= threshold)
        return [indices[starts][keep], values[keep], a_shape.copy()]

    return run


@operator("SparseTensorDenseMatMul")
def sparse_tensor_dense_matmul(node: FlexNode) -> Step:
    """The product of a sparse matrix and a dense one, or of their adjoints."""
    adjoint_a, adjoint_b = node.bool("adjoint_a", False), node.bool("adjoint_b", False)

    def run(
        indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any], b: NDArray[Any]
    ) -> NDArray[Any]:
        _check(indices, values, shape)
        if shape.size != 2 or b.ndim != 2:
            raise ValueError(f"{shape.tolist()} times {list(b.shape)}, expected two matrices")
        right = b.conj().T if adjoint_b else b
        rows, columns = indices[:, ::-1].T if adjoint_a else indices.T
        height, width = shape.tolist()[::-1] if adjoint_a else shape.tolist()
        if width != len(right):
            raise ValueError(f"[{height}, {width}] times {list(right.shape)}")
        wide = np.float32 if values.dtype.itemsize == 2 else values.dtype
        require((height, right.shape[1]), wide)
        require((len(values), right.shape[1]), wide)
        result = np.zeros((height, right.shape[1]), wide)
        factors = (values.conj() if adjoint_a else values).astype(wide)
        np.add.at(result, rows, factors[:, None] * right[columns].astype(wide))
        return result.astype(values.dtype, copy=False)

    return run


@operator("SparseReduceSum", types=NUMBERS - {DataType.BFLOAT16, DataType.FLOAT16})
def sparse_reduce_sum(node: FlexNode) -> Step:
    """The dense sum of a sparse tensor over some axes."""
    keeps = node.bool("keep_dims", False)

    def run(
        indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any], axes: NDArray[Any]
    ) -> NDArray[Any]:
        _check(indices, values, shape)
        rank = shape.size
        summed = {axis_of(axis, rank) for axis in axes.reshape(-1).tolist()}
        kept = [axis for axis in range(rank) if axis not in summed]
        dims = tuple(int(shape[axis]) for axis in kept)
        require(dims, values.dtype)
        result = np.zeros(dims, values.dtype)
        if kept:
            np.add.at(result, tuple(indices[:, axis] for axis in kept), values)
        else:
            result[...] = values.sum(dtype=values.dtype)
        if keeps:
            result = result.reshape([1 if i in summed else int(shape[i]) for i in range(rank)])
        return result

    return run
