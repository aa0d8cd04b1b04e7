"""Convolutions of images and volumes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph.arithmetic import Window, convolution_windows, window
from delegraph_jax.operators.fused import check_clamp, clamp
from delegraph_jax.operators.registry import FLOATS, Call, operator

MOST_TAPS = 49
"""Largest number of taps for which DEPTHWISE_CONV_2D becomes a sum.

XLA's own depthwise convolution is slow on processors.
"""


def pads(windows: tuple[Window, ...]) -> list[tuple[int, int]]:
    """Return the zeros before and after each axis that *windows* need; negative numbers crop."""
    found = []
    for each in windows:
        reach = (each.output - 1) * each.stride + each.span if each.output else 0
        found.append((each.before, reach - each.before - each.input))
    return found


def _convolve(
    call: Call, x: Any, weight: Any, windows: tuple[Window, ...], layout: str, groups: int
) -> Any:
    """Return the convolution of *x* with *weight*, with bias and activation applied.

    *layout* has the letters of the weight's axes, such as ``HWIO``; the input is ``[N, ..., C]``.
    """
    axes = "DHW"[-len(windows) :]
    y = lax.conv_general_dilated(
        x,
        weight,
        [each.stride for each in windows],
        pads(windows),
        rhs_dilation=[each.dilation for each in windows],
        dimension_numbers=(f"N{axes}C", layout, f"N{axes}C"),
        feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
    )
    return finish(call, y, call.optional(2))


def finish(call: Call, y: Any, bias: Any) -> Any:
    """Return *y* plus *bias*, if it is not None, with the fused activation applied."""
    return clamp(call.options, y if bias is None else y + bias.reshape(-1))


@operator("CONV_2D", FLOATS, features=("computed-weights",), check=check_clamp)
def conv_2d(call: Call) -> Any:
    """Return the convolution with filters ``[O, KH, KW, C / groups]``."""
    x, weight = call.input(0), call.input(1)
    windows = convolution_windows(call.options, x.shape, weight.shape[1:3])
    groups = x.shape[3] // weight.shape[3]
    return _convolve(call, x, weight.transpose(1, 2, 3, 0), windows, "HWIO", groups)


@operator("DEPTHWISE_CONV_2D", FLOATS, features=("computed-weights",), check=check_clamp)
def depthwise_conv_2d(call: Call) -> Any:
    """Return the depthwise convolution with filters ``[1, KH, KW, O]``."""
    x, weight = call.input(0), call.input(1)
    windows = convolution_windows(call.options, x.shape, weight.shape[1:3])
    if windows[0].kernel * windows[1].kernel > MOST_TAPS:
        return _convolve(call, x, weight.transpose(1, 2, 0, 3), windows, "HWIO", x.shape[3])
    return finish(call, sum_of_taps(x, weight[0], windows), call.optional(2))


def sum_of_taps(x: Any, weight: Any, windows: tuple[Window, Window]) -> Any:
    """Return the depthwise convolution as a sum over taps: shifted *x* times a row of *weight*.

    *weight* is ``[KH, KW, O]``.
    """
    n, _, _, channels = x.shape
    multiplier = weight.shape[2] // channels
    edges = [(0, 0, 0), *((low, high, 0) for low, high in pads(windows)), (0, 0, 0)]
    padded = lax.pad(x, np.zeros((), x.dtype), edges)
    down, across = windows
    rows, columns = ((each.output - 1) * each.stride + 1 for each in windows)
    total = jnp.zeros((n, down.output, across.output, channels, multiplier), x.dtype)
    for i, j in np.ndindex(down.kernel, across.kernel):
        top, left = i * down.dilation, j * across.dilation
        part = padded[:, top : top + rows : down.stride, left : left + columns : across.stride]
        total += part[..., None] * weight[i, j].reshape(channels, multiplier)
    return total.reshape(n, down.output, across.output, channels * multiplier)


@operator("CONV_3D", FLOATS, features=("computed-weights",), check=check_clamp)
def conv_3d(call: Call) -> Any:
    """Return the convolution with filters ``[KD, KH, KW, C, O]``."""
    x, weight, o = call.input(0), call.input(1), call.options
    steps = (o.stride_d, o.stride_h, o.stride_w)
    dilations = (o.dilation_d_factor, o.dilation_h_factor, o.dilation_w_factor)
    windows = tuple(
        window(o.padding, *each)
        for each in zip(x.shape[1:4], weight.shape[:3], steps, dilations, strict=True)
    )
    return _convolve(call, x, weight, windows, "DHWIO", x.shape[4] // weight.shape[3])


@operator(
    "TRANSPOSE_CONV",
    (*FLOATS, "INT32"),
    features=("computed-weights",),
    constants=(0,),
    check=check_clamp,
)
def transpose_conv(call: Call) -> Any:
    """Return the transposed convolution with filters ``[O, KH, KW, C]``."""
    weight, x = call.input(1), call.input(2)
    y = lax.conv_general_dilated(
        x,
        jnp.flip(weight, (1, 2)),
        (1, 1),
        transposed_edges(call),
        lhs_dilation=(call.options.stride_h, call.options.stride_w),
        dimension_numbers=("NHWC", "OHWI", "NHWC"),
        precision=lax.Precision.HIGHEST,
    )
    return finish(call, y, call.optional(3))


def transposed_edges(call: Call) -> list[tuple[int, int]]:
    """Return the numbers of zeros around each axis of TRANSPOSE_CONV's dilated input."""
    o, edges = call.options, []
    for axis, stride in ((1, o.stride_h), (2, o.stride_w)):
        output, kernel = call.shape[axis], call.input(1).shape[axis]
        count = call.input(2).shape[axis]
        low = kernel - 1 - window(o.padding, output, kernel, stride).before
        edges.append((low, output + kernel - 1 - low - ((count - 1) * stride + 1)))
    return edges
