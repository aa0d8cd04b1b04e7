"""Operations on sets; each row of a tensor is a set."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_rank
from delegraph_flex.numpy_executor.registry import operator
from delegraph_flex.numpy_executor.sparse_parts import of_rows

_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}

Rows = list[set[Any]]


@operator("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToSparseSetOperation")
def set_operation(node: FlexNode) -> Step:
    """Return a function that computes a set operation along the last dimension.

    The result is sparse, sorted.
    """
    combine = _OPERATIONS[node.choice("set_operation", sorted(_OPERATIONS))]
    validates = node.bool("validate_indices", True)
    split = 1 if node.op.startswith("Dense") else 3

    def run(*inputs: NDArray[Any]) -> list[NDArray[Any]]:
        a, a_batch = _rows(inputs[:split], validates)
        b, b_batch = _rows(inputs[split:], validates)
        if a_batch != b_batch:
            raise ValueError(f"sets of shapes {list(a_batch)} and {list(b_batch)}")
        results = [sorted(combine(x, y)) for x, y in zip(a, b, strict=True)]
        return of_rows(results, a_batch, inputs[split // 2].dtype)

    return run


@operator("SetSize")
def set_size(node: FlexNode) -> Step:
    """Function that returns the number of different elements in each set of a sparse tensor."""
    validates = node.bool("validate_indices", True)

    def run(*inputs: NDArray[Any]) -> NDArray[Any]:
        rows, batch = _rows(inputs, validates)
        return np.array([len(row) for row in rows], np.int32).reshape(batch)

    return run


def _rows(parts: Sequence[NDArray[Any]], validates: bool) -> tuple[Rows, tuple[int, ...]]:
    """Return the sets of a dense or sparse tensor, given by its *parts*, and its batch's shape.

    *validates* says whether the indices of a sparse tensor are checked.
    """
    if len(parts) == 1:
        x = parts[0]
        if x.ndim < 2:
            raise ValueError(f"sets have shape {list(x.shape)}, expected two dimensions or more")
        _require_sets(x.shape[:-1])
        flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        return [set(row) for row in flat.tolist()], x.shape[:-1]
    indices, values, shape = parts
    check_rank(shape, 1, "a set's shape")
    check_rank(values, 1, "a set's values")
    dims = tuple(shape.tolist())
    if len(dims) < 2 or indices.shape != (values.size, len(dims)):
        raise ValueError(f"indices of shape {list(indices.shape)} for sets of {list(dims)}")
    _require_sets(dims[:-1])
    if ((indices < 0) | (indices >= shape)).any():
        raise ValueError(f"an index is not inside {list(dims)}")
    rows: Rows = [set() for _ in range(math.prod(dims[:-1]))]
    if values.size:
        places = np.ravel_multi_index(tuple(indices.T[:-1]), dims[:-1])
        if validates and (np.diff(places) < 0).any():
            raise ValueError("indices are not in order")
        for place, value in zip(places.tolist(), values.tolist(), strict=True):
            rows[place].add(value)
    return rows, dims[:-1]


def _require_sets(batch: tuple[int, ...]) -> None:
    require((*batch, sys.getsizeof(set())), np.uint8)
