"""QUANTIZE and DEQUANTIZE: conversions between floats and integers, and between integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph import Node, Rejection, Tensor
from delegraph.arithmetic import channel_parameters
from delegraph.operators import every_value
from delegraph_jax.operators.registry import QUANTIZED, Call, operator
from delegraph_jax.operators.rounding import round_half_away, rounded
from delegraph_jax.operators.tabulated import look_up

_LANES = 8
"""Number of floats that the official vector loop of QUANTIZE computes at a time."""

_REQUANTIZE_LANES = 16


def _check_scale(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    """Return a rejection unless the output has exactly one scale."""
    quantization = tensors[node.outputs[0]].quantization
    if quantization is None or len(quantization.scales) != 1:
        return Rejection("scale", expected="one", tensor=node.outputs[0])
    return None


@operator("QUANTIZE", ("INT16",), output="INT32", check=_check_scale, lacks=("per-channel",))
@operator("QUANTIZE", ("FLOAT32", *QUANTIZED), check=_check_scale, lacks=("per-channel",))
def quantize(call: Call) -> Any:
    """Return floats or integers converted to the output's quantized integers."""
    x = call.input(0)
    return _affine(call, x) if x.dtype == np.float32 else _requantized(call, x)


def _affine(call: Call, x: Any) -> Any:
    """Return ``round(x / scale) + zero_point``, rounded as in the official vector and tail loops.

    Scale and zero point are those of *call*'s output.
    """
    y = call.outputs[0]
    limits = np.iinfo(y.dtype)
    flat = rounded(x.reshape(-1))  # otherwise XLA would join two factors
    end = flat.size - flat.size % _LANES if call.numerics == "builtin" else 0
    inverse = np.float32(1) / np.float32(y.scale)
    low, high = (np.float32(limit - y.zero_point) for limit in (limits.min, limits.max))
    vector = _limited(flat[:end] * inverse, low, high)
    vector = jnp.rint(vector).astype(np.int32) + y.zero_point
    ratio = flat[end:].astype(np.float64) / np.float64(y.scale)
    rest = _limited(round_half_away(ratio) + y.zero_point, limits.min, limits.max).astype(np.int32)
    return jnp.concatenate([vector, rest]).reshape(call.shape)


def _limited(values: Any, low: Any, high: Any) -> Any:
    """Return *values* clamped to the range from *low* to *high*; NaN becomes *low*."""
    return jnp.where(jnp.isnan(values), low, jnp.clip(values, low, high))


def _requantized(call: Call, x: Any) -> Any:
    """Return *x* requantised; elements after the vector loop may be rounded differently."""
    every = every_value(np.dtype(x.dtype))
    vector = look_up(call.evaluated(every), x)
    rest = x.size % _REQUANTIZE_LANES
    is_split = x.dtype.itemsize == call.outputs[0].dtype.itemsize == 1 and rest
    if not is_split or call.numerics != "builtin":
        return vector
    scalar = look_up(call.evaluated(every, numerics="reference"), x)
    if x.size < _REQUANTIZE_LANES:
        return scalar
    return jnp.where(np.arange(x.size).reshape(x.shape) < x.size - rest, vector, scalar)


def _check_blocks(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    """Return a rejection if the input has scales for blocks."""
    quantization = tensors[node.inputs[0]].quantization
    if quantization is not None and quantization.block_size:
        return Rejection("scale", actual="one a block", tensor=node.inputs[0])
    return None


@operator("DEQUANTIZE", QUANTIZED, output="FLOAT32", check=_check_blocks)
def dequantize(call: Call) -> Any:
    """Return the real numbers of integers, with one scale or a scale per channel."""
    x = call.input(0)
    scale, zero_point = channel_parameters(call.tensor(0))
    return rounded((x.astype(np.int32) - zero_point).astype(np.float32) * scale)
