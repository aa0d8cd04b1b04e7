"""Index arithmetic: bounds of a dimension, and row-major numbers of index tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.tensor import Shape, element_count

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_bounds(positions: NDArray[Any], size: int) -> None:
    """Check that all *positions* lie in ``[0, size)``.

    Raises:
        OperatorError: a position lies outside of this range.
    """
    if positions.size and not 0 <= (low := int(positions.min())) <= int(positions.max()) < size:
        wrong = low if low < 0 else int(positions.max())
        raise OperatorError(f"position {wrong} is outside [0, {size})")


def row_numbers(indices: NDArray[Any], shape: Shape) -> NDArray[np.int64]:
    """Return the row-major number of each index tuple, ``[tuples], int64``.

    Args:
        indices: ``[..., len(shape)]``, integers.
        shape: the dimensions that the tuples index.

    Raises:
        OperatorError: an index lies outside its dimension.
    """
    tuples = indices.reshape(element_count(indices.shape[:-1]), len(shape))
    rows = np.zeros(len(tuples), np.int64)
    for k, size in enumerate(shape):
        check_bounds(tuples[:, k], size)
        rows = rows * size + tuples[:, k]
    return rows
