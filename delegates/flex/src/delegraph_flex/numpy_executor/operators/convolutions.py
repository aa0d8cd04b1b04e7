"""Convolutions: products of windows and filters.

Source:
    core/kernels/conv_ops.cc, conv_ops_3d.cc, depthwise_conv_op.cc and
    conv_ops_fused_image_transform.cc.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import Window
from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.registry import FLOATS, operator
from delegraph_flex.numpy_executor.windows import Sliding, patches, surrounded, tap_index

_TILE_VALUES = 1 << 22
"""Largest number of window values that are copied to memory at a time."""

Convolve = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


@operator("Conv2D", types=FLOATS | {DataType.INT32})
def conv2d(node: FlexNode) -> Step:
    """Return a function that convolves images with filters ``[KH, KW, C / groups, O]``."""
    return convolution(node, Sliding.of(node))


@operator("Conv3D", types=FLOATS)
def conv3d(node: FlexNode) -> Step:
    """Return a function that convolves volumes with filters ``[KD, KH, KW, C, O]``."""
    sliding = Sliding.of(node)
    require_no_dilations(sliding)
    return convolution(node, sliding)


@operator("FusedPadConv2D", types=FLOATS)
def fused_pad_conv2d(node: FlexNode) -> Step:
    """Return a function that pads images by mirroring, then convolves them."""
    is_reflect = node.choice("mode", ("REFLECT", "SYMMETRIC")) == "REFLECT"
    convolve = convolution(node, Sliding.of(node))

    def run(x: NDArray[Any], edges: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        limits = [size - is_reflect for size in x.shape]
        if edges.shape != (x.ndim, 2) or (edges < 0).any() or (edges.max(axis=1) > limits).any():
            raise ValueError(f"paddings are {edges.tolist()}, expected two of at most {limits}")
        x = np.pad(x, edges.tolist(), mode="reflect" if is_reflect else "symmetric")
        return convolve(x, weight)

    return run


def require_no_dilations(sliding: Sliding) -> None:
    """Check that *sliding* has no dilations; TensorFlow's CPU kernels do not support them.

    Raises:
        Unsupported: a dilation is not 1.
    """
    if any(step != 1 for step in sliding.dilations):
        raise Unsupported(f"attribute 'dilations' is {list(sliding.dilations)}, expected 1")


def convolution(node: FlexNode, sliding: Sliding) -> Convolve:
    """Return the function that computes a convolution with any number of spatial axes.

    *sliding* is the geometry of the windows.
    """
    dtype, compute = node.type("T").dtype, node.type("T").wide
    rank = len(sliding.strides) + 2

    def run(x: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        groups = _groups(x, weight, rank)
        windows = sliding.windows(x.shape[1:-1], weight.shape[:-2])
        require((len(x), *(window.output for window in windows), weight.shape[-1]), compute)
        x, weight = x.astype(compute, copy=False), weight.astype(compute, copy=False)
        parts = [
            _convolved(part, filters, windows)
            for part, filters in zip(
                np.split(x, groups, axis=-1), np.split(weight, groups, axis=-1), strict=True
            )
        ]
        y = parts[0] if groups == 1 else np.concatenate(parts, axis=-1)
        return y.astype(dtype, copy=False)

    return run


def _groups(x: NDArray[Any], weight: NDArray[Any], rank: int) -> int:
    if x.ndim != rank or weight.ndim != rank:
        shapes = f"{list(x.shape)} and {list(weight.shape)}"
        raise ValueError(f"input and filter have shapes {shapes}, expected {rank} dimensions each")
    channels, depth, outputs = x.shape[-1], weight.shape[-2], weight.shape[-1]
    if 0 in weight.shape[:-1] or channels % depth or channels < depth:
        raise ValueError(f"input has {channels} channels, expected a multiple of {depth}")
    groups = int(channels // depth)
    if outputs % groups:
        raise ValueError(f"{outputs} filters do not divide into {groups} groups")
    return groups


def _convolved(x: NDArray[Any], weight: NDArray[Any], windows: Sequence[Window]) -> NDArray[Any]:
    """Return the convolution of *x* with *weight*, without groups: ``[N, *outputs, O]``."""
    sizes, outputs = tuple(window.output for window in windows), weight.shape[-1]
    matrix = weight.reshape(math.prod(weight.shape[:-1]), outputs)
    if all(window.is_pointwise for window in windows):
        product: NDArray[Any] = x.reshape(-1, len(matrix)) @ matrix
        return product.reshape(*x.shape[:-1], outputs)
    views = patches(x, windows)
    y = np.empty((len(x), *sizes, outputs), x.dtype)
    row_values = math.prod(sizes[1:]) * len(matrix)
    if len(x) * sizes[0] * row_values <= _TILE_VALUES:
        rows = len(x) * math.prod(sizes)
        np.matmul(views.reshape(rows, len(matrix)), matrix, out=y.reshape(rows, outputs))
        return y
    require((row_values,), x.dtype)
    rows = max(_TILE_VALUES // row_values, 1)
    for image, result in zip(views, y, strict=True):
        for start in range(0, sizes[0], rows):
            tile = result[start : start + rows].reshape(-1, outputs)
            np.matmul(image[start : start + rows].reshape(-1, len(matrix)), matrix, out=tile)
    return y


@operator("DepthwiseConv2dNative", types=FLOATS)
def depthwise_conv2d(node: FlexNode) -> Step:
    """Function that convolves each channel separately, with filters ``[KH, KW, C, multiplier]``."""
    sliding = depthwise_sliding(node)
    dtype, compute = node.type("T").dtype, node.type("T").wide

    def run(x: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
        require_depthwise(x.shape, weight)
        windows = sliding.windows(x.shape[1:-1], weight.shape[:2])
        channels, multiplier = weight.shape[2:]
        sizes = tuple(window.output for window in windows)
        require((len(x), *sizes, channels, multiplier), compute)
        x = surrounded(x.astype(compute, copy=False), windows)[..., np.newaxis]
        y = np.zeros((len(x), *sizes, channels, multiplier), compute)
        for tap in itertools.product(*map(range, weight.shape[:2])):
            y += x[tap_index(windows, tap)] * weight[tap].astype(compute, copy=False)
        return y.reshape(*y.shape[:3], channels * multiplier).astype(dtype, copy=False)

    return run


def depthwise_sliding(node: FlexNode) -> Sliding:
    """Return the window geometry of a depthwise node, if TensorFlow's kernels support it.

    Raises:
        Unsupported: there are dilations, or the strides differ.
    """
    sliding = Sliding.of(node)
    require_no_dilations(sliding)
    if len(set(sliding.strides)) > 1:
        raise Unsupported(f"attribute 'strides' is {list(sliding.strides)}, expected equal ones")
    return sliding


def require_depthwise(shape: Sequence[int], weight: NDArray[Any]) -> None:
    """Check that *weight*, depthwise filters, fits an image of *shape*.

    Raises:
        ValueError: the filters do not fit the image.
    """
    if len(shape) != 4 or weight.ndim != 4 or shape[3] != weight.shape[2] or 0 in weight.shape:
        shapes = f"{list(shape)} and {list(weight.shape)}"
        raise ValueError(f"input and filter have shapes {shapes}, expected as many channels")
