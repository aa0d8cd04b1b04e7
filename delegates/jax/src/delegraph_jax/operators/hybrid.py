"""Products of float activations, which are quantized at each invoke, and integer weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph import Node, Rejection, Tensor
from delegraph.arithmetic import convolution_windows, rows_have_zero_points
from delegraph_jax.operators.convolution import finish, pads, sum_of_taps
from delegraph_jax.operators.fused import check_clamp
from delegraph_jax.operators.quantized_products import convolution, exact_sums, product
from delegraph_jax.operators.registry import Call, Check, operator
from delegraph_jax.operators.rounding import rounded

_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))
"""Number that is added before truncation, so that halves are rounded up, but nothing less.

The number is a little below 0.5, since adding 0.5 would also round up the largest number below a
half.
"""

_ROLES: dict[str, Any] = {
    "types": ("FLOAT32",),
    "weights": ("INT8", "INT4"),
    "features": ("sparse",),
    "constants": (1,),
}


def quantized_rows(rows: Any, asymmetric: bool) -> tuple[Any, Any, Any]:
    """Return *rows*, ``[R, I], float32``, as int8, with the scale and the zero point of each row.

    Zero points are 0 unless *asymmetric* is true.

    Source:
        As in :func:`delegraph.arithmetic.quantize_rows.quantize_rows`.
    """
    low, high = rows.min(1, initial=0), rows.max(1, initial=0)
    scales, inverses, zero_points = (_asymmetric if asymmetric else _symmetric)(low, high)
    values = rounded(rows * inverses[:, None])
    values = jnp.trunc(values + jnp.copysign(_BELOW_HALF, values))
    values = values + zero_points.astype(np.float32)[:, None]
    least = -128 if asymmetric else -127
    return jnp.clip(values, least, 127).astype(np.int8), scales, zero_points


def _symmetric(low: Any, high: Any) -> tuple[Any, Any, Any]:
    largest = jnp.maximum(-low, high)
    some = jnp.where(largest == 0, np.float32(127), largest)
    # XLA would multiply by 1/127, which sometimes gives another float32.
    scales = (some.astype(np.float64) / 127).astype(np.float32)
    return scales, np.float32(127) / some, jnp.zeros(low.shape, np.int32)


def _asymmetric(low: Any, high: Any) -> tuple[Any, Any, Any]:
    least, most = low.astype(np.float64), high.astype(np.float64)
    scale = (high - low).astype(np.float64) / 255
    scale = jnp.where(least == most, 1.0, scale)
    is_low_closer = 128 + jnp.abs(least / scale) < 127 + jnp.abs(most / scale)
    zero_point = jnp.where(is_low_closer, -128 - least / scale, 127 - most / scale)
    zero_point = jnp.clip(zero_point, -128, 127)
    whole = jnp.trunc(zero_point + jnp.copysign(0.5, zero_point)).astype(np.int32)
    zero_point = jnp.where(least == most, 0, whole)
    return scale.astype(np.float32), 1 / scale.astype(np.float32), zero_point


def _scales(call: Call, channels: int) -> Any:
    """Return the scales of the weights, one for each of *channels* channels: ``[O], float32``."""
    quantization = call.tensor(1).quantization
    assert quantization is not None  # the check has made sure of it
    return np.broadcast_to(quantization.scales.astype(np.float32), (channels,))


def _scales_along(axis: int) -> Check:
    """Return a check that rejects weights without scales, with scales of blocks, or with too few.

    Weights need one scale, or one for each index of *axis*. The clamp is checked, too.
    """

    def check(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
        weight = tensors[node.inputs[1]]
        quantization = weight.quantization
        if quantization is None or quantization.block_size:
            return Rejection("scale", expected="one, or one a channel", tensor=weight.index)
        if len(quantization.scales) not in (1, weight.shape[axis]):
            return Rejection("scale", actual=len(quantization.scales), tensor=weight.index)
        return check_clamp(options, node, tensors)

    return check


@operator("FULLY_CONNECTED", check=_scales_along(0), **_ROLES)
def fully_connected(call: Call) -> Any:
    """Return the result of FULLY_CONNECTED, with weights ``[O, C]``."""
    weight = call.input(1).transpose(1, 0)
    rows = call.rows(0, weight.shape[0])
    is_asymmetric = bool(call.options.asymmetric_quantize_inputs)
    if call.numerics == "builtin":
        is_asymmetric = rows_have_zero_points(call.tensor(1), asked=is_asymmetric)
    q, scales, zero_points = quantized_rows(rows, is_asymmetric)
    sums = exact_sums(q, 0, weight, 0, product)
    sums = sums - zero_points[:, None] * weight.astype(np.int32).sum(0)
    scaled = sums.astype(np.float32) * (scales[:, None] * _scales(call, weight.shape[1]))
    return finish(call, scaled, call.optional(2)).reshape(call.shape)


def _quantized_images(x: Any, asymmetric: bool) -> tuple[Any, Any, Any]:
    """Return the images *x* as int8, with scales and zero points, ``[N, 1, 1, 1]``.

    Zero points are 0 unless *asymmetric* is true.
    """
    q, scales, zero_points = quantized_rows(x.reshape(len(x), -1), asymmetric)
    each = (len(x), 1, 1, 1)
    return q.reshape(x.shape), scales.reshape(each), zero_points.reshape(each)


@operator("CONV_2D", check=_scales_along(0), **_ROLES)
def conv_2d(call: Call) -> Any:
    """Return the result of CONV_2D, with filters ``[O, KH, KW, C / groups]``."""
    x, weight = call.input(0), call.input(1).transpose(1, 2, 3, 0)
    windows = convolution_windows(call.options, x.shape, weight.shape[:2])
    groups = x.shape[3] // weight.shape[2]
    scales = _scales(call, weight.shape[3])
    is_per_channel = bool((scales != scales[:1]).any()) or groups > 1
    q, image_scales, zero_points = _quantized_images(x, is_per_channel)
    edges = [(0, 0, 0), *((low, high, 0) for low, high in pads(windows)), (0, 0, 0)]
    inside = lax.pad(np.ones(x.shape, np.bool_), np.bool_(False), edges)
    padded = jnp.where(inside, lax.pad(q, np.int8(0), edges), zero_points.astype(np.int8))
    sums = exact_sums(padded, 0, weight, 0, convolution(windows, groups))
    sums = sums - zero_points * weight.astype(np.int32).sum((0, 1, 2))
    scaled = sums.astype(np.float32) * (scales * image_scales)
    return finish(call, scaled, call.optional(2))


@operator("DEPTHWISE_CONV_2D", check=_scales_along(-1), **{**_ROLES, "weights": "INT8"})
def depthwise_conv_2d(call: Call) -> Any:
    """Return the result of DEPTHWISE_CONV_2D, with filters ``[1, KH, KW, O]``."""
    x, weight = call.input(0), call.input(1)
    windows = convolution_windows(call.options, x.shape, weight.shape[1:3])
    q, image_scales, zero_points = _quantized_images(x, True)
    sums = sum_of_taps(q.astype(np.int32) - zero_points, weight[0].astype(np.int32), windows)
    scaled = sums.astype(np.float32) * (_scales(call, weight.shape[3]) * image_scales)
    return finish(call, scaled, call.optional(2))
