"""Matrix products."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from delegraph_jax.operators.convolution import finish
from delegraph_jax.operators.fused import check_clamp
from delegraph_jax.operators.registry import FLOATS, Call, operator


@operator("FULLY_CONNECTED", FLOATS, features=("computed-weights", "sparse"), check=check_clamp)
def fully_connected(call: Call) -> Any:
    """Return the products of input rows and weights ``[O, C]``."""
    weight = call.input(1)
    rows = call.rows(0, weight.shape[1])
    y = jnp.matmul(rows, weight.T, precision=lax.Precision.HIGHEST)
    return finish(call, y, call.optional(2)).reshape(call.shape)


@operator("BATCH_MATMUL", FLOATS, features=("computed-weights",))
def batch_matmul(call: Call) -> Any:
    """Return the products of two batches of matrices, each optionally transposed."""
    return jnp.matmul(*operands(call), precision=lax.Precision.HIGHEST)


def operands(call: Call) -> tuple[Any, Any]:
    """Return both operands of BATCH_MATMUL, transposed by the options."""
    x, w = call.input(0), call.input(1)
    x = x.swapaxes(-1, -2) if call.options.adj_x else x
    return x, w.swapaxes(-1, -2) if call.options.adj_y else w
