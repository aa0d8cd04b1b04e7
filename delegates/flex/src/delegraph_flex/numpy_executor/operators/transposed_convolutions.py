"""Gradients of convolutions with respect to their input, used as transposed convolutions.

Source:
    core/kernels/conv_grad_input_ops.cc, conv_grad_ops_3d.cc, depthwise_conv_grad_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import requested_shape, require
from delegraph_flex.numpy_executor.operators.convolutions import (
    depthwise_sliding,
    require_depthwise,
    require_no_dilations,
)
from delegraph_flex.numpy_executor.registry import FLOATS, operator
from delegraph_flex.numpy_executor.windows import Sliding, inside, rank_of, tap_index

Spread = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
"""Function that computes the values that a tap adds, from the gradient and the tap's weights."""


@operator("Conv2DBackpropInput", types=FLOATS | {DataType.INT32})
@operator("Conv3DBackpropInputV2", types=FLOATS)
def conv_backprop_input(node: FlexNode) -> Step:
    """Return a function for a transposed convolution with filters ``[KH, KW, C, O]``.

    Filters of volumes are ``[KD, KH, KW, C, O]``. Input 0 is the shape of the result.
    """
    sliding, rank = Sliding.of(node), rank_of(node)
    require_no_dilations(sliding)
    spread = _gradient(node, sliding, lambda dy, tap: dy @ tap.T)

    def run(sizes: NDArray[Any], weight: NDArray[Any], dy: NDArray[Any]) -> NDArray[Any]:
        if weight.ndim != rank or dy.ndim != rank or weight.shape[-1] != dy.shape[-1]:
            shapes = f"{list(weight.shape)} and {list(dy.shape)}"
            raise ValueError(f"filter and gradient have shapes {shapes}, expected equal outputs")
        shape = requested_shape(sizes, dy.dtype)
        if len(shape) == rank - 2:
            shape = (len(dy), *shape, weight.shape[-2])
        if len(shape) != rank or shape[-1] != weight.shape[-2]:
            raise ValueError(f"input sizes are {shape}, expected {weight.shape[-2]} channels")
        return spread(shape, weight, dy)

    return run


@operator("DepthwiseConv2dNativeBackpropInput", types=FLOATS)
def depthwise_conv2d_backprop_input(node: FlexNode) -> Step:
    """Function for a transposed depthwise convolution, with filters ``[KH, KW, C, multiplier]``."""
    sliding = depthwise_sliding(node)
    spread = _gradient(node, sliding, lambda dy, tap: (dy * tap).sum(axis=-1))

    def run(sizes: NDArray[Any], weight: NDArray[Any], dy: NDArray[Any]) -> NDArray[Any]:
        shape = requested_shape(sizes, dy.dtype)
        require_depthwise(shape, weight)
        channels, multiplier = weight.shape[2:]
        if dy.ndim != 4 or dy.shape[3] != channels * multiplier:
            raise ValueError(f"gradient has shape {list(dy.shape)}, expected {weight.shape[2:]}")
        return spread(shape, weight, dy.reshape(*dy.shape[:3], channels, multiplier))

    return run


def _gradient(
    node: FlexNode, sliding: Sliding, spread: Spread
) -> Callable[[Sequence[int], NDArray[Any], NDArray[Any]], NDArray[Any]]:
    """Return the function of the gradient, from the input's shape, filters and output gradient.

    *sliding* is the geometry of the windows; *spread* computes a tap's contribution to the input.
    """
    dtype, compute = node.type("T").dtype, node.type("T").wide
    spatial = len(sliding.strides)

    def run(shape: Sequence[int], weight: NDArray[Any], dy: NDArray[Any]) -> NDArray[Any]:
        require(shape, compute)
        windows = sliding.windows(shape[1:-1], weight.shape[:spatial])
        expected = (shape[0], *(window.output for window in windows))
        if dy.shape[: spatial + 1] != expected:
            shapes = f"{list(dy.shape[: spatial + 1])}, expected {list(expected)}"
            raise ValueError(f"gradient has shape {shapes}")
        weight, dy = weight.astype(compute, copy=False), dy.astype(compute, copy=False)
        padded = (shape[0], *(window.padded for window in windows), shape[-1])
        require(padded, compute)
        dx = np.zeros(padded, compute)
        for tap in product(*map(range, weight.shape[:spatial])):
            dx[tap_index(windows, tap)] += spread(dy, weight[tap])
        return dx[inside(windows)].astype(dtype, copy=False)

    return run
