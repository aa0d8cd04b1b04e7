"""Operators on sparse tensors: indices [n, rank], values [n] and a shape [rank]."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import requested_shape, require
from delegraph_flex.numpy_executor.indices import axis_of, check_range, check_rank
from delegraph_flex.numpy_executor.registry import ALL, NUMBERS, operator, step_of
from delegraph_flex.numpy_executor.sparse_parts import (
    MOST_ELEMENTS,
    are_rising,
    check,
    check_indices,
    check_parts,
    check_shape,
    row_order,
)


@operator("SparseToDense")
def sparse_to_dense(node: FlexNode) -> Step:
    """Return a function that makes a dense tensor from values at indices and a default value."""
    validates = node.bool("validate_indices", True)

    def run(
        indices: NDArray[Any], shape: NDArray[Any], values: NDArray[Any], default: NDArray[Any]
    ) -> NDArray[Any]:
        dims = requested_shape(shape, values.dtype)
        where = indices.reshape(-1, 1) if indices.ndim < 2 else indices
        if values.ndim > 1 or (values.ndim and values.size != len(where)):
            raise ValueError(f"{values.shape} values at {len(where)} indices")
        check_indices(where, len(where), shape)
        if validates and not are_rising(where):
            raise ValueError("indices are out of order, or repeated")
        result = np.full(dims, default, values.dtype)
        result[tuple(where.T)] = values
        return result

    return run


@step_of("SparseReshape")
def sparse_reshape(indices: NDArray[Any], shape: NDArray[Any], wanted: NDArray[Any]) -> Any:
    """Return the indices of a sparse tensor in another shape, and this shape.

    One dimension of *wanted* may be -1, which is computed.
    """
    check_indices(indices, indices.shape[0] if indices.ndim else 0, shape)
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


def _resolved(dims: list[int], count: int) -> list[int]:
    """Return *dims* with a -1 replaced, after a check that they have *count* elements."""
    if count > MOST_ELEMENTS:
        raise ValueError("the shape has more elements than an index can tell")
    known = math.prod(dim for dim in dims if dim != -1)
    if dims.count(-1) == 1 and known > 0 and count % known == 0:
        return [count // known if dim == -1 else dim for dim in dims]
    if -1 in dims or min(dims, default=0) < 0 or known != count:
        raise ValueError(f"{count} elements cannot have shape {dims}")
    return dims


@step_of("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any], default: NDArray[Any]
) -> list[NDArray[Any]]:
    """Return a sparse tensor with a default element added to each empty row.

    The outputs are indices, values, a flag for each row, and the new position of each element.
    """
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


@step_of("SparseFillEmptyRowsGrad", types=NUMBERS)
def sparse_fill_empty_rows_gradient(places: NDArray[Any], grad: NDArray[Any]) -> list[Any]:
    """Return the gradients of a sparse tensor's values and of the default.

    The default is the value that was added to empty rows.
    """
    check_rank(grad, 1, "gradient")
    check_rank(places, 1, "reverse_index_map")
    check_range(places, grad.size, "reverse_index_map")
    rest = np.ones(grad.size, np.bool_)
    rest[places] = False
    return [grad[places], np.asarray(grad[rest].sum(), grad.dtype)]


@step_of("SparseReorder")
def sparse_reorder(
    indices: NDArray[Any], values: NDArray[Any], shape: NDArray[Any]
) -> list[NDArray[Any]]:
    """Return indices and values sorted by row."""
    check(indices, values, shape)
    order = row_order(indices)
    return [indices[order], values[order]]


@step_of("SparseSlice")
def sparse_slice(
    indices: NDArray[Any],
    values: NDArray[Any],
    shape: NDArray[Any],
    start: NDArray[Any],
    size: NDArray[Any],
) -> list[NDArray[Any]]:
    """Return a block of a sparse tensor, by start and size.

    The block is cut off at the tensor's end.
    """
    check(indices, values, shape)
    if start.shape != shape.shape or size.shape != shape.shape or (size < 0).any():
        raise ValueError(f"start {start.tolist()}, size {size.tolist()} of {shape.tolist()}")
    made = np.maximum(np.minimum(size, shape - start), 0)
    keep = ((indices >= start) & (indices < start + size)).all(axis=1)
    return [indices[keep] - start, values[keep], made]


@operator("SparseConcat", types=ALL)
def sparse_concat(node: FlexNode) -> Step:
    """Function that concatenates sparse tensors, sorted by index; equal indices keep their order.

    Source:
        SparseConcatOp, core/kernels/sparse_concat_op.cc.
    """
    count, concat_dim = node.int("N"), node.int("concat_dim")
    if count < 2 or len(node.input_types) != 3 * count:
        raise Unsupported(f"N is {count}, expected at least 2, and 3 * N inputs")

    def run(*parts: NDArray[Any]) -> list[NDArray[Any]]:
        tensors = list(
            zip(parts[:count], parts[count : 2 * count], parts[2 * count :], strict=True)
        )
        for indices, values, shape in tensors:
            check_parts(indices, values, shape)
            check_shape(shape)
        axis = axis_of(concat_dim, parts[-1].size, "concat_dim")
        ends = _joined_ends([shape.tolist() for _, _, shape in tensors], axis)
        indices = np.concatenate(parts[:count])
        sizes = [len(values) for _, values, _ in tensors]
        indices[:, axis] += np.repeat(np.array([0, *ends[:-1]], np.int64), sizes)
        order = row_order(indices)
        made = parts[2 * count].copy()
        made[axis] = ends[-1]
        return [indices[order], np.concatenate(parts[count : 2 * count])[order], made]

    return run


def _joined_ends(shapes: list[list[int]], axis: int) -> list[int]:
    """Return the end of each tensor, given by its shape in *shapes*, along the joined *axis*.

    Raises:
        ValueError: other dimensions differ, or the last end exceeds 64 bits.
    """
    others = [shape[:axis] + shape[axis + 1 :] for shape in shapes]
    if any(other != others[0] for other in others):
        raise ValueError(f"shapes {shapes} differ in more than dimension {axis}")
    ends = list(accumulate(shape[axis] for shape in shapes))
    if ends[-1] > MOST_ELEMENTS:
        raise ValueError(f"dimension {axis} of the result is {ends[-1]}, more than 64 bits hold")
    return ends
