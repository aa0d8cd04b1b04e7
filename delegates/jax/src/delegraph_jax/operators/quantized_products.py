"""Quantized CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED, bit for bit as in TFLite.

Activations have 8 or 16 bits. Sums are computed from int8 products in int32, for which XLA has fast
code. For that, unsigned numbers are shifted by 128, and 16-bit numbers are split into two 8-bit
numbers. The effect of zero points is subtracted from the sums afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph.arithmetic import (
    LARGEST_BIAS,
    Scaling,
    Window,
    convolution_windows,
    fully_connected_scaling,
    is_in_scalar_tail,
    quantized_activation_range,
    scaling_of,
)
from delegraph_jax.operators.convolution import MOST_TAPS, pads, sum_of_taps
from delegraph_jax.operators.registry import Call, operator

Multiply = Callable[[Any, Any], Any]
"""Function that returns the sums of products of int8 values and weights, ``[..., O], int32``."""


def exact_sums(
    x: Any, x_zero: int, weight: Any, w_zero: int, multiply: Multiply, groups: int = 1
) -> Any:
    """Return the sums of ``(x - x_zero) * (weight - w_zero)``.

    Args:
        x: activations, int8, uint8 or int16.
        x_zero: zero point of *x*.
        weight: weights, ``[..., O]``, int8 or uint8.
        w_zero: zero point of *weight*.
        multiply: function that returns the sums of products of int8 values and weights.
        groups: number of groups into which inputs and outputs are divided.

    Returns:
        ``[..., O]``, int32, or int64 if *x* is int16.
    """
    if x.dtype == np.int16:
        low = ((x & 255) - 128).astype(np.int8)
        high = (x >> 8).astype(np.int8)
        upper = exact_sums(high, 0, weight, w_zero, multiply, groups).astype(np.int64) << 8
        return upper + exact_sums(low, x_zero - 128, weight, w_zero, multiply, groups)
    x, x_zero = _signed(x, x_zero)
    weight, w_zero = _signed(weight, w_zero)
    sums = multiply(x, weight)
    reduced = tuple(range(weight.ndim - 1))
    if x_zero:
        sums = sums - x_zero * weight.astype(np.int32).sum(reduced)
    if w_zero:
        ones = np.ones((*weight.shape[:-1], groups), np.int8)
        inputs = multiply(x, ones) - x_zero * math.prod(weight.shape[:-1])
        sums = sums - w_zero * jnp.repeat(inputs, weight.shape[-1] // groups, -1)
    return sums


def _signed(values: Any, zero_point: int) -> tuple[Any, int]:
    """Return *values* as int8, and their zero point; both are 128 less if the values are uint8."""
    if values.dtype != np.uint8:
        return values, zero_point
    if isinstance(values, np.ndarray):
        return (values ^ np.uint8(128)).view(np.int8), zero_point - 128
    return lax.bitcast_convert_type(values ^ np.uint8(128), np.int8), zero_point - 128


def finish(call: Call, sums: Any, scaling: Scaling, bias: Any) -> Any:
    """Return *sums* plus *bias*, requantised by *scaling* and clamped by the fused activation."""
    y = call.outputs[0]
    low, high = quantized_activation_range(call.options.fused_activation_function, y)
    wide = sums.astype(np.int64)
    if bias is not None:
        wide = wide + bias.reshape(-1).astype(np.int64).clip(-LARGEST_BIAS, LARGEST_BIAS)
    scaled = scaling.exact(wide).astype(np.int64)
    return (scaled + y.zero_point).clip(low, high).astype(y.dtype)


def _padded(x: Any, windows: tuple[Window, ...], filler: int) -> Any:
    """Return the image *x* padded with *filler*, or cropped, so that the windows fit."""
    edges = [(0, 0, 0), *((low, high, 0) for low, high in pads(windows)), (0, 0, 0)]
    return lax.pad(x, np.asarray(filler, x.dtype), edges)


def convolution(windows: tuple[Window, ...], groups: int) -> Multiply:
    """Return the function that convolves an image with weights, to be used by :func:`exact_sums`.

    The function's arguments are int8: an image ``[N, H, W, C]``, padded already, and weights ``[KH,
    KW, C / groups, O]``. It adds no padding, and returns the sums of products, ``[N, OH, OW, O],
    int32``.

    Of the *windows*, only strides and dilations are used.
    """

    def multiply(x: Any, weight: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            weight,
            [each.stride for each in windows],
            "VALID",
            rhs_dilation=[each.dilation for each in windows],
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
            preferred_element_type=np.int32,
        )

    return multiply


def conv_2d(call: Call) -> Any:
    """Return the result of CONV_2D, with filters ``[O, KH, KW, C / groups]``."""
    x, weight = call.input(0), call.input(1).transpose(1, 2, 3, 0)
    tensors = call.tensor(0), call.tensor(1), call.optional_tensor(2)
    windows = convolution_windows(call.options, x.shape, weight.shape[:2])
    groups = x.shape[3] // weight.shape[2]
    scaling = scaling_of(
        *tensors,
        call.outputs[0],
        weight.shape[3],
        call.numerics,
        halves_away=groups > 1,
        sums_int64=tensors[2] is not None and tensors[2].type.name == "INT64",
    )
    zero, w_zero = tensors[0].zero_point, tensors[1].zero_point
    padded = _padded(x, windows, zero)
    sums = exact_sums(padded, zero, weight, w_zero, convolution(windows, groups), groups)
    return finish(call, sums, scaling, call.optional(2))


def depthwise_conv_2d(call: Call) -> Any:
    """Return the result of DEPTHWISE_CONV_2D, with filters ``[1, KH, KW, O]``."""
    x, weight = call.input(0), call.input(1)
    tensors = call.tensor(0), call.tensor(1), call.optional_tensor(2)
    windows = convolution_windows(call.options, x.shape, weight.shape[1:3])
    channels = weight.shape[3]
    scaling = scaling_of(
        *tensors,
        call.outputs[0],
        channels,
        call.numerics,
        halves_away=is_in_scalar_tail(channels) if x.dtype == np.int8 else True,
        sums_int64=x.dtype == np.int16,
    )
    zero, w_zero = tensors[0].zero_point, tensors[1].zero_point
    centred = x.astype(np.int32) - zero
    weights = weight[0].astype(np.int32) - w_zero
    wide = np.int64 if windows[0].kernel * windows[1].kernel > MOST_TAPS else np.int32
    sums = sum_of_taps(centred.astype(wide), weights.astype(wide), windows)
    return finish(call, sums, scaling, call.optional(2))


def fully_connected(call: Call) -> Any:
    """Return the result of FULLY_CONNECTED, with weights ``[O, C]``."""
    weight = call.input(1).transpose(1, 0)
    x, y = call.tensor(0), call.outputs[0]
    rows = call.rows(0, weight.shape[0])
    scaling = fully_connected_scaling(
        x,
        call.tensor(1),
        call.optional_tensor(2),
        y,
        call.options.quantized_bias_type,
        call.numerics,
    )
    sums = exact_sums(rows, x.zero_point, weight, call.tensor(1).zero_point, product)
    return finish(call, sums, scaling, call.optional(2)).reshape(call.shape)


def product(x: Any, weight: Any) -> Any:
    """Return *x* @ *weight* as int32: int8 rows times an int8 matrix; see :data:`Multiply`."""
    return jnp.matmul(x, weight, preferred_element_type=np.int32)


_EIGHT_BIT: list[dict[str, Any]] = [
    {"types": ("INT8",), "weights": ("INT8", "INT4"), "bias": "INT32"},
    {"types": ("UINT8",), "bias": "INT32"},
]
_INT16: dict[str, Any] = {
    "types": ("INT16",),
    "weights": ("INT8", "INT4"),
    "bias": ("INT32", "INT64"),
}
_DEPTHWISE_INT16: dict[str, Any] = {"types": ("INT16",), "weights": "INT8", "bias": "INT64"}

for _form in (*_EIGHT_BIT, _INT16):
    operator("CONV_2D", features=("computed-weights",), **_form)(conv_2d)
    operator("FULLY_CONNECTED", features=("computed-weights", "sparse"), **_form)(fully_connected)
for _form in (*_EIGHT_BIT, _DEPTHWISE_INT16):
    operator("DEPTHWISE_CONV_2D", features=("computed-weights",), **_form)(depthwise_conv_2d)
