"""Index vectors of STABLEHLO_GATHER and STABLEHLO_SCATTER, arranged in the output's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError

Integers = NDArray[np.int64]


def without(rank: int, axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a tensor of rank *rank* that are not in *axes*.

    >>> without(4, (1, 3))
    (0, 2)
    """
    return tuple(axis for axis in range(rank) if axis not in axes)


def batch_shape(shape: Sequence[int], index_vector_dim: int) -> tuple[int, ...]:
    """Return the shape of a tensor of index vectors without the axis of the vectors.

    Args:
        shape: shape of the tensor.
        index_vector_dim: axis along which the vectors lie.
    """
    return tuple(size for axis, size in enumerate(shape) if axis != index_vector_dim)


class StartIndices:
    """Reads the start of each slice of an operand from a tensor of index vectors.

    Args:
        shape: shape of the tensor.
        index_vector_dim: axis of the tensor along which the vectors lie; the tensor's rank if
            vectors have length one.
        index_map: for each element of a vector, the operand's axis that it indexes.
        batch_axes: the result's axes that match the tensor's other axes.
        rank: rank of the result.

    Raises:
        OperatorError: the length of the vectors is not that of *index_map*, or the number of batch
            axes is wrong.
    """

    def __init__(
        self,
        shape: Sequence[int],
        index_vector_dim: int,
        index_map: Sequence[int],
        batch_axes: Sequence[int],
        rank: int,
    ) -> None:
        if not 0 <= index_vector_dim <= len(shape):
            raise OperatorError(f"index_vector_dim {index_vector_dim} of indices {list(shape)}")
        length = shape[index_vector_dim] if index_vector_dim < len(shape) else 1
        if length != len(index_map):
            raise OperatorError(f"index vectors have length {length}, expected {len(index_map)}")
        self._axis = index_vector_dim
        self._batch = batch_shape(shape, index_vector_dim)
        self._index_map = index_map
        self._shape = [1] * rank
        if len(batch_axes) != len(self._batch):
            raise OperatorError(
                f"{len(batch_axes)} batch axes for indices {list(shape)}, "
                f"expected {len(self._batch)}"
            )
        for axis, size in zip(batch_axes, self._batch, strict=True):
            self._shape[axis] = size

    def read(self, indices: NDArray[Any]) -> dict[int, Integers]:
        """Return, for each indexed axis, the start indices along the axis in *indices*.

        The start indices are shaped to broadcast to the result.
        """
        vectors = indices[..., np.newaxis] if self._axis == indices.ndim else indices
        columns = np.moveaxis(vectors.astype(np.int64), self._axis, 0)
        return {
            axis: column.reshape(self._shape)
            for axis, column in zip(self._index_map, columns, strict=True)
        }


def offsets(sizes: Sequence[int], axes: Sequence[int], rank: int) -> list[Integers]:
    """Return the offsets inside a slice along each of *axes*, shaped to broadcast to the result.

    Args:
        sizes: sizes of the slice.
        axes: for each axis of the slice, the result's axis.
        rank: rank of the result.
    """
    return [
        np.arange(size).reshape([-1 if i == axis else 1 for i in range(rank)])
        for size, axis in zip(sizes, axes, strict=True)
    ]
