"""Operators that concatenate or enlarge arrays: pad, tile, broadcast, fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType, zeros
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import requested_shape, require
from delegraph_flex.numpy_executor.indices import axis_of
from delegraph_flex.numpy_executor.registry import ALL, COMPLEX, REAL, functions, operator, step_of

Array = NDArray[Any]

_MOST_AXES = 32
"""Largest number of axes of an array."""


functions(
    {
        "ConcatV2": lambda *values: np.concatenate(values[:-1], values[-1].item()),
        "Concat": lambda axis, *values: np.concatenate(values, axis.item()),
        "ParallelConcat": lambda *values: np.concatenate(values),  # rows: dimension 0 of each is 1
        "PadV2": lambda x, paddings, value: _padded(x, paddings, value[()]),
    }
)
functions({"OnesLike": lambda x: np.ones(x.shape, x.dtype)}, REAL | COMPLEX | {DataType.BOOL})


@step_of("ConcatOffset")
def concatenation_offsets(axis: Array, *shapes: Array) -> list[Array]:
    """Return the start of each of several arrays in their concatenation."""
    at = axis_of(axis, shapes[0].size)
    first, results, start = shapes[0].tolist(), [], 0
    for shape in shapes:
        dims = shape.tolist()
        if dims[:at] != first[:at] or dims[at + 1 :] != first[at + 1 :]:
            raise ValueError(f"shapes {first} and {dims} differ beside axis {at}")
        results.append(np.array([0] * at + [start] + [0] * len(dims[at + 1 :]), shape.dtype))
        start += dims[at]
    return results


@operator("Pack")
def pack(node: FlexNode) -> Step:
    """Return a function that joins arrays of one shape along a new axis."""
    axis = node.int("axis", 0)
    if not -_MOST_AXES <= axis < _MOST_AXES:
        raise Unsupported(f"attribute 'axis' is {axis}, expected an axis of an array")
    if axis < 0:
        index: tuple[Any, ...] = (..., None, *[slice(None)] * (-axis - 1))
    else:
        index = (*[slice(None)] * axis, None, ...)

    def run(*values: Array) -> Array:
        shape = values[0].shape
        for value in values:
            if value.shape != shape:
                raise ValueError(f"inputs have shapes {list(shape)} and {list(value.shape)}")
        axis_of(axis, len(shape) + 1)
        return np.concatenate([value[index] for value in values], axis)

    return run


@operator("Pad")
def pad(node: FlexNode) -> Step:
    """Return a function that pads the input with zeros or empty strings."""
    zero = zeros((), node.type("T").dtype)
    return lambda x, paddings: _padded(x, paddings, zero)


@operator("MirrorPad")
def mirror_pad(node: FlexNode) -> Step:
    """Function that pads by mirroring, with the edge repeated (SYMMETRIC) or not (REFLECT)."""
    edge = 0 if node.choice("mode", ("REFLECT", "SYMMETRIC")) == "SYMMETRIC" else 1

    def run(x: Array, paddings: Array) -> Array:
        pairs = _checked_paddings(x, paddings, x.shape, edge)
        dims = list(zip(x.shape, pairs, strict=True))
        shape = tuple(before + dim + after for dim, (before, after) in dims)
        require(shape, x.dtype)
        result = np.empty(shape, x.dtype)
        result[tuple(slice(before, before + dim) for dim, (before, _) in dims)] = x
        whole: tuple[slice, ...] = ()
        for dim, (before, after) in dims:
            end = before + dim
            if before:
                mirrored = _backwards(before + edge, before)
                result[(*whole, slice(before))] = result[(*whole, mirrored)]
            if after:
                mirrored = _backwards(end - edge - after, after)
                result[(*whole, slice(end, end + after))] = result[(*whole, mirrored)]
            whole += (slice(None),)
        return result

    return run


@operator("MirrorPadGrad")
def mirror_pad_gradient(node: FlexNode) -> Step:
    """Function for the gradient of mirror padding: adds each padding element to its original."""
    edge = 0 if node.choice("mode", ("REFLECT", "SYMMETRIC")) == "SYMMETRIC" else 1

    def run(dy: Array, paddings: Array) -> Array:
        both = paddings.sum(axis=-1).tolist()
        inner = tuple(dim - around for dim, around in zip(dy.shape, both, strict=True))
        whole: tuple[slice, ...] = ()
        pairs = _checked_paddings(dy, paddings, inner, edge)
        for dim, (before, after) in zip(inner, pairs, strict=True):
            end = before + dim
            sums = dy[(*whole, slice(before, end))].copy()
            sums[(*whole, slice(edge, edge + before))] += dy[(*whole, _backwards(0, before))]
            sums[(*whole, slice(dim - edge - after, dim - edge))] += dy[
                (*whole, _backwards(end, after))
            ]
            dy = sums
            whole += (slice(None),)
        return dy

    return run


@step_of("Tile")
def tile(x: Array, multiples: Array) -> Array:
    """Return *x* repeated along each axis."""
    counts = multiples.tolist()
    if len(counts) != x.ndim:
        raise ValueError(f"multiples are {counts}, expected one for each of {x.ndim} axes")
    shape = [count * dim for count, dim in zip(counts, x.shape, strict=True)]
    pairs = tuple(n for pair in zip(counts, x.shape, strict=True) for n in pair)
    require(pairs, x.dtype)
    result = np.empty(pairs, x.dtype)
    result[...] = x.reshape([n for dim in x.shape for n in (1, dim)])
    return result.reshape(shape)


@step_of("BroadcastTo")
def broadcast_to(x: Array, dims: Array) -> Array:
    """Return *x* broadcast to the shape *dims*."""
    shape = requested_shape(dims, x.dtype)
    if x.ndim > len(shape):
        raise ValueError(f"shape {list(x.shape)} does not broadcast to {list(shape)}")
    result = np.empty(shape, x.dtype)
    result[...] = x
    return result


@step_of("Fill")
def fill(dims: Array, value: Array) -> Array:
    """Return an array of the shape *dims*, filled with a value."""
    result = np.empty(requested_shape(dims, value.dtype), value.dtype)
    result[...] = value
    return result


@operator("Empty")
def empty(node: FlexNode) -> Step:
    """Function that returns zeros or empty strings; TensorFlow's result is uninitialized."""
    dtype = node.type("dtype").dtype
    return lambda dims: zeros(requested_shape(dims, dtype), dtype)


functions({"ZerosLike": lambda x: zeros(x.shape, x.dtype)}, ALL)


def _padded(x: Array, paddings: Array, value: Any) -> Array:
    if paddings.shape != (x.ndim, 2):
        raise ValueError(f"paddings have shape {list(paddings.shape)}, expected [{x.ndim}, 2]")
    shape, inside = [], []
    for dim, (before, after) in zip(x.shape, paddings.tolist(), strict=True):
        if before < 0 or after < 0:
            raise ValueError(f"paddings {paddings.tolist()} are negative")
        shape.append(before + dim + after)
        inside.append(slice(before, before + dim))
    require(shape, x.dtype)
    result = np.empty(shape, x.dtype)
    result[...] = value
    result[tuple(inside)] = x
    return result


def _checked_paddings(
    x: Array, paddings: Array, inner: tuple[int, ...], edge: int
) -> list[list[int]]:
    """Return *paddings* of *x* as lists; raise an error if mirroring cannot fill a padding.

    A padding may have as many elements as its dimension in *inner*, less *edge*.
    """
    if paddings.shape != (x.ndim, 2):
        raise ValueError(f"paddings have shape {list(paddings.shape)}, expected [{x.ndim}, 2]")
    pairs: list[list[int]] = paddings.tolist()
    for dim, pair in zip(inner, pairs, strict=True):
        if min(pair) < 0 or max(pair) > max(dim - edge, 0):
            raise ValueError(f"paddings {pair} of {dim} elements, expected 0 ... {dim - edge}")
    return pairs


def _backwards(start: int, count: int) -> slice:
    """Return the slice of *count* elements from *start* on, in reverse order."""
    if count == 0:
        return slice(0)
    return slice(start + count - 1, start - 1 if start else None, -1)
