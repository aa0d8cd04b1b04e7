"""Pools, means and resizing of quantized images, and SOFTMAX, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph import Node, Rejection, Tensor
from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.arithmetic.lookup_table import exponentials
from delegraph.arithmetic.quantized_reductions import mean_of_sums
from delegraph.arithmetic.reduction import Reduction
from delegraph.arithmetic.resize_bilinear import fixed_taps, float_taps
from delegraph_jax.operators.pooling import counts, reduced, windows_of
from delegraph_jax.operators.reducing import axes_of
from delegraph_jax.operators.registry import QUANTIZED, Call, operator
from delegraph_jax.operators.rounding import rounded
from delegraph_jax.operators.tabulated import look_up

_ADDED_AT_ONCE = 32
"""Elements of a row that one turn of a loop adds, one after the other."""


def _clamp(call: Call, y: Any) -> Any:
    output = call.outputs[0]
    low, high = quantized_activation_range(call.options.fused_activation_function, output)
    return y.clip(low, high).astype(output.dtype)


@operator("AVERAGE_POOL_2D", QUANTIZED)
def average_pool_2d(call: Call) -> Any:
    """Return means of windows, halves rounded away from zero."""
    windows = windows_of(call)
    sums = reduced(call.input(0).astype(np.int32), windows, 0, lax.add)
    shared = counts(windows).astype(np.int32)[..., None]
    half = jnp.where(sums < 0, -(shared // 2), shared // 2)
    return _clamp(call, lax.div(sums + half, jnp.broadcast_to(shared, sums.shape)))


@operator("MAX_POOL_2D", QUANTIZED)
def max_pool_2d(call: Call) -> Any:
    """Return maxima of windows."""
    x = call.input(0)
    return _clamp(call, reduced(x, windows_of(call), np.iinfo(x.dtype).min, lax.max))


def _check_scales(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    """Reject tensors without a scale, for which the official kernels have results of their own."""
    for index in (node.inputs[0], node.outputs[0]):
        if not tensors[index].scale > 0:
            return Rejection("scale", actual=tensors[index].scale, tensor=index)
    return None


@operator("MEAN", QUANTIZED, axis="INT32", constants=(1,), check=_check_scales)
def mean(call: Call) -> Any:
    """Return means along axes."""
    x, axes, keep = call.input(0), axes_of(call), bool(call.options.keep_dims)
    count = math.prod(x.shape[i] for i in axes)
    if not count:
        return jnp.zeros(call.shape, x.dtype)
    reduction = Reduction(call.tensor(0), call.outputs[0], axes, count, keep)
    sums = x.astype(np.int32).sum(axes, np.int32, keepdims=keep)
    return mean_of_sums(reduction, call.numerics)(sums.astype(np.int64))


@operator("RESIZE_BILINEAR", ("INT8", "INT16"), size="INT32", constants=(1,))
def resize_bilinear(call: Call) -> Any:
    """Return the image mixed with shares in units of 2**-10, halves rounded away from zero."""
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
    """Return the image mixed in float32, four products added in the official order."""
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


def _check_softmax(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    x, y = tensors[node.inputs[0]], tensors[node.outputs[0]]
    if not np.isfinite(exponentials(x.scale, float(options.beta))).all() or not y.scale > 2.0**-31:
        return Rejection("beta", actual=options.beta, expected="exponentials that float32 can hold")
    return None


@operator("SOFTMAX", ("INT8",), output=("INT8", "INT16"), check=_check_softmax)
@operator("SOFTMAX", ("UINT8",), output=("UINT8", "INT16"), check=_check_softmax)
def softmax(call: Call) -> Any:
    """Return exp(beta * x) over the sum of the last axis, with exponentials from a table."""
    x, y = call.input(0), call.outputs[0]
    if 0 in call.shape:
        return jnp.zeros(call.shape, y.dtype)
    table = exponentials(call.tensor(0).scale, float(call.options.beta))
    exps = look_up(table, x - x.max(-1, keepdims=True))
    is_uint8 = y.dtype == np.uint8
    half = np.float32(0.5) if is_uint8 else np.nextafter(np.float32(0.5), np.float32(0))
    inverse = np.float32(1) / (sums_in_order(exps) * np.float32(y.scale))
    limits = np.iinfo(y.dtype)
    shares = (rounded(exps * inverse) + half).astype(np.int32)
    return (shares + (0 if is_uint8 else y.zero_point)).clip(limits.min, limits.max)


def sums_in_order(x: Any) -> Any:
    """Return the sums of rows, ``[..., 1]``, added one element after the other."""
    length = x.shape[-1]
    rest = length % _ADDED_AT_ONCE
    total = jnp.zeros(x.shape[:-1], x.dtype)
    for i in range(rest):
        total = total + x[..., i]

    def add_some(turn: Any, total: Any) -> Any:
        start = rest + turn * _ADDED_AT_ONCE
        part = lax.dynamic_slice_in_dim(x, start, _ADDED_AT_ONCE, x.ndim - 1)
        for i in range(_ADDED_AT_ONCE):
            total = total + part[..., i]
        return total

    if length >= _ADDED_AT_ONCE:
        total = lax.fori_loop(0, length // _ADDED_AT_ONCE, add_some, total)
    return total[..., None]
