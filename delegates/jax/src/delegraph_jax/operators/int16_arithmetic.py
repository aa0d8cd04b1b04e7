"""ADD, SUB and MUL of int16, with the official results bit for bit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph.arithmetic import int16_pairs
from delegraph_jax.operators.fused import check_clamp, clamp
from delegraph_jax.operators.registry import Call, operator

_AS_STORED = {"ADD": jnp.add, "MUL": jnp.multiply}
"""Functions for integers without scales, for operators that support them."""


@operator(("ADD", "SUB", "MUL"), ("INT16",), check=check_clamp)
def pair(call: Call) -> Any:
    """Return the sum, the difference or the product of the inputs."""
    a, b, y = call.input(0), call.input(1), call.outputs[0]
    decisive = y if call.name == "MUL" else call.tensor(0)
    if decisive.quantization is None:
        return clamp(call.options, _AS_STORED[call.name](a, b))
    pairs = int16_pairs(call.name, call.node, call.tensor(0), call.tensor(1), y, call.numerics)
    wide = jnp.asarray(a, np.int64), jnp.asarray(b, np.int64)
    rest = pairs.rest(*wide)
    if not pairs.vector_end:
        return rest
    position = np.arange(rest.size).reshape(rest.shape)
    return jnp.where(position < pairs.vector_end, pairs.vector(*wide), rest)
