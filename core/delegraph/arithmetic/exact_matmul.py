"""Exact products of integer matrices, computed by floating-point BLAS.

Sums of integers are exact in a float type as long as no partial sum exceeds its mantissa: 2**24 in
float32, 2**53 in float64. The weights are known, so the largest possible sum is known, too; it
nearly always fits float32.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from delegraph.arithmetic.patches import split_groups
from delegraph.arithmetic.weights import channel_rows
from delegraph.lazy_dataclass import dataclass, replace
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class IntegerWeights:
    """Integer weights as float matrices whose products with integers are exact.

    Attributes:
        matrices: a matrix ``[K, O / groups]`` for each group, float32 or float64.
        sums: sum of each output's weights, ``[O], int64``: the effect of adding 1 to every input.
        bounds: largest magnitude of each output's products, for any input, ``[O], float64``.
        source: stored integers, whose address is the key for sharing the weights; None if the
            weights are not shared.
    """

    matrices: tuple[NDArray[Any], ...]
    sums: NDArray[np.int64]
    bounds: NDArray[np.float64]
    source: NDArray[Any] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Float type of the products: float32 if its sums are exact, else float64."""
        return self.matrices[0].dtype


_SHARED: WeakValueDictionary[Hashable, IntegerWeights] = WeakValueDictionary()


def shared_weights(
    weight: Tensor, form: Hashable, make: Callable[[], IntegerWeights]
) -> IntegerWeights:
    """Return converted weights; nodes that read the same constant share one copy.

    Args:
        weight: tensor of the integers.
        form: key for everything else on which the result depends, such as the number of groups.
        make: function that returns new weights; see :func:`integer_weights`.
    """
    data = weight.data
    if not weight.is_constant or weight.sparsity is not None or data.flags.writeable:
        return make()
    key = data.__array_interface__["data"][0], weight.type, weight.shape, form
    found = _SHARED.get(key)
    if found is None:
        found = _SHARED[key] = replace(make(), source=data)
    return found


def integer_weights(
    weight: NDArray[Any],
    largest: int,
    groups: int = 1,
    *,
    zero_point: int = 0,
    is_fixed: bool = True,
) -> IntegerWeights:
    """Return *weight* converted for exact products with integers.

    Args:
        weight: ``[O, ...]``, integers in a range of at most 16 bits.
        largest: largest magnitude of an input.
        groups: number of groups into which the outputs are divided.
        zero_point: number that is subtracted from the weights.
        is_fixed: whether the weights never change; weights that change always get float64.
    """
    rows = channel_rows(weight)  # [O, K]
    matrix = np.empty(rows.shape, np.float32)
    sums, totals = np.empty((2, len(rows)))
    widest = 255 if rows.dtype.itemsize == 1 else 1 << 17
    exact = exact_float(rows.shape[1] * widest)
    for block in _row_blocks(rows.shape):
        centre(rows[block], zero_point, matrix[block])
        sums[block] = matrix[block].sum(axis=1, dtype=exact)
        totals[block] = np.abs(matrix[block]).sum(axis=1, dtype=exact)
    bounds = totals * largest
    dtype = exact_float(bounds.max(initial=0)) if is_fixed else np.dtype(np.float64)
    matrix = matrix.astype(dtype, copy=False).T  # [K, O]: BLAS reads this order without a copy
    return IntegerWeights(split_groups(matrix, groups), sums.astype(np.int64), bounds)


def centre(integers: NDArray[Any], zero_point: int, out: NDArray[Any]) -> None:
    """Store *integers* minus *zero_point* as floats in *out*, which has the same shape."""
    np.copyto(out, integers, casting="same_kind")
    if zero_point:
        out -= zero_point


_BLOCK = 1 << 14  # elements per step, so that intermediate arrays stay in the cache


def _row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    rows, columns = shape
    step = max(_BLOCK // max(columns, 1), 1)
    return (slice(start, start + step) for start in range(0, rows, step))


def largest_input(x: Tensor, *, is_centred: bool = False) -> int:
    """Return the largest magnitude of any integer that *x* can store.

    If *is_centred*, the result is the largest distance of a stored integer from the zero point.
    """
    info = np.iinfo(x.dtype)
    offset = x.zero_point if is_centred else 0
    return max(abs(int(info.min) - offset), abs(int(info.max) - offset))


def column_bounds(weight: NDArray[Any], largest: int) -> NDArray[np.float64]:
    """Return the largest magnitude that each column of a product may have: ``[O], float64``.

    Args:
        weight: ``[..., O]``, centred integers, summed over all axes but the last.
        largest: largest magnitude of an input.
    """
    wide = weight.astype(np.int32)  # int8 has no +128
    totals = np.abs(wide).sum(axis=tuple(range(weight.ndim - 1)), dtype=np.float64)
    return np.asarray(totals * largest)


def exact_float(bound: float) -> np.dtype[Any]:
    """Return float32, or float64 if float32 does not represent all integers up to *bound*.

    >>> exact_float(2.0**24)
    dtype('float32')
    """
    return np.dtype(np.float32 if bound <= 2**24 else np.float64)
