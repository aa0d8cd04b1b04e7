"""BATCH_MATMUL of integers, with the official results bit for bit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph import Tensor
from delegraph.arithmetic import fixed_point_scaling, int64_scaling
from delegraph_jax.operators.products import operands
from delegraph_jax.operators.registry import Call, operator


@operator("BATCH_MATMUL", ("INT8",), features=("computed-weights",))
@operator("BATCH_MATMUL", ("INT16",), rhs=("INT8", "INT16"), features=("computed-weights",))
def batch_matmul(call: Call) -> Any:
    """Return the quantized products of two batches of matrices, each optionally transposed."""
    y = call.outputs[0]
    x, w = operands(call)
    (x_scale, x_zero), (w_scale, w_zero), (y_scale, y_zero) = (
        _quantization(tensor) for tensor in (call.tensor(0), call.tensor(1), y)
    )
    # Float64 holds all sums exactly: products have at most 30 bits.
    centred = x.astype(np.float64) - x_zero, w.astype(np.float64) - w_zero
    sums = jnp.matmul(*centred, precision=lax.Precision.HIGHEST).astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.array([np.float64(x_scale * w_scale) / np.float64(y_scale)])
    scaling = int64_scaling(factor) if x.dtype == np.int16 else fixed_point_scaling(factor, True)
    # Sums beyond 32 bits wrap, as in the core.
    scaled = scaling.exact(sums[..., None])[..., 0].astype(np.int32).astype(np.int64)
    limits = np.iinfo(y.dtype)
    return (scaled + y_zero).clip(limits.min, limits.max)


def _quantization(tensor: Tensor) -> tuple[np.float32, int]:
    """Return a tensor's scale and zero point; both 0 for per-channel scales, as in TFLite."""
    quantization = tensor.quantization
    if quantization is None or len(quantization.scales) != 1:
        return np.float32(0), 0
    return np.float32(tensor.scale), tensor.zero_point
