"""Pools and resizing of quantized images, with the official results bit for bit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph.arithmetic import fixed_taps, float_taps, quantized_activation_range
from delegraph_jax.operators.pooling import counts, reduced, windows_of
from delegraph_jax.operators.registry import QUANTIZED, Call, operator
from delegraph_jax.operators.rounding import rounded


def _clamp(call: Call, y: Any) -> Any:
    output = call.outputs[0]
    low, high = quantized_activation_range(call.options.fused_activation_function, output)
    return y.clip(low, high).astype(output.dtype)


@operator("AVERAGE_POOL_2D", QUANTIZED)
def average_pool_2d(call: Call) -> Any:
    """Return the means of the windows, with halves rounded away from zero."""
    windows = windows_of(call)
    sums = reduced(call.input(0).astype(np.int32), windows, 0, lax.add)
    shared = counts(windows).astype(np.int32)[..., None]
    half = jnp.where(sums < 0, -(shared // 2), shared // 2)
    return _clamp(call, lax.div(sums + half, jnp.broadcast_to(shared, sums.shape)))


@operator("MAX_POOL_2D", QUANTIZED)
def max_pool_2d(call: Call) -> Any:
    """Return the maximum of each window, clamped by the fused activation."""
    x = call.input(0)
    return _clamp(call, reduced(x, windows_of(call), np.iinfo(x.dtype).min, lax.max))


@operator("RESIZE_BILINEAR", ("INT8", "INT16"), size="INT32", constants=(1,))
def resize_bilinear(call: Call) -> Any:
    """Return the resized image; shares are in 2**-10, and halves are rounded away from zero."""
    x, o = call.input(0), call.options
    total = x.astype(np.int32 if x.dtype.itemsize == 1 else np.int64)
    if 0 in call.shape:
        return jnp.zeros(call.shape, x.dtype)
    for axis in (2, 1):
        lengths = x.shape[axis], call.shape[axis]
        taps = fixed_taps(*lengths, o.align_corners, o.half_pixel_centers)
        share = taps.share.reshape(-1, *(1,) * (3 - axis)).astype(total.dtype)
        low, high = jnp.take(total, taps.low, axis), jnp.take(total, taps.high, axis)
        total = low * ((1 << 10) - share) + high * share
    return (total + (1 << 19) - (total < 0)) >> 20


@operator("RESIZE_BILINEAR", ("UINT8",), size="INT32", constants=(1,))
def resize_bilinear_uint8(call: Call) -> Any:
    """Return the resized image, interpolated in float32, with products added in official order."""
    x, o = call.input(0), call.options
    if 0 in call.shape:
        return jnp.zeros(call.shape, x.dtype)
    rows, columns = (
        float_taps(x.shape[axis], call.shape[axis], o.align_corners, o.half_pixel_centers)
        for axis in (1, 2)
    )
    down, across = rows.share[:, None, None], columns.share[None, :, None]
    source = x.astype(np.float32)
    corners = [
        (jnp.take(jnp.take(source, i, 1), j, 2), one, other)
        for i, one in ((rows.low, 1 - down), (rows.high, down))
        for j, other in ((columns.low, 1 - across), (columns.high, across))
    ]
    if call.numerics == "builtin":
        parts = [rounded(pixels * (one * other)) for pixels, one, other in corners]
    else:  # column by column
        parts = [rounded(rounded(pixels * one) * other) for pixels, one, other in corners]
        parts = [parts[i] for i in (0, 2, 1, 3)]
    return parts[0] + parts[1] + parts[2] + parts[3] + np.float32(0.5)
