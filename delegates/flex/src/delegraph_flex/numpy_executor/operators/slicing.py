"""Operators that return parts of an array, or change the order of its elements."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import requested_shape
from delegraph_flex.numpy_executor.indices import axis_of
from delegraph_flex.numpy_executor.registry import operator, step_of

Array = NDArray[Any]
Index = tuple[slice | int | EllipsisType | None, ...]


@step_of("Slice")
def slice_(x: Array, begin: Array, size: Array) -> Array:
    """Return a block, given its start and size; a size of -1 extends to the end."""
    if not len(begin) == len(size) == x.ndim:
        raise ValueError(
            f"begin and size have {len(begin)} and {len(size)} elements, expected {x.ndim}"
        )
    index = []
    for dim, first, count in zip(x.shape, begin.tolist(), size.tolist(), strict=True):
        end = dim if count == -1 else first + count
        if not 0 <= first <= end <= dim:
            raise ValueError(
                f"begin {begin.tolist()} and size {size.tolist()} leave shape {list(x.shape)}"
            )
        index.append(slice(first, end))
    return _part(x, (*index, ...))


@operator("StridedSlice")
def strided_slice(node: FlexNode) -> Step:
    """Function that computes ``x[begin:end:stride, ...]``, with new and removed axes by masks."""
    make_index = StridedIndex(node)

    def run(x: Array, begin: Array, end: Array, strides: Array) -> Array:
        return x[make_index(x.shape, begin, end, strides)]

    return run


@operator("StridedSliceGrad")
def strided_slice_gradient(node: FlexNode) -> Step:
    """Return a function that returns zeros with the gradient at a strided slice."""
    make_index = StridedIndex(node)

    def run(shape: Array, begin: Array, end: Array, strides: Array, dy: Array) -> Array:
        result = np.zeros(requested_shape(shape, dy.dtype), dy.dtype)
        _assign(result, make_index(result.shape, begin, end, strides), dy)
        return result

    return run


@operator("TensorStridedSliceUpdate")
def strided_slice_update(node: FlexNode) -> Step:
    """Return a function that returns the input with the elements of a strided slice replaced."""
    make_index = StridedIndex(node)

    def run(x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
        result = x.copy()
        _assign(result, make_index(result.shape, begin, end, strides), value)
        return result

    return run


@operator("Split")
def split(node: FlexNode) -> Step:
    """Return a function that splits an array into equal parts along an axis."""
    count = node.int("num_split")
    if count < 1:
        raise Unsupported(f"attribute 'num_split' is {count}, expected at least 1")

    def run(axis: Array, x: Array) -> list[Array]:
        at = axis_of(axis, x.ndim, "split_dim")
        size, rest = divmod(x.shape[at], count)
        if rest:
            raise ValueError(f"{x.shape[at]} elements of axis {at} make no {count} equal parts")
        before = (slice(None),) * at
        return [x[(*before, slice(i * size, (i + 1) * size))] for i in range(count)]

    return run


@operator("SplitV")
def split_by_sizes(node: FlexNode) -> Step:
    """Return a function that splits an array into parts of given sizes.

    One size may be -1; this size is computed.
    """
    count = node.int("num_split")

    def run(x: Array, sizes: Array, axis: Array) -> list[Array]:
        at = axis_of(axis, x.ndim, "split_dim")
        parts, dim = sizes.tolist(), x.shape[at]
        if parts.count(-1) == 1:
            parts[parts.index(-1)] = dim - sum(parts) - 1
        if len(parts) != count or min(parts) < 0 or sum(parts) != dim:
            raise ValueError(f"sizes {sizes.tolist()} make no {count} parts of {dim} elements")
        before, start, results = (slice(None),) * at, 0, []
        for part in parts:
            results.append(x[(*before, slice(start, start + part))])
            start += part
        return results

    return run


@operator("Unpack")
def unpack(node: FlexNode) -> Step:
    """Return a function that returns the slices along an axis, without the axis."""
    axis, count = node.int("axis", 0), node.int("num")

    def run(x: Array) -> list[Array]:
        at = axis_of(axis, x.ndim)
        if x.shape[at] != count:
            raise ValueError(f"axis {at} has {x.shape[at]} elements, expected {count}")
        before: Index = (slice(None),) * at
        return [_part(x, (*before, i, ...)) for i in range(count)]

    return run


@step_of("ReverseV2")
def reverse_axes(x: Array, axes: Array) -> Array:
    """Return *x* with its elements reversed along some axes."""
    index: list[slice] = [slice(None)] * x.ndim
    for axis in axes.tolist():
        at = axis_of(axis, x.ndim)
        if index[at].step is not None:
            raise ValueError(f"axes {axes.tolist()} name axis {at} twice")
        index[at] = _BACKWARDS
    return _part(x, (*index, ...))


@step_of("Reverse")
def reverse_flagged(x: Array, flags: Array) -> Array:
    """Return *x* with its elements reversed along the axes whose flag is true."""
    if flags.shape != (x.ndim,):
        raise ValueError(f"flags have shape {list(flags.shape)}, expected [{x.ndim}]")
    index = [_BACKWARDS if flag else slice(None) for flag in flags.tolist()]
    return _part(x, (*index, ...))


@operator("ReverseSequence")
def reverse_sequence(node: FlexNode) -> Step:
    """Function that reverses the first ``lengths[i]`` elements along an axis, for each batch i."""
    seq_axis, batch_axis = node.int("seq_dim"), node.int("batch_dim", 0)

    def run(x: Array, lengths: Array) -> Array:
        seq, batch = axis_of(seq_axis, x.ndim, "seq_dim"), axis_of(batch_axis, x.ndim, "batch_dim")
        count, size = x.shape[batch], x.shape[seq]
        if seq == batch or lengths.shape != (count,):
            raise ValueError(
                f"lengths have shape {list(lengths.shape)}, expected [{count}], "
                f"for axis {batch} and another one than {seq}"
            )
        result = x.copy()
        source: list[Any] = [slice(None)] * x.ndim
        target = source.copy()
        for i, length in enumerate(lengths.tolist()):
            if not 0 <= length <= size:
                raise ValueError(f"length {length} is not in [0, {size}]")
            source[batch] = target[batch] = i
            source[seq], target[seq] = slice(length), slice(length - 1, None, -1)
            if length:
                result[tuple(target)] = x[tuple(source)]
        return result

    return run


_BACKWARDS = slice(None, None, -1)


def _part(x: Array, index: Any) -> Array:
    """Return ``x[index]`` as an array, never as a scalar; *index* must end with ``...``."""
    part: Array = x[index]
    return part


class StridedIndex:
    """Makes the NumPy index for a strided slice.

    Masks have one bit for each position of begin, end and strides. NumPy clamps indices and counts
    from the end as TensorFlow does, so only the masks must be converted.

    Source:
        tensorflow/core/util/strided_slice_op.cc, ValidateStridedSliceOp.
    """

    def __init__(self, node: FlexNode) -> None:
        def mask(name: str) -> int:
            return node.int(name, 0)

        self._begin, self._end = mask("begin_mask"), mask("end_mask")
        self._ellipsis, self._new = mask("ellipsis_mask"), mask("new_axis_mask")
        self._shrink = mask("shrink_axis_mask")
        if self._ellipsis & (self._ellipsis - 1):
            raise Unsupported(f"'ellipsis_mask' is {self._ellipsis:#b}, expected a single bit")

    def __call__(self, shape: tuple[int, ...], begin: Array, end: Array, strides: Array) -> Index:
        """Return the index into an array of *shape*, from the slice's begin, end and strides.

        Raises:
            ValueError: a stride is 0, an element is outside, or there are more positions than axes.
        """
        index: list[slice | int | EllipsisType | None] = []
        parts = zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
        axis = 0
        for i, (first, last, stride) in enumerate(parts):
            bit = 1 << i
            if self._ellipsis & bit:
                index.append(...)
                later = range(i + 1, len(begin))
                left = len(shape) - sum(not self._new >> j & 1 for j in later)
                if left < axis:
                    raise ValueError(f"{len(begin)} positions are too many for {list(shape)}")
                axis = left
            elif self._new & bit:
                index.append(None)
            else:
                if axis >= len(shape):
                    raise ValueError(f"{len(begin)} positions are too many for {list(shape)}")
                if self._shrink & bit:
                    index.append(_element(first, stride, shape[axis]))
                else:
                    index.append(
                        slice(
                            None if self._begin & bit else first,
                            None if self._end & bit else last,
                            stride,
                        )
                    )
                axis += 1
        return tuple(index) if self._ellipsis else (*index, ...)


def _element(place: int, stride: int, size: int) -> int:
    if stride < 1:
        raise ValueError(f"a single element has stride {stride}, expected a positive one")
    if not -size <= place < size:
        raise ValueError(f"element {place} is not in [{-size}, {size})")
    return place


def _assign(target: Array, index: Index, value: Array) -> None:
    place = target[index]
    if place.shape != value.shape:
        raise ValueError(f"value has shape {list(value.shape)}, expected {list(place.shape)}")
    place[...] = value
