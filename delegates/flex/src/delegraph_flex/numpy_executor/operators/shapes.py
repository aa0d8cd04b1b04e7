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
from delegraph_flex.numpy_executor.registry import COMPLEX, functions, operator, step_of

Array = NDArray[Any]
_I32 = DataType.INT32


def _itself(x: Array) -> Array:
    return x


_IDENTITIES = (
    "DebugGradientIdentity",
    "DeepCopy",
    "GuaranteeConst",
    "Identity",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Snapshot",
    "StopGradient",
)
functions(dict.fromkeys(_IDENTITIES, _itself))
functions({"IdentityN": lambda *values: values, "Rank": lambda x: np.int32(x.ndim)})


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


@step_of("Reshape")
def reshape(x: Array, dims: Array) -> Array:
    """Return *x* in the shape *dims*, of which a -1 is computed."""
    shape = dims.ravel().tolist()
    if shape and min(shape) < 0:
        shape = _filled_in(shape, x.shape)
    return x.reshape(shape)


@operator("Squeeze")
def squeeze(node: FlexNode) -> Step:
    """Return a function that removes dimensions of size 1: the axes in the attribute, or all."""
    axes = node.ints("squeeze_dims", ())
    if not axes:
        return lambda x: x.reshape([dim for dim in x.shape if dim != 1])
    return lambda x: x.squeeze(axes)


@step_of("ExpandDims")
def expand_dims(x: Array, axis: Array) -> Array:
    """Return *x* with a new dimension of size 1."""
    shape = x.shape
    at = axis_of(axis, len(shape) + 1)
    return x.reshape(*shape[:at], 1, *shape[at:])


@step_of("Transpose")
def transpose(x: Array, order: Array) -> Array:
    """Return *x* with permuted axes."""
    return x.transpose(order.tolist())


@operator("ConjugateTranspose")
def conjugate_transpose(node: FlexNode) -> Step:
    """Return a function that permutes the axes and takes complex conjugates."""
    if node.type("T") not in COMPLEX:
        return transpose
    return lambda x, order: np.conjugate(transpose(x, order))


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


@step_of("BroadcastArgs")
def broadcast_shapes(x: Array, y: Array) -> Array:
    """Return the shape to which two shapes broadcast."""
    return np.array(np.broadcast_shapes(tuple(x.tolist()), tuple(y.tolist())), x.dtype)


@step_of("BroadcastGradientArgs")
def broadcast_axes(x: Array, y: Array) -> list[Array]:
    """Return the axes over which each gradient of a broadcast operator is summed."""
    rank = max(x.size, y.size)
    broadcast_shapes(x, y)
    padded = ([1] * (rank - dims.size) + dims.tolist() for dims in (x, y))
    return [np.array([i for i, dim in enumerate(dims) if dim == 1], x.dtype) for dims in padded]


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
