"""SOFTMAX and LOG_SOFTMAX of integers, with the official results bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph import Node, Rejection, Tensor
from delegraph.arithmetic import exponentials, int16_softmax
from delegraph.operators import Numerics
from delegraph_jax.operators.registry import Call, operator
from delegraph_jax.operators.rounding import rounded
from delegraph_jax.operators.tabulated import look_up

_ADDED_AT_ONCE = 32
"""Number of elements of a row that one iteration of a loop adds, in order."""

_FLOATS: tuple[Numerics, ...] = ("builtin",)
"""Official kernels whose exponentials are floats; all other kernels use fixed point."""

_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


def _check_log_softmax(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    """Return a rejection if the exponential of an input value may exceed float32, else None."""
    x = tensors[node.inputs[0]]
    if not np.isfinite(exponentials(x.scale, 1.0)).all():
        return Rejection("scale", actual=x.scale, expected="exponentials that float32 can hold")
    return None


def _check_softmax(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    x, y = tensors[node.inputs[0]], tensors[node.outputs[0]]
    if not np.isfinite(exponentials(x.scale, float(options.beta))).all() or not y.scale > 2.0**-31:
        return Rejection("beta", actual=options.beta, expected="exponentials that float32 can hold")
    return None


@operator("SOFTMAX", ("INT8",), output=("INT8", "INT16"), check=_check_softmax, numerics=_FLOATS)
@operator("SOFTMAX", ("UINT8",), output=("UINT8", "INT16"), check=_check_softmax, numerics=_FLOATS)
def softmax(call: Call) -> Any:
    """Return SOFTMAX of 8-bit integers, with exponentials from a table."""
    x, y = call.input(0), call.outputs[0]
    if 0 in call.shape:
        return jnp.zeros(call.shape, y.dtype)
    table = exponentials(call.tensor(0).scale, float(call.options.beta))
    exps = look_up(table, x - x.max(-1, keepdims=True))
    is_uint8 = y.dtype == np.uint8
    half = np.float32(0.5) if is_uint8 else _BELOW_HALF
    inverse = np.float32(1) / (sums_in_order(exps) * np.float32(y.scale))
    limits = np.iinfo(y.dtype)
    shares = (rounded(exps * inverse) + half).astype(np.int32)
    return (shares + (0 if is_uint8 else y.zero_point)).clip(limits.min, limits.max)


@operator("LOG_SOFTMAX", ("INT8",), check=_check_log_softmax, numerics=_FLOATS)
@operator("LOG_SOFTMAX", ("UINT8",), check=_check_log_softmax, numerics=_FLOATS)
def log_softmax(call: Call) -> Any:
    """Return the logarithm of SOFTMAX with beta = 1."""
    x, y = call.input(0), call.outputs[0]
    if 0 in call.shape:
        return jnp.zeros(call.shape, y.dtype)
    largest = x.max(-1, keepdims=True)
    exps = look_up(exponentials(call.tensor(0).scale, 1.0), x - largest)
    log = jnp.log(sums_in_order(exps).astype(np.float64)).astype(np.float32)
    scale, unit = np.float32(call.tensor(0).scale), np.float32(y.scale)
    offset = (rounded(largest.astype(np.float32) * scale) + log) / unit
    values = rounded(x.astype(np.float32) * (scale / unit)) - offset
    limits = np.iinfo(y.dtype)
    return (jnp.rint(values) + y.zero_point).clip(limits.min, limits.max)


@operator("SOFTMAX", ("INT16",))
def wide_softmax(call: Call) -> Any:
    """Return int16 SOFTMAX in fixed point.

    Exponentials and reciprocals are interpolated between 513 points.
    """
    known = int16_softmax(call.tensor(0).scale, float(call.options.beta))
    points = jnp.asarray(known.exponentials), jnp.asarray(known.reciprocals)
    softmax = replace(known, exponentials=points[0], reciprocals=points[1])
    return softmax(call.input(0).astype(np.int64))


def sums_in_order(x: Any) -> Any:
    """Return the sums of the rows of *x*, ``[..., 1]``, added in order for equal rounding."""
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
