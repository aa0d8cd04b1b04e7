"""Operators that read or change shapes, and operators that return their inputs unchanged.

Operators that only change the shape return a view of their input.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.numpy_executor.indices import axis_of
from delegraph_flex.numpy_executor.registry import COMPLEX, operator

Array = NDArray[Any]
_I32 = DataType.INT32


@operator(
    "DebugGradientIdentity",
    "DeepCopy",
    "GuaranteeConst",
    "Identity",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Snapshot",
    "StopGradient",
)
def identity(node: FlexNode) -> Step:
    """Return a function that returns its input."""
    return _itself


@operator("IdentityN")
def identities(node: FlexNode) -> Step:
    """Return a function that returns its inputs."""
    return lambda *values: values


@operator("EnsureShape")
def ensure_shape(node: FlexNode) -> Step:
    """Return a function that checks its input's shape by the attribute, and returns the input.

    The function raises ValueError if the shape differs.
    """
    expected = node.shape("shape")
    if expected is None:
        return _itself

    def run(x: Array) -> Array:
        fits = len(x.shape) == len(expected) and all(
            want in (-1, dim) for dim, want in zip(x.shape, expected, strict=True)
        )
        if not fits:
            raise ValueError(f"input has shape {list(x.shape)}, expected {list(expected)}")
        return x

    return run


@operator("Shape")
def shape(node: FlexNode) -> Step:
    """Return a function that returns the shape of its input, as a vector."""
    dtype, array = node.type("out_type", DataType.INT32).dtype, np.array
    return lambda x: array(x.shape, dtype)


@operator("ShapeN")
def shapes(node: FlexNode) -> Step:
    """Return a function that returns the shape of each input."""
    dtype = node.type("out_type", DataType.INT32).dtype
    return lambda *values: [np.array(x.shape, dtype) for x in values]


@operator("Size")
def size(node: FlexNode) -> Step:
    """Return a function that returns the number of elements."""
    number = node.type("out_type", DataType.INT32).dtype.type
    return lambda x: number(x.size)


@operator("Rank")
def rank(node: FlexNode) -> Step:
    """Return a function that returns the number of dimensions."""
    return lambda x: np.int32(x.ndim)


@operator("Reshape")
def reshape(node: FlexNode) -> Step:
    """Return a function that changes the shape; a dimension of -1 is computed."""

    def run(x: Array, dims: Array) -> Array:
        shape = dims.ravel().tolist()
        if shape and min(shape) < 0:
            shape = _filled_in(shape, x.shape)
        return x.reshape(shape)

    return run


@operator("Squeeze")
def squeeze(node: FlexNode) -> Step:
    """Return a function that removes dimensions of size 1: the axes in the attribute, or all."""
    axes = node.ints("squeeze_dims", ())
    if not axes:
        return lambda x: x.reshape([dim for dim in x.shape if dim != 1])
    return lambda x: x.squeeze(axes)


@operator("ExpandDims")
def expand_dims(node: FlexNode) -> Step:
    """Return a function that inserts a dimension of size 1."""

    def run(x: Array, axis: Array) -> Array:
        shape = x.shape
        at = axis_of(axis, len(shape) + 1)
        return x.reshape(*shape[:at], 1, *shape[at:])

    return run


@operator("Transpose")
def transpose(node: FlexNode) -> Step:
    """Return a function that permutes the axes."""
    return _transposed


@operator("ConjugateTranspose")
def conjugate_transpose(node: FlexNode) -> Step:
    """Return a function that permutes the axes and takes complex conjugates."""
    if node.type("T") not in COMPLEX:
        return _transposed
    return lambda x, order: np.conjugate(_transposed(x, order))


@operator("DataFormatDimMap")
def map_data_format_axes(node: FlexNode) -> Step:
    """Function that converts axes of one data format (``NHWC``) to axes of another (``NCHW``)."""
    source, target = _data_formats(node)
    places = np.array([target.index(letter) for letter in source], node.type("T", _I32).dtype)

    def run(axes: Array) -> Any:
        count = len(source)
        if axes.size and not -count <= axes.min() <= axes.max() < count:
            raise ValueError(f"axes {axes.tolist()} are not in [{-count}, {count})")
        return places[axes]

    return run


@operator("DataFormatVecPermute")
def permute_data_format(node: FlexNode) -> Step:
    """Function that permutes a vector, or a matrix's rows, from one data format to another."""
    source, target = _data_formats(node)

    def run(x: Array) -> Array:
        letters: tuple[str, ...] = (source, target)
        if len(x) == len(source) - 2:  # the vector has only the spatial axes
            letters = tuple("".join(c for c in word if c not in "NC") for word in letters)
        if x.ndim not in (1, 2) or len(x) != len(letters[0]) or x.shape[1:] not in ((), (2,)):
            raise ValueError(f"input has shape {list(x.shape)}, expected [{len(source)}] or pairs")
        return x[[letters[0].index(letter) for letter in letters[1]]]

    return run


@operator("BroadcastArgs")
def broadcast_shapes(node: FlexNode) -> Step:
    """Return a function that computes the shape to which two shapes broadcast."""

    def run(x: Array, y: Array) -> Array:
        return np.array(np.broadcast_shapes(tuple(x.tolist()), tuple(y.tolist())), x.dtype)

    return run


@operator("BroadcastGradientArgs")
def broadcast_axes(node: FlexNode) -> Step:
    """Function that returns the axes over which each gradient of a broadcast operator is summed."""

    def run(x: Array, y: Array) -> list[Array]:
        shape = np.broadcast_shapes(tuple(x.tolist()), tuple(y.tolist()))
        return [_broadcast_axes(dims.tolist(), shape, x.dtype) for dims in (x, y)]

    def _broadcast_axes(dims: list[int], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        padded = [1] * (len(shape) - len(dims)) + dims
        return np.array([axis for axis, dim in enumerate(padded) if dim == 1], dtype)

    return run


@operator("Bitcast")
def bitcast(node: FlexNode) -> Step:
    """Return a function that reinterprets bytes as elements of another type.

    Smaller elements add a last dimension. For larger elements, the last dimension must equal the
    ratio of the sizes, and is removed.
    """
    source, target = node.type("T").dtype, node.type("type").dtype
    ratio = target.itemsize // source.itemsize

    def run(x: Array) -> Array:
        shape = x.shape
        whole: Array = np.ascontiguousarray(x)
        if target.itemsize == source.itemsize:
            return whole.view(target).reshape(shape)
        if target.itemsize < source.itemsize:
            return whole.reshape(*shape, 1).view(target)
        if shape[-1:] != (ratio,):
            raise ValueError(f"input has shape {list(shape)}, expected [..., {ratio}]")
        return whole.view(target).reshape(shape[:-1])

    return run


def _data_formats(node: FlexNode) -> tuple[str, str]:
    source, target = node.text("src_format", "NHWC"), node.text("dst_format", "NCHW")
    if sorted(source) != sorted(target) or len(set(source)) != len(source) or len(source) < 4:
        raise Unsupported(f"data formats are {source!r} and {target!r}, expected the same letters")
    return source, target


def _itself(x: Array) -> Array:
    return x


def _filled_in(shape: list[int], of: tuple[int, ...]) -> list[int]:
    """Return *shape* with -1 replaced by the size that gives as many elements as *of* has.

    If the new shape has a 0, dimensions of 0 are ignored in both shapes.
    """
    if min(shape) < -1 or shape.count(-1) > 1:
        raise ValueError(f"shape {shape} has negative dimensions other than a single -1")
    if 0 in shape:
        known = math.prod(dim for dim in shape if dim > 0)
        rest = math.prod(dim for dim in of if dim) // known
    else:
        known = -math.prod(shape)
        rest = math.prod(of) // known
    return [rest if dim == -1 else dim for dim in shape]


def _transposed(x: Array, order: Array) -> Array:
    return x.transpose(order.tolist())
