"""Sums and means of integers along axes, with the official results bit for bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph import Node, Rejection, Tensor
from delegraph.arithmetic import Reduction, fixed_point_sum, mean_of_sums
from delegraph_jax.operators.reducing import axes_of
from delegraph_jax.operators.registry import QUANTIZED, Call, operator
from delegraph_jax.operators.rounding import round_half_away, rounded


def _check_scales(options: Any, node: Node, tensors: Sequence[Tensor]) -> Rejection | None:
    """Return a rejection unless input and output have a scale.

    Without a scale, official kernels compute differently.
    """
    for index in (node.inputs[0], node.outputs[0]):
        if not tensors[index].scale > 0:
            return Rejection("scale", actual=tensors[index].scale, tensor=index)
    return None


@operator("MEAN", QUANTIZED, axis="INT32", constants=(1,), check=_check_scales)
def mean(call: Call) -> Any:
    """Return the quantized means along axes."""
    x, axes, keep = call.input(0), axes_of(call), bool(call.options.keep_dims)
    count = math.prod(x.shape[i] for i in axes)
    if not count:
        return jnp.zeros(call.shape, x.dtype)
    reduction = Reduction(call.tensor(0), call.outputs[0], axes, count, keep)
    sums = x.astype(np.int32).sum(axes, np.int32, keepdims=keep)
    return mean_of_sums(reduction, call.numerics)(sums.astype(np.int64))


@operator("SUM", QUANTIZED, axis="INT32", constants=(1,), check=_check_scales)
def total(call: Call) -> Any:
    """Return sums along axes, scaled in float32; halves are rounded away from zero."""
    x, y, axes, keep = call.tensor(0), call.outputs[0], axes_of(call), bool(call.options.keep_dims)
    count = math.prod(call.input(0).shape[i] for i in axes)
    sums = call.input(0).astype(np.int32).sum(axes, np.int32, keepdims=keep)
    if call.numerics != "builtin":
        finish = fixed_point_sum(Reduction(x, y, axes, count, keep), divisor=1)
        return finish(sums.astype(np.int64)) if count else jnp.zeros(call.shape, y.dtype)
    scale = np.float32(x.scale) / np.float32(y.scale)
    bias = np.float32(-x.zero_point) * scale * np.float32(count)
    scaled = rounded(sums.astype(np.float32) * scale) + bias
    limits = np.iinfo(y.dtype)
    return (round_half_away(scaled).astype(np.int64) + y.zero_point).clip(limits.min, limits.max)
