"""Activations and normalizations: functions of one operand, some over the last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph_jax.operators.registry import FLOATS, HALVES, Call, function_of_inputs, operator

_EPSILON = 1e-6
"""Smallest square of a length by which L2_NORMALIZATION divides."""

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "ELU": jax.nn.elu,
    "HARD_SWISH": lambda x: x * jnp.clip(x + 3, 0, 6) * (1 / 6),
    "RELU": lambda x: jnp.maximum(x, 0),
    "RELU6": lambda x: jnp.clip(x, 0, 6),
    "RELU_0_TO_1": lambda x: jnp.clip(x, 0, 1),
    "RELU_N1_TO_1": lambda x: jnp.clip(x, -1, 1),
}
_ACTIVATIONS_WITH_HALVES: dict[str, Callable[[Any], Any]] = {
    # Computed in float32 and rounded once, as in the kernels.
    "LOGISTIC": lambda x: jax.nn.sigmoid(x.astype(np.float32)),
    "TANH": jnp.tanh,
}


for _name, _function in ACTIVATIONS.items():
    function_of_inputs(_name, FLOATS, _function)
for _name, _function in _ACTIVATIONS_WITH_HALVES.items():
    function_of_inputs(_name, (*FLOATS, *HALVES), _function)
function_of_inputs("LOG_SOFTMAX", FLOATS, jax.nn.log_softmax)  # of the last axis


@operator("LEAKY_RELU", FLOATS)
def leaky_relu(call: Call) -> Any:
    """Return x, or alpha * x where x is below 0."""
    x = call.input(0)
    return jnp.where(x > 0, x, x * call.options.alpha)


@operator("GELU", (*FLOATS, "FLOAT16"))
def gelu(call: Call) -> Any:
    """Return the GELU of x, exact or approximated by tanh."""
    return jax.nn.gelu(call.input(0), approximate=bool(call.options.approximate))


@operator("SOFTMAX", (*FLOATS, "FLOAT16"))
def softmax(call: Call) -> Any:
    """Return exp(beta * x) divided by its sum over the last axis; 16-bit floats use float32."""
    x = call.input(0).astype(np.float32)
    return jax.nn.softmax(x * call.options.beta, axis=-1)


@operator("L2_NORMALIZATION", FLOATS)
def l2_normalization(call: Call) -> Any:
    """Return x divided by the Euclidean length along its last axis."""
    x = call.input(0)
    squares = jnp.sum(jnp.square(x), axis=-1, keepdims=True)
    return x / jnp.maximum(jnp.sqrt(squares), _EPSILON)


@operator("LOCAL_RESPONSE_NORMALIZATION", FLOATS, numerics=("builtin",))
def local_response_normalization(call: Call) -> Any:
    """Return x divided by a power of the sum of squares of neighbouring channels."""
    x, o = call.input(0), call.options
    window = (1,) * (x.ndim - 1) + (2 * o.radius + 1,)
    pads = ((0, 0),) * (x.ndim - 1) + ((o.radius, o.radius),)
    squares = lax.reduce_window(
        jnp.square(x), x.dtype.type(0), lax.add, window, (1,) * x.ndim, pads
    )
    return x * jnp.power(o.bias + o.alpha * squares, -o.beta)
