"""Places of a sparse constant's stored values in the dense array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.graph.model import DimensionMetadata, Sparsity
from delegraph.operators.tensor import Shape, element_count

Ints = NDArray[np.int64]


def expand(values: NDArray[Any], sparsity: Sparsity, dense: NDArray[Any]) -> None:
    """Write the *values* of a sparse constant to their places in *dense*, and zeros elsewhere.

    *sparsity* tells the places.

    Raises:
        OperatorError: the metadata are inconsistent, or do not fit the shape or the number of
            values.
    """
    places = dense_places(sparsity, dense.shape)
    if len(places) != values.size:
        raise OperatorError(f"{values.size} values stored for {len(places)} places")
    dense.fill(0)
    dense.reshape(-1)[places] = values.reshape(-1)


def dense_places(sparsity: Sparsity, shape: Shape) -> Ints:
    """Return the position in the dense array of each stored value, ``[stored], int64``.

    The stored values form a tree with one level per traversed dimension, then one per block
    dimension. Levels are expanded one after the other, with the coordinates of every node.

    Args:
        sparsity: description of the storage.
        shape: dimensions of the dense array.

    Raises:
        OperatorError: the metadata are inconsistent, or do not fit the shape.

    Source:
        tflite/kernels/internal/utils/sparsity_format_converter.cc, SparseToDense.
    """
    order, levels = sparsity.traversal_order, sparsity.dim_metadata
    rank, blocks = len(shape), sparsity.block_map or ()
    if sorted(order) != list(range(rank + len(blocks))) or len(levels) != len(order):
        raise OperatorError(f"traversal order {order} and {len(levels)} levels for rank {rank}")
    if any(not 0 <= dim < rank for dim in blocks):
        raise OperatorError(f"block map {blocks} names a dimension outside rank {rank}")
    limit = element_count(shape)
    coordinates = np.zeros((len(order), 1), np.int64)  # [dimension, node]
    for dim, level in zip(order, levels, strict=True):
        parents, own = _children(level, coordinates.shape[1], limit)
        coordinates = coordinates[:, parents]
        coordinates[dim] = own
    for block, dim in enumerate(blocks):
        size = levels[order.index(rank + block)].dense_size
        coordinates[dim] = coordinates[dim] * size + coordinates[rank + block]
    return _flat(coordinates[:rank], shape)


def _children(level: DimensionMetadata, nodes: int, limit: int) -> tuple[Ints, Ints]:
    """Return, for all children of *nodes* nodes, the parent's number and the child's coordinate.

    *level* describes the children's dimension; *limit* is the largest number of children allowed.
    """
    if level.array_segments is None or level.array_indices is None:
        count = nodes * level.dense_size
        _check_count(count, limit)
        return np.divmod(np.arange(count), max(level.dense_size, 1))
    segments = level.array_segments.astype(np.int64)
    sizes = np.diff(segments)
    stored = len(level.array_indices)
    if len(segments) != nodes + 1 or segments[0] != 0 or sizes.min(initial=0) < 0:
        raise OperatorError(f"{len(segments)} segment starts for {nodes} rows, expected one more")
    if segments[-1] != stored:
        raise OperatorError(f"segments end at {segments[-1]}, but {stored} indices are stored")
    _check_count(stored, limit)
    return np.repeat(np.arange(nodes), sizes), level.array_indices.astype(np.int64)


def _check_count(count: int, limit: int) -> None:
    if not 0 <= count <= max(limit, 1):
        raise OperatorError(f"sparse metadata describe {count} places in {limit} elements")


def _flat(coordinates: Ints, shape: Shape) -> Ints:
    places: Any = np.zeros(coordinates.shape[1], np.int64)
    for axis, size in enumerate(shape):
        own = coordinates[axis]
        if own.size and not 0 <= own.min() <= own.max() < size:
            raise OperatorError(f"a sparse index is outside dimension {axis} of {list(shape)}")
        places = places * size + own
    result: Ints = places
    return result
