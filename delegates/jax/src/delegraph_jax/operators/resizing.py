"""Operators that resize images."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from delegraph.arithmetic import float_taps, nearest_positions
from delegraph_jax.operators.registry import HALVES, QUANTIZED, Call, operator


@operator("RESIZE_BILINEAR", ("FLOAT32", "INT32"), constants=(1,))
def resize_bilinear(call: Call) -> Any:
    """Return the image resized by bilinear interpolation."""
    x, o = call.input(0), call.options
    for axis in (2, 1):
        if not call.shape[axis]:
            return jnp.zeros(call.shape, x.dtype)
        taps = float_taps(x.shape[axis], call.shape[axis], o.align_corners, o.half_pixel_centers)
        share = taps.share.reshape(-1, *(1,) * (3 - axis))
        low, high = jnp.take(x, taps.low, axis), jnp.take(x, taps.high, axis)
        x = low * (1 - share) + high * share
    return x


@operator(
    "RESIZE_NEAREST_NEIGHBOR",
    (*HALVES, *QUANTIZED, "BOOL", "FLOAT32", "INT32", "UINT16", "UINT32"),
    constants=(1,),
)
def resize_nearest_neighbor(call: Call) -> Any:
    """Return the resized image, in which each pixel is the nearest pixel of the input."""
    x, o = call.input(0), call.options
    for axis in (1, 2):
        places = nearest_positions(
            x.shape[axis], call.shape[axis], o.align_corners, o.half_pixel_centers
        )
        x = jnp.take(x, places, axis)
    return x
