"""Comparisons, and selections by a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from delegraph_jax.operators.registry import ANY, PLAIN, Call, function_of_inputs, operator

_PLAIN = (*PLAIN, "FLOAT16")
_COMPARISONS: dict[str, tuple[tuple[str, ...], Callable[[Any, Any], Any]]] = {
    "EQUAL": ((*_PLAIN, "BOOL"), jnp.equal),
    "GREATER": ((*_PLAIN, "BFLOAT16", "INT16"), jnp.greater),
    "GREATER_EQUAL": ((*_PLAIN, "INT16"), jnp.greater_equal),
    "LESS": ((*_PLAIN, "BFLOAT16", "INT16"), jnp.less),
    "LESS_EQUAL": ((*_PLAIN, "INT16"), jnp.less_equal),
    "NOT_EQUAL": ((*_PLAIN, "BOOL"), jnp.not_equal),
}


for _name, (_types, _function) in _COMPARISONS.items():
    function_of_inputs(_name, _types, _function, 2, output="BOOL")


@operator("SELECT", ANY)
def select(call: Call) -> Any:
    """Return input 1 where input 0 is true, otherwise input 2; a vector selects rows."""
    condition, a = call.input(0), call.input(1)
    if condition.ndim == 1 and a.ndim > 1:
        condition = condition.reshape(-1, *(1,) * (a.ndim - 1))
    if condition.size == 1:
        condition = condition.reshape(())
    return jnp.where(condition, a, call.input(2)).reshape(call.shape)


@operator("SELECT_V2", ANY)
def select_v2(call: Call) -> Any:
    """Return input 1 where input 0 is true, otherwise input 2; all three inputs broadcast."""
    # Three arrays of one element give the shape of one of them, whatever their ranks.
    return jnp.where(call.input(0), call.input(1), call.input(2)).reshape(call.shape)
