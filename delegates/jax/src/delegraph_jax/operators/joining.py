"""Several arrays from one, and one from several."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from delegraph_jax.operators.fused import check_clamp, clamp
from delegraph_jax.operators.registry import PLAIN, Call, operator


@operator("CONCATENATION", PLAIN, check=check_clamp)
def concatenation(call: Call) -> Any:
    """Return the inputs one after the other along an axis."""
    return clamp(call.options, jnp.concatenate(call.inputs(), call.options.axis))


@operator("PACK", PLAIN)
def pack(call: Call) -> Any:
    """Return the inputs along a new axis."""
    return jnp.stack(call.inputs(), call.options.axis)


@operator("UNPACK", ("FLOAT32", "INT32", "BOOL"))
def unpack(call: Call) -> Any:
    """Return the parts of an axis, each without it."""
    x, axis = call.input(0), call.options.axis
    return [jnp.take(x, i, axis) for i in range(len(call.outputs))]


@operator("SPLIT", PLAIN, constants=(0,))
def split(call: Call) -> Any:
    """Return equal parts along an axis."""
    return jnp.split(call.input(1), len(call.outputs), call.integers(0)[0])


@operator("SPLIT_V", PLAIN, constants=(1, 2))
def split_v(call: Call) -> Any:
    """Return parts along an axis, whose lengths input 1 says."""
    axis = call.integers(2)[0]
    lengths = [output.shape[axis] for output in call.outputs]
    return jnp.split(call.input(0), np.cumsum(lengths[:-1]).tolist(), axis)
