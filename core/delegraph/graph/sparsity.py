"""Storage order of a sparse constant, and the positions of its values in the dense array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class DimensionMetadata:
    """Storage format of one dimension of a sparse tensor.

    Attributes:
        dense_size: length of a dense dimension; 0 for a sparse (CSR) dimension.
        array_segments: CSR row starts, ``[rows + 1], int32``; None for a dense dimension.
        array_indices: CSR column indices, ``[stored], int32``; None for a dense dimension.
    """

    dense_size: int
    array_segments: NDArray[np.int32] | None = None
    array_indices: NDArray[np.int32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Sparsity:
    """Storage order of a sparse constant. Source: ``SparsityParameters`` of the schema.

    Attributes:
        traversal_order: dimensions in the order of storage; block dimensions come last.
        block_map: dimension that each block dimension divides; None if the file has no block map.
        dim_metadata: storage format of each dimension, in traversal order.
    """

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...] | None
    dim_metadata: tuple[DimensionMetadata, ...]


def expand(values: NDArray[Any], sparsity: Sparsity, dense: NDArray[Any]) -> None:
    """Write the *values* of a sparse constant to their positions in *dense*, zeros elsewhere.

    *sparsity* defines the positions.

    Raises:
        OperatorError: the metadata are inconsistent, or do not fit the shape or the number of
            values.
    """
    places = dense_places(sparsity, dense.shape)
    if len(places) != values.size:
        raise OperatorError(f"{values.size} values stored for {len(places)} places")
    dense.fill(0)
    dense.reshape(-1)[places] = values.reshape(-1)


def expanded(
    values: NDArray[Any], sparsity: Sparsity, shape: tuple[int, ...], spare: int = 0
) -> NDArray[Any]:
    """Return the *values* of a sparse constant as a new dense array of *shape*.

    Args:
        values: ``[N]``, of any dtype.
        sparsity: description of the storage.
        shape: dimensions of the result.
        spare: number of values that may be unused at the end, as in packed bytes.

    Raises:
        OperatorError: *sparsity* is inconsistent or does not fit, or there is not enough memory.
    """
    described = (level.array_segments for level in sparsity.dim_metadata)
    limit = values.size + sum(len(segments) for segments in described if segments is not None)
    places = dense_places(sparsity, shape, limit)
    if not 0 <= values.size - len(places) <= spare:
        raise OperatorError(f"{values.size} values stored for {len(places)} places")
    try:
        dense = np.zeros(shape, values.dtype)  # memory is used only where values are written
    except (MemoryError, ValueError) as error:  # NumPy has limits of its own
        raise OperatorError(f"there is no memory for shape {list(shape)}") from error
    dense.reshape(-1)[places] = values[: len(places)]
    return dense


def dense_places(sparsity: Sparsity, shape: tuple[int, ...], limit: int | None = None) -> Ints:
    """Return the position in the dense array of each stored value, ``[stored], int64``.

    The stored values form a tree with one level per traversed dimension, then one per block
    dimension. Levels are expanded one after the other, with the coordinates of every node.

    Args:
        sparsity: description of the storage.
        shape: dimensions of the dense array.
        limit: largest number of positions at any level, above which the description is invalid;
            None means the number of elements of *shape*.

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
    elements = math.prod(shape)
    limit = elements if limit is None else min(elements, limit)
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
    """Return, for each node of a level of the tree, the number of its parent and its coordinate.

    *level* describes the dimension of the level, *nodes* is the number of parents, and *limit* the
    largest allowed number of children.
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


def _flat(coordinates: Ints, shape: tuple[int, ...]) -> Ints:
    places: Any = np.zeros(coordinates.shape[1], np.int64)
    for axis, size in enumerate(shape):
        own = coordinates[axis]
        if own.size and not 0 <= own.min() <= own.max() < size:
            raise OperatorError(f"a sparse index is outside dimension {axis} of {list(shape)}")
        places = places * size + own
    result: Ints = places
    return result
