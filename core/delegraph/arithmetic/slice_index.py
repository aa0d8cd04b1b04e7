"""Converts the arguments of STRIDED_SLICE to a NumPy index.

Source:
    tflite/kernels/internal/reference/strided_slice.h, StartForAxis and EndForAxis.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.tensor import Shape

NEW_AXIS = -2
"""Mark for a new dimension of length 1, which only the result has."""
FULL = -1
"""Mark for a dimension that is kept completely."""

Index = tuple["slice | int | EllipsisType | None", ...]
"""A NumPy index that ends with ``...``, so that integers alone also give an array."""


@dataclass(frozen=True, slots=True)
class Masks:
    """Masks in the options of STRIDED_SLICE; bit *i* of a mask concerns the *i*-th index.

    Attributes:
        begin: indices whose begin is ignored, so that the slice starts at the first element.
        end: indices whose end is ignored, so that the slice has the last element.
        ellipsis: the index, if any, that stands for all dimensions that no other index has.
        new_axis: indices that add a dimension of length 1.
        shrink_axis: indices that select one position and remove the dimension.
        offset: whether ends are counted from the begins.
    """

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink_axis: int
    offset: bool

    @classmethod
    def of(cls, options: Any) -> Masks:
        """Return the masks in a node's options."""
        names = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        bits = [int(getattr(options, f"{name}_mask", 0)) for name in names]
        begin, end, ellipsis, new_axis, shrink_axis = bits
        offset = bool(getattr(options, "offset", False))
        return cls(begin, end, ellipsis, new_axis, shrink_axis, offset)


def resolved(
    shape: Shape, begins: Sequence[int], ends: Sequence[int], steps: Sequence[int], masks: Masks
) -> tuple[Index, list[int]]:
    """Return the NumPy index for the arguments of STRIDED_SLICE, and the result's shape.

    *begins*, *ends* and *steps* have a number for each part of the slice.

    Raises:
        OperatorError: a step is 0, the masks do not fit, or an index lies outside of a dimension
            that it removes.

    >>> masks = Masks(begin=0, end=0b10, ellipsis=0, new_axis=0, shrink_axis=0b1, offset=False)
    >>> resolved((4, 5), [-1, 1], [0, 0], [1, 2], masks)
    ((3, slice(1, 5, 2), Ellipsis), [2])
    """
    index: list[slice | int | EllipsisType | None] = []
    result = []
    dims = iter(shape)
    for i in spec_of_dimensions(len(shape), len(begins), masks):
        if i == NEW_AXIS:
            index.append(None)
            result.append(1)
            continue
        dim = next(dims, 0)
        if i == FULL:
            part: slice | int = slice(0, dim, 1)
        else:
            part = _part(i, dim, begins[i], ends[i], steps[i], masks)
        index.append(part)
        if isinstance(part, slice):
            result.append(len(range(dim)[part]))
    index.append(...)
    return tuple(index), result


def spec_of_dimensions(rank: int, count: int, masks: Masks) -> list[int]:
    """Return, for each dimension, its position in the arguments of STRIDED_SLICE.

    FULL stands for a dimension that an ellipsis covers, NEW_AXIS for a new dimension. An ellipsis
    covers at least one dimension, as in the official kernel.

    Raises:
        OperatorError: the masks do not fit the rank and the count of indices.
    """
    new = masks.new_axis & ~masks.ellipsis
    dims = rank + (new & ((1 << count) - 1)).bit_count()
    spec: list[int] = []
    hidden = 0  # further dimensions that an ellipsis covers
    while (i := len(spec)) < dims:
        if masks.ellipsis >> i & 1:
            stop = max(i + 1, min(i + 1 + dims - count, dims))
            hidden = stop - i - 1
            spec += [FULL] * (stop - i)
        elif new >> (i - hidden) & 1:
            if i - hidden >= count:  # the official kernel loses a dimension of the input there
                raise OperatorError(
                    f"new_axis_mask has bit {i - hidden}, expected none beyond {count} indices"
                )
            spec.append(NEW_AXIS)
        else:
            spec.append(i - hidden if i - hidden < count else FULL)
    if sum(entry != NEW_AXIS for entry in spec) != rank:
        raise OperatorError(f"masks {masks} do not fit {count} indices and an input of rank {rank}")
    return spec


def _part(i: int, dim: int, begin: int, end: int, step: int, masks: Masks) -> slice | int:
    """Return the slice of one dimension, or the index of a dimension that is removed.

    Args:
        i: position of the part in the slice specification, which is its bit in the masks.
        dim: length of the dimension.
        begin: first index.
        end: index to stop before.
        step: stride.
        masks: masks of the node.
    """
    if step == 0:
        raise OperatorError(f"stride {i} is 0, expected another value")
    low, high = (0, dim) if step > 0 else (-1, dim - 1)  # range of valid starts and stops
    start = _clamped(begin + dim if begin < 0 else begin, low, high)
    if masks.begin >> i & 1:
        start = 0 if step > 0 else dim - 1
    if masks.shrink_axis >> i & 1:
        if not 0 <= start < dim:
            raise OperatorError(f"index {begin} is outside a dimension of {dim}")
        return start
    if masks.offset:
        stop = _clamped(start + end, low, high)
    else:
        stop = _clamped(end + dim if end < 0 else end, low, high)
    if masks.end >> i & 1:
        stop = dim if step > 0 else -1
    return _python_slice(start, stop, step)


def _clamped(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _python_slice(start: int, stop: int, step: int) -> slice:
    """Return the slice from *start* to before *stop* by *step*.

    With a negative *step*, a *stop* of -1 means the position before the first element.
    """
    if step > 0:
        return slice(start, stop, step)
    if start < 0:
        return slice(0, 0, 1)
    return slice(start, None if stop < 0 else stop, step)
