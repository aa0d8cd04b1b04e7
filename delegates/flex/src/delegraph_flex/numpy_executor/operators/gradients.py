"""Gradients for training on a device: of filters, biases, pooling and normalization.

Gradients of convolutions with respect to their input are in ``transposed_convolutions``.

Source:
    core/kernels/conv_grad_filter_ops.cc, conv_grad_ops_3d.cc, depthwise_conv_grad_op.cc,
    bias_op.cc, maxpooling_op.cc, avgpooling_op.cc, fused_batch_norm_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import Window
from delegraph_flex.data_types import DataType, widened
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import requested_shape
from delegraph_flex.numpy_executor.operators.convolutions import (
    depthwise_sliding,
    require_no_dilations,
)
from delegraph_flex.numpy_executor.operators.normalization import batch_norm_formats
from delegraph_flex.numpy_executor.registry import FLOATS, REAL, operator
from delegraph_flex.numpy_executor.windows import Sliding, spatial, surrounded, tap_index

Array = NDArray[Any]


@operator("BiasAddGrad", types=FLOATS)
def bias_add_grad(node: FlexNode) -> Step:
    """Return a function that sums over all axes except the channels."""
    is_last = node.choice("data_format", ("NHWC", "NCHW"), "NHWC") == "NHWC"

    def run(dy: Array) -> Array:
        if dy.ndim < 2:
            raise ValueError(f"gradient has shape {list(dy.shape)}, expected 2 dimensions or more")
        axes = tuple(range(dy.ndim - 1)) if is_last else (0, *range(2, dy.ndim))
        sums: Array = widened(dy).sum(axis=axes)
        return sums.astype(dy.dtype, copy=False)

    return run


@operator("Conv2DBackpropFilter", "Conv3DBackpropFilterV2", types=FLOATS)
def conv_backprop_filter(node: FlexNode) -> Step:
    """Return a function for a convolution's gradient with respect to its filters.

    The filters are ``[KH, KW, C, O]``, or ``[KD, KH, KW, C, O]`` for volumes.
    """
    sliding = Sliding.of(node)
    require_no_dilations(sliding)

    def gather(x: Array, dy: Array) -> Array:
        sums: Array = x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
        return sums

    return _of_filters(sliding, gather, lambda channels, depth: channels[1] == depth)


@operator("DepthwiseConv2dNativeBackpropFilter", types=FLOATS)
def depthwise_conv2d_backprop_filter(node: FlexNode) -> Step:
    """Return a function for a depthwise convolution's gradient with respect to its filters."""

    def gather(x: Array, dy: Array) -> Array:
        per_channel = dy.reshape(*x.shape, dy.shape[-1] // x.shape[-1])
        sums: Array = (x[..., np.newaxis] * per_channel).sum(axis=(0, 1, 2))
        return sums

    return _of_filters(depthwise_sliding(node), gather, lambda c, depth: c[0] * c[1] == depth)


def _of_filters(
    sliding: Sliding,
    gather: Callable[[Array, Array], Array],
    fits: Callable[[tuple[int, ...], int], bool],
) -> Step:
    """Return the function that computes a convolution's gradient with respect to its filters.

    *gather* computes a tap's gradient from the tap's input and the output's gradient. *fits* says
    whether the last two sizes of filters fit a number of output channels.
    """
    axes = len(sliding.strides)

    def run(x: Array, sizes: Array, dy: Array) -> Array:
        shape = requested_shape(sizes, np.result_type(x, np.float32))
        is_fitting = len(shape) == x.ndim == dy.ndim == axes + 2
        if not is_fitting or shape[-2] != x.shape[-1] or not fits(shape[-2:], dy.shape[-1]):
            shapes = f"{list(x.shape)}, {list(shape)} and {list(dy.shape)}"
            raise ValueError(f"input, filter and gradient have shapes {shapes}")
        windows = sliding.windows(x.shape[1:-1], shape[:axes])
        _require_outputs(dy, len(x), windows)
        padded, wide = surrounded(widened(x), windows), widened(dy)
        gradient = np.empty(shape, padded.dtype)
        for tap in product(*map(range, shape[:axes])):
            gradient[tap] = gather(padded[tap_index(windows, tap)], wide)
        return gradient.astype(x.dtype, copy=False)

    return run


def _require_outputs(dy: Array, images: int, windows: Sequence[Window]) -> None:
    expected = (images, *(window.output for window in windows))
    if dy.shape[:-1] != expected:
        raise ValueError(f"gradient has {list(dy.shape[:-1])} places, expected {list(expected)}")


@operator("MaxPoolGrad", types=REAL - {DataType.UINT32, DataType.UINT64})
def max_pool_grad(node: FlexNode) -> Step:
    """Return a function for the gradient of max pooling.

    The gradient goes to the first maximum of a window.
    """
    sliding = Sliding.of(node)
    kernel = spatial(node, "ksize")

    def run(x: Array, y: Array, dy: Array) -> Array:
        if x.ndim != 4 or y.shape != dy.shape or dy.ndim != 4:
            shapes = f"{list(x.shape)}, {list(y.shape)} and {list(dy.shape)}"
            raise ValueError(f"input, output and gradient have shapes {shapes}")
        windows = sliding.windows(x.shape[1:-1], kernel)
        _require_outputs(dy, len(x), windows)
        dx, is_open = np.zeros_like(x), np.ones(dy.shape, bool)
        for _, outputs, inputs in Window.overlaps(windows):
            is_first = is_open[outputs] & (x[inputs] == y[outputs])
            is_open[outputs] &= ~is_first
            dx[inputs] += np.where(is_first, dy[outputs], dx.dtype.type(0))
        return dx

    return run


@operator("AvgPoolGrad", types=FLOATS)
def average_pool_grad(node: FlexNode) -> Step:
    """Function for the gradient of average pooling, from input shape and output gradient."""
    sliding = Sliding.of(node)
    kernel = spatial(node, "ksize")

    def run(sizes: Array, dy: Array) -> Array:
        shape = requested_shape(sizes, np.result_type(dy, np.float32))
        if len(shape) != 4 or dy.ndim != 4 or shape[3] != dy.shape[3]:
            raise ValueError(f"input and gradient have shapes {list(shape)} and {list(dy.shape)}")
        windows = sliding.windows(shape[1:-1], kernel)
        _require_outputs(dy, shape[0], windows)
        down, across = (window.inputs_of_outputs() for window in windows)
        wide = widened(dy)
        share = wide / np.outer(down, across)[:, :, np.newaxis].astype(wide.dtype)
        dx = np.zeros(shape, wide.dtype)
        for _, outputs, inputs in Window.overlaps(windows):
            dx[inputs] += share[outputs]
        return dx.astype(dy.dtype, copy=False)

    return run


@operator("FusedBatchNormGrad", types=(DataType.FLOAT32,))
@operator("FusedBatchNormGradV2", "FusedBatchNormGradV3", types=FLOATS - {DataType.FLOAT64})
def batch_norm_gradient(node: FlexNode) -> Step:
    """Function for the gradients of batch normalization with respect to input, scale, offset.

    Version 3 also takes 3D images.
    """
    formats = batch_norm_formats(node)
    is_training = node.bool("is_training", True)
    if not is_training:  # TensorFlow's kernel for the CPU does the same
        formats = tuple(name for name in formats if name.endswith("C"))
    axis = node.choice("data_format", formats, "NHWC").index("C")
    epsilon = np.float32(node.float("epsilon", 1e-4))

    def run(dy: Array, x: Array, scale: Array, *reserved: Array) -> list[Array]:
        channels = x.shape[axis] if axis < x.ndim else -1
        if dy.shape != x.shape or any(p.shape != (channels,) for p in (scale, *reserved[:2])):
            shapes = f"{list(dy.shape)}, {list(x.shape)} and {list(scale.shape)}"
            raise ValueError(f"gradient, input and scale have shapes {shapes}")
        mean, variance = reserved[:2]
        inverse = np.float32(1) / np.sqrt(variance + epsilon)
        gradient, values = (np.moveaxis(widened(array), axis, -1) for array in (dy, x))
        axes = tuple(range(x.ndim - 1))
        centred = values - mean
        offset, products = gradient.sum(axis=axes), (gradient * centred).sum(axis=axes)
        dx = gradient
        if is_training and x.size:
            count = np.float32(x.size / channels)
            dx = gradient - offset / count - centred * (products / count * np.square(inverse))
        dx = np.moveaxis(dx * (scale * inverse), -1, axis).astype(x.dtype, copy=False)
        nothing = np.zeros(0, np.float32)
        return [np.ascontiguousarray(dx), products * inverse, offset, nothing, nothing]

    return run
