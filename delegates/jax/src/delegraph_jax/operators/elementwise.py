"""Elementwise functions of one or two operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph_jax.operators.fused import check_clamp, clamp_to_finite
from delegraph_jax.operators.registry import FLOATS, HALVES, PLAIN, QUANTIZED, Call, operator

_UNARY: dict[str, Callable[[Any], Any]] = {
    "CEIL": jnp.ceil,
    "EXP": jnp.exp,
    "LOG": jnp.log,
    "RSQRT": lax.rsqrt,
    "SQRT": jnp.sqrt,
    "SQUARE": jnp.square,
}


def _enter_unary(name: str, types: tuple[str, ...], function: Callable[[Any], Any]) -> None:
    @operator(name, types)
    def compute(call: Call) -> Any:
        return function(call.input(0))


for _name, _function in _UNARY.items():
    _enter_unary(_name, FLOATS, _function)
_enter_unary("ABS", ("FLOAT32", "INT32"), jnp.abs)
_enter_unary("COS", (*FLOATS, "FLOAT16"), jnp.cos)
_enter_unary("FLOOR", (*FLOATS, *HALVES), jnp.floor)
_enter_unary("NEG", (*PLAIN, *HALVES, "INT8", "INT16"), jnp.negative)
_enter_unary("ROUND", (*FLOATS, *HALVES), jnp.round)
_enter_unary("SIGN", ("FLOAT32", "INT32"), jnp.sign)
_enter_unary("SIN", (*FLOATS, "FLOAT16"), jnp.sin)
_enter_unary("LOGICAL_NOT", ("BOOL",), jnp.logical_not)
_enter_unary("ZEROS_LIKE", PLAIN, jnp.zeros_like)


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


def _enter_binary(name: str, types: tuple[str, ...], function: Callable[[Any, Any], Any]) -> None:
    @operator(name, types)
    def compute(call: Call) -> Any:
        return function(call.input(0), call.input(1))


# As in TFLite, the result for NaN and a number is the second operand.
_enter_binary("MAXIMUM", (*PLAIN, *HALVES, *QUANTIZED), lambda a, b: jnp.where(a > b, a, b))
_enter_binary("MINIMUM", (*PLAIN, *HALVES, *QUANTIZED), lambda a, b: jnp.where(a < b, a, b))
_enter_binary("POW", FLOATS, jnp.power)
_enter_binary("SQUARED_DIFFERENCE", ("FLOAT32", "INT32"), lambda a, b: jnp.square(a - b))
_enter_binary("LOGICAL_AND", ("BOOL",), jnp.logical_and)
_enter_binary("LOGICAL_OR", ("BOOL",), jnp.logical_or)
_enter_binary(
    "BITWISE_XOR", ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), jnp.bitwise_xor
)


@operator("ATAN2", (*FLOATS, *HALVES))
def atan2(call: Call) -> Any:
    """Return the angle of the point (input 1, input 0).

    Args:
        call: the node, with the values of its inputs and its options.
    """
    return jnp.arctan2(call.input(0), call.input(1))


@operator("ADD_N", ("FLOAT32", "INT32"))
def add_n(call: Call) -> Any:
    """Return the sum of all inputs.

    Args:
        call: the node, with the values of its inputs and its options.
    """
    return reduce(jnp.add, call.inputs())


@operator("PRELU", FLOATS, features=("computed-weights",))
def prelu(call: Call) -> Any:
    """Return x, or alpha * x where x is below 0.

    Args:
        call: the node, with the values of its inputs and its options.
    """
    x = call.input(0)
    return jnp.where(x >= 0, x, x * call.input(1))
