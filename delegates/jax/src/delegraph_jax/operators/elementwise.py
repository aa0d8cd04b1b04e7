"""Elementwise functions of one or two operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph_jax.operators.fused import check_clamp, clamp_to_finite
from delegraph_jax.operators.registry import (
    FLOATS,
    HALVES,
    PLAIN,
    QUANTIZED,
    Call,
    function_of_inputs,
    operator,
)

_UNARY: dict[str, Callable[[Any], Any]] = {
    "CEIL": jnp.ceil,
    "EXP": jnp.exp,
    "LOG": jnp.log,
    "RSQRT": lax.rsqrt,
    "SQRT": jnp.sqrt,
    "SQUARE": jnp.square,
}


for _name, _function in _UNARY.items():
    function_of_inputs(_name, FLOATS, _function)
function_of_inputs("ABS", ("FLOAT32", "INT32"), jnp.abs)
function_of_inputs("COS", (*FLOATS, "FLOAT16"), jnp.cos)
function_of_inputs("FLOOR", (*FLOATS, *HALVES), jnp.floor)
function_of_inputs("NEG", (*PLAIN, *HALVES, "INT8", "INT16"), jnp.negative)
function_of_inputs("ROUND", (*FLOATS, *HALVES), jnp.round)
function_of_inputs("SIGN", ("FLOAT32", "INT32"), jnp.sign)
function_of_inputs("SIN", (*FLOATS, "FLOAT16"), jnp.sin)
function_of_inputs("LOGICAL_NOT", ("BOOL",), jnp.logical_not)
function_of_inputs("ZEROS_LIKE", PLAIN, jnp.zeros_like)


def _quotient(a: Any, b: Any) -> Any:
    """Return ``a / b`` with a single rounding.

    XLA multiplies by the rounded inverse of a constant, so it rounds twice. The function divides in
    float64, where this error disappears when the quotient is converted to float32.
    """
    if not isinstance(b, np.ndarray):
        return a / b
    return (a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)


_FUSED: dict[str, tuple[tuple[str, ...], Callable[[Any, Any], Any]]] = {
    "ADD": ((*PLAIN, "FLOAT16"), jnp.add),
    "SUB": (PLAIN, jnp.subtract),
    "MUL": ((*PLAIN, "FLOAT16"), jnp.multiply),
    "DIV": (FLOATS, _quotient),
}


def _enter_fused(name: str, types: tuple[str, ...], function: Callable[[Any, Any], Any]) -> None:
    @operator(name, types, check=check_clamp)
    def compute(call: Call) -> Any:
        return clamp_to_finite(call.options, function(call.input(0), call.input(1)))


for _name, (_types, _pair) in _FUSED.items():
    _enter_fused(_name, _types, _pair)


# As in TFLite, the result for NaN and a number is the second operand.
function_of_inputs("MAXIMUM", (*PLAIN, *HALVES, *QUANTIZED), lambda a, b: jnp.where(a > b, a, b), 2)
function_of_inputs("MINIMUM", (*PLAIN, *HALVES, *QUANTIZED), lambda a, b: jnp.where(a < b, a, b), 2)
function_of_inputs("POW", FLOATS, jnp.power, 2)
function_of_inputs("SQUARED_DIFFERENCE", ("FLOAT32", "INT32"), lambda a, b: jnp.square(a - b), 2)
function_of_inputs("LOGICAL_AND", ("BOOL",), jnp.logical_and, 2)
function_of_inputs("LOGICAL_OR", ("BOOL",), jnp.logical_or, 2)
function_of_inputs(
    "BITWISE_XOR", ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), jnp.bitwise_xor, 2
)
# The angle of the point (input 1, input 0).
function_of_inputs("ATAN2", (*FLOATS, *HALVES), jnp.arctan2, 2)


@operator("ADD_N", ("FLOAT32", "INT32"))
def add_n(call: Call) -> Any:
    """Return the sum of all inputs."""
    return reduce(jnp.add, call.inputs())


@operator("PRELU", FLOATS, features=("computed-weights",))
def prelu(call: Call) -> Any:
    """Return x, or alpha * x where x is below 0."""
    x = call.input(0)
    return jnp.where(x >= 0, x, x * call.input(1))
