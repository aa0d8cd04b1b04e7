"""TRANSPOSE_CONV of quantized images, with the official results bit for bit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph.arithmetic import Scaling, is_in_scalar_tail, scaling_of, window
from delegraph.schema.enums import Padding
from delegraph_jax.operators.convolution import transposed_edges
from delegraph_jax.operators.quantized_products import convolution, exact_sums, finish
from delegraph_jax.operators.registry import Call, operator

_VECTOR = 16
"""Number of values that the official uint8 kernel scales at once.

The values that remain are rounded differently.
"""

_ROLES: dict[str, Any] = {
    "output_shape": "INT32",
    "constants": (0,),
    "features": ("computed-weights",),
}


@operator("TRANSPOSE_CONV", ("INT8",), bias="INT32", **_ROLES)
@operator("TRANSPOSE_CONV", ("INT16",), weights="INT8", bias=("INT32", "INT64"), **_ROLES)
def transpose_conv(call: Call) -> Any:
    """Return the transposed convolution with filters ``[O, KH, KW, C]``."""
    scaling = _scaling(call, is_in_scalar_tail(call.input(1).shape[0]))
    return finish(call, _sums(call), scaling, call.optional(3))


@operator("TRANSPOSE_CONV", ("UINT8",), bias="INT32", **_ROLES)
def transpose_conv_uint8(call: Call) -> Any:
    """Return the transposed convolution of uint8, with the official vector loop's rounding."""
    sums, bias = _sums(call), call.optional(3)
    vector, rest = (finish(call, sums, _scaling(call, away), bias) for away in (False, True))
    position = np.arange(sums.size).reshape(sums.shape)
    return jnp.where(position < sums.size - sums.size % _VECTOR, vector, rest)


def _sums(call: Call) -> Any:
    """Return the sums of products, ``[N, OH, OW, O]``, as a convolution of the dilated image."""
    weight = jnp.flip(call.input(1).transpose(1, 2, 3, 0), (0, 1))
    zero, w_zero = call.tensor(2).zero_point, call.tensor(1).zero_point
    strides = call.options.stride_h, call.options.stride_w
    gaps = zip(transposed_edges(call), strides, strict=True)
    edges = [(low, high, stride - 1) for (low, high), stride in gaps]
    x = call.input(2)
    x = lax.pad(x, np.asarray(zero, x.dtype), [(0, 0, 0), *edges, (0, 0, 0)])
    windows = tuple(
        window(Padding.VALID, *each, 1) for each in zip(x.shape[1:3], weight.shape[:2], strict=True)
    )
    return exact_sums(x, zero, weight, w_zero, convolution(windows, 1))


def _scaling(call: Call, halves_away: Any) -> Scaling:
    """Return the scaling from sums to outputs; *halves_away* selects the rounding per channel.

    Without a bias, an option determines the number of bits of sums.
    """
    weight, x, bias = call.tensor(1), call.tensor(2), call.optional_tensor(3)
    is_short = call.options.quantized_bias_type.name == "INT32"
    is_wide = x.dtype == np.int16 and not is_short if bias is None else bias.type.name == "INT64"
    return scaling_of(
        x, weight, bias, call.outputs[0], weight.shape[0], call.numerics, halves_away,
        sums_int64=is_wide,
    )  # fmt: skip
