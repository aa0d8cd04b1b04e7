"""Sums, products and softmax of sparse tensors: indices [n, rank], values [n], shape [rank]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, widened
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import axis_of, check_rank
from delegraph_flex.numpy_executor.registry import COMPLEX, NUMBERS, SIGNED, operator, step_of
from delegraph_flex.numpy_executor.sparse_parts import (
    are_rising,
    check,
    check_parts,
    check_shape,
    row_order,
)

_ADDED = SIGNED | COMPLEX | {DataType.FLOAT32, DataType.FLOAT64}


@step_of("SparseAdd", types=_ADDED)
def sparse_add(
    a_indices: NDArray[Any],
    a_values: NDArray[Any],
    a_shape: NDArray[Any],
    b_indices: NDArray[Any],
    b_values: NDArray[Any],
    b_shape: NDArray[Any],
    threshold: NDArray[Any],
) -> list[NDArray[Any]]:
    """Return the sum of two sparse tensors; sums smaller than a threshold are dropped.

    Source:
        SparseAddOp, core/kernels/sparse_add_op.cc.
    """
    check_parts(a_indices, a_values, a_shape)
    check_parts(b_indices, b_values, b_shape)
    check_rank(threshold, 0, "thresh")
    if a_shape.tolist() != b_shape.tolist() or not a_shape.size:
        raise ValueError(
            f"shapes are {a_shape.tolist()} and {b_shape.tolist()}, expected the same, not []"
        )
    first, second = _merged(a_indices, b_indices)
    rows = np.where(first >= 0, first, second + len(a_indices))
    values = np.concatenate((a_values, b_values))[rows]
    are_two = (first >= 0) & (second >= 0)
    values[are_two] += b_values[second[are_two]]
    keep = ~are_two | (_magnitude(values) >= threshold)
    indices = np.concatenate((a_indices, b_indices))[rows]
    return [indices[keep], values[keep], a_shape.copy()]


def _merged(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return, for each index of the sum, its row in *a* and its row in *b*; -1 if missing.

    >>> _merged(np.array([[0], [2]]), np.array([[2], [5]]))
    (array([ 0,  1, -1]), array([-1,  0,  1]))
    """
    if not (are_rising(a) and are_rising(b)):
        return _merged_as_they_come(a, b)
    both = np.concatenate((a, b))
    order = row_order(both)
    is_new = np.ones(len(both), np.bool_)
    is_new[1:] = (np.diff(both[order], axis=0) != 0).any(axis=1)
    starts, ends = np.flatnonzero(is_new), np.flatnonzero(np.roll(is_new, -1))
    first, second = order[starts], order[ends] - len(a)
    return np.where(first < len(a), first, -1), np.maximum(second, -1)


def _merged_as_they_come(
    a: NDArray[Any], b: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the result of :func:`_merged` for unsorted or repeated rows, in TensorFlow's order.

    An index that is in both may then have two rows in the sum.
    """
    pairs: list[tuple[int, int]] = []
    left, right = a.tolist(), b.tolist()
    i = j = 0
    while i < len(left) and j < len(right):
        takes_a, takes_b = left[i] <= right[j], right[j] <= left[i]
        pairs.append((i if takes_a else -1, j if takes_b else -1))
        i, j = i + takes_a, j + takes_b
    pairs += [(rest, -1) for rest in range(i, len(left))]
    pairs += [(-1, rest) for rest in range(j, len(right))]
    first, second = np.array(pairs, np.intp).reshape(-1, 2).T
    return first, second


def _magnitude(values: NDArray[Any]) -> NDArray[Any]:
    """Return absolute values without overflow: 128 for INT8 -128, as in C++."""
    is_small = values.dtype in (np.int8, np.int16)
    magnitude: NDArray[Any] = np.abs(values.astype(np.int32) if is_small else values)
    return magnitude


@step_of("SparseSoftmax", types={DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64})
def sparse_softmax(
    indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]
) -> NDArray[Any]:
    """Return the softmax over the stored elements of each row of a sparse tensor.

    Source:
        SparseSoftmaxOp, core/kernels/sparse_softmax_op.cc.
    """
    check_parts(indices, values, shape)
    check_shape(shape)
    if shape.size < 2:
        raise ValueError(f"shape is {shape.tolist()}, expected at least 2 dimensions")
    if not len(values):
        return values.copy()
    order = row_order(indices)
    rows, x = indices[order, :-1], widened(values[order])
    is_new = np.append(True, (np.diff(rows, axis=0) != 0).any(axis=1))
    starts, group = np.flatnonzero(is_new), np.cumsum(is_new) - 1
    powers = np.exp(x - np.maximum.reduceat(x, starts)[group])
    shares: NDArray[Any] = powers * (1 / np.add.reduceat(powers, starts))[group]
    return shares.astype(values.dtype, copy=False)


@operator("SparseTensorDenseMatMul")
def sparse_tensor_dense_matmul(node: FlexNode) -> Step:
    """Return a function that multiplies a sparse by a dense matrix.

    Either matrix may be replaced by its adjoint.
    """
    adjoint_a, adjoint_b = node.bool("adjoint_a", False), node.bool("adjoint_b", False)

    def run(
        indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any], b: NDArray[Any]
    ) -> NDArray[Any]:
        check(indices, values, shape)
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
    """Return a function that sums a sparse tensor over some axes; the result is dense."""
    keeps = node.bool("keep_dims", False)

    def run(
        indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any], axes: NDArray[Any]
    ) -> NDArray[Any]:
        check(indices, values, shape)
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
