"""Quotients and remainders; a divisor of zero is an error."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph_jax.operators.fused import check_clamp, clamp
from delegraph_jax.operators.registry import Call, function_of_inputs, operator

_INTEGERS = ("INT8", "INT16", "INT32")


def _divisor(call: Call) -> Any:
    """Return input 1, the divisor; a zero in it is an error."""
    divisor = call.input(1)
    call.doubts.append(((divisor == 0).any(), "a divisor is zero"))
    return divisor


@operator("DIV", ("INT32",), check=check_clamp)
def div(call: Call) -> Any:
    """Return integer quotients, truncated towards zero."""
    operands = jnp.broadcast_arrays(call.input(0), _divisor(call))
    return clamp(call.options, lax.div(*operands))


@operator("FLOOR_DIV", ("FLOAT32",))
def float_floor_div(call: Call) -> Any:
    """Return quotients rounded down, computed in float64 as in the official kernel."""
    divisor = jnp.asarray(call.input(1))
    # XLA takes denormal numbers for 0.
    magnitude = lax.bitcast_convert_type(divisor, np.uint32) << 1
    call.doubts.append(((magnitude == 0).any(), "a divisor is zero"))
    return jnp.floor(call.input(0).astype(np.float64) / divisor.astype(np.float64))


@operator("FLOOR_DIV", _INTEGERS)
def floor_div(call: Call) -> Any:
    """Return quotients of stored integers, rounded down; scales are ignored."""
    return jnp.floor_divide(call.input(0), _divisor(call))


# The remainders have the sign of the divisor, which may be zero.
function_of_inputs("FLOOR_MOD", ("FLOAT32",), jnp.remainder, 2)


@operator("FLOOR_MOD", (*_INTEGERS, "INT64"))
def floor_mod(call: Call) -> Any:
    """Return remainders of integers as stored, with the sign of the divisor."""
    return jnp.remainder(call.input(0), _divisor(call))
