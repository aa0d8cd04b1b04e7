"""Pooling, patches and dilation: operators on windows without a matrix product.

Source:
    core/kernels/maxpooling_op.cc, avgpooling_op.cc, pooling_ops_3d.cc, dilation_ops.cc,
    extract_image_patches_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import Window
from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, REAL, SIGNED, operator
from delegraph_flex.numpy_executor.windows import Sliding, patches, rank_of, spatial

_POOLED = FLOATS | SIGNED | {DataType.UINT8, DataType.UINT16}
_3D = frozenset({DataType.FLOAT32, DataType.BFLOAT16})


@operator("MaxPool", types=_POOLED)
def max_pool(node: FlexNode) -> Step:
    """Return a function for the maximum of each window, over height and width or over channels."""
    kernel, strides = node.ints("ksize"), node.ints("strides")
    if len(kernel) == 4 and kernel[3] != 1:
        return _max_of_channels(kernel, strides)
    return _max_pool(node)


@operator("MaxPoolV2", types=_POOLED)
def max_pool_v2(node: FlexNode) -> Step:
    """Return a function for the maximum of each window; window sizes and strides are inputs."""
    node.choice("data_format", ("NHWC",), "NHWC")
    padding = node.choice("padding", ("SAME", "VALID"))

    def run(x: NDArray[Any], kernel: NDArray[Any], strides: NDArray[Any]) -> NDArray[Any]:
        taps, steps = (_spatial_values(values) for values in (kernel, strides))
        sliding = Sliding(padding, steps, (1, 1), ((0, 0), (0, 0)))
        return _reduced(x, sliding.windows(_image_sizes(x, 4), taps), np.fmax, _lowest(x.dtype))

    return run


@operator("MaxPool3D", types=_3D)
def _max_pool(node: FlexNode) -> Step:
    sliding, kernel, rank = Sliding.of(node), spatial(node, "ksize"), rank_of(node)
    lowest = _lowest(node.type("T", DataType.FLOAT32).dtype)

    def run(x: NDArray[Any]) -> NDArray[Any]:
        return _reduced(x, sliding.windows(_image_sizes(x, rank), kernel), np.fmax, lowest)

    return run


@operator("AvgPool", types=FLOATS)
@operator("AvgPool3D", types=_3D)
def average_pool(node: FlexNode) -> Step:
    """Return a function that computes the mean of each window; padding is not counted."""
    sliding, kernel, rank = Sliding.of(node), spatial(node, "ksize"), rank_of(node)
    dtype, compute = node.type("T").dtype, node.type("T").wide

    def run(x: NDArray[Any]) -> NDArray[Any]:
        windows = sliding.windows(_image_sizes(x, rank), kernel)
        sums = _reduced(x.astype(compute, copy=False), windows, np.add, 0)
        for axis, window in enumerate(windows, 1):
            shape = (-1,) + (1,) * (rank - 1 - axis)
            sums /= window.inputs_of_outputs().reshape(shape).astype(compute)
        return sums.astype(dtype, copy=False)

    return run


def _max_of_channels(kernel: Sequence[int], strides: Sequence[int]) -> Step:
    if tuple(kernel[:3]) != (1, 1, 1) or tuple(kernel) != tuple(strides):
        raise Unsupported(
            f"windows of {list(kernel)} step by {list(strides)}, "
            "expected equal numbers, 1 except for channels"
        )
    size = kernel[3]

    def run(x: NDArray[Any]) -> NDArray[Any]:
        _image_sizes(x, 4)
        if x.shape[3] % size:
            raise ValueError(f"{x.shape[3]} channels, expected a multiple of {size}")
        maxima: NDArray[Any] = x.reshape(*x.shape[:3], -1, size).max(axis=-1)
        return maxima

    return run


def _image_sizes(x: NDArray[Any], rank: int) -> tuple[int, ...]:
    if x.ndim != rank:
        raise ValueError(f"input has shape {list(x.shape)}, expected {rank} dimensions")
    return x.shape[1:-1]


def _spatial_values(values: NDArray[Any]) -> tuple[int, ...]:
    numbers = tuple(values.reshape(-1).tolist())
    if values.shape != (4,) or numbers[0] != 1 or numbers[3] != 1 or min(numbers) < 1:
        raise ValueError(f"sizes or strides are {numbers}, expected four, 1 at both ends")
    return numbers[1:-1]


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return dtype.type(-np.inf) if dtype.itemsize == 2 else np.finfo(dtype).min


def _reduced(
    x: NDArray[Any], windows: Sequence[Window], function: Callable[..., Any], identity: Any
) -> NDArray[Any]:
    """Return the windows of *x* reduced by *function*, axis by axis: ``[N, *outputs, C]``.

    The image *x* is ``[N, *spatial, C]``. *function* combines the values of two taps, such as
    ``np.maximum``. Each result starts with *identity*; taps outside of the image are left out.
    """
    for axis, window in enumerate(windows, 1):
        shape = (*x.shape[:axis], window.output, *x.shape[axis + 1 :])
        require(shape, x.dtype)
        y = np.full(shape, identity, x.dtype)
        source, target = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
        for tap in window.taps:
            outputs, inputs = window.overlap(tap)
            function(target[outputs], source[inputs], out=target[outputs])
        x = y
    return x


@operator("MaxPoolWithArgmax", types=REAL)
def max_pool_with_argmax(node: FlexNode) -> Step:
    """Function that returns the maximum of each window, and the flat index of its first maximum."""
    sliding = Sliding.of(node)
    kernel = spatial(node, "ksize")
    index_dtype = node.type("Targmax", DataType.INT64).dtype
    counts_images = node.bool("include_batch_in_index", False)

    def run(x: NDArray[Any]) -> list[NDArray[Any]]:
        windows = sliding.windows(_image_sizes(x, 4), kernel)
        places = np.arange(x.size, dtype=np.int64).reshape(x.shape)
        if not counts_images and len(x):
            places %= x[0].size
        shape = (len(x), *(window.output for window in windows), x.shape[3])
        require(shape, np.int64)
        y, indices = np.zeros(shape, x.dtype), np.full(shape, -1, np.int64)
        for _, outputs, inputs in Window.overlaps(windows):
            values = x[inputs]
            is_better = (values > y[outputs]) | (indices[outputs] < 0)
            np.copyto(y[outputs], values, where=is_better)
            np.copyto(indices[outputs], places[inputs], where=is_better)
        return [y, indices.astype(index_dtype, copy=False)]

    return run


@operator("Dilation2D", types=REAL)
def dilation2d(node: FlexNode) -> Step:
    """Return a function that adds a filter ``[KH, KW, C]`` to each window and takes the maximum."""
    sliding = Sliding.of(node, dilations="rates")
    lowest = _lowest(node.type("T").dtype)

    def run(x: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        sizes = _image_sizes(x, 4)
        if weight.ndim != 3 or weight.shape[2] != x.shape[3]:
            shapes = f"{list(x.shape)} and {list(weight.shape)}"
            raise ValueError(f"input and filter have shapes {shapes}, expected equal channels")
        windows = sliding.windows(sizes, weight.shape[:2])
        shape = (len(x), *(window.output for window in windows), x.shape[3])
        require(shape, x.dtype)
        y = np.full(shape, lowest, x.dtype)
        for tap, outputs, inputs in Window.overlaps(windows):
            part = y[outputs]
            np.fmax(part, x[inputs] + weight[tap], out=part)
        return y

    return run


@operator("ExtractImagePatches", types=REAL | COMPLEX)
def extract_image_patches(node: FlexNode) -> Step:
    """Return a function that collects each window's values: ``[N, OH, OW, KH * KW * C]``."""
    sliding = Sliding.of(node, dilations="rates")
    kernel = spatial(node, "ksizes")

    def run(x: NDArray[Any]) -> NDArray[Any]:
        windows = patches(x, sliding.windows(_image_sizes(x, 4), kernel))
        depth = kernel[0] * kernel[1] * x.shape[3]
        require(windows.shape, x.dtype)
        return windows.reshape(*windows.shape[:3], depth)

    return run
