"""Comparisons, and choices by their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from delegraph_jax.operators.registry import ANY, PLAIN, Call, operator

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "GREATER": jnp.greater,
    "GREATER_EQUAL": jnp.greater_equal,
    "LESS": jnp.less,
    "LESS_EQUAL": jnp.less_equal,
}
_EQUALITIES: dict[str, Callable[[Any, Any], Any]] = {
    "EQUAL": jnp.equal,
    "NOT_EQUAL": jnp.not_equal,
}


def _enter(name: str, function: Callable[[Any, Any], Any]) -> None:
    @operator(name, (*PLAIN, "BOOL"))
    def compute(call: Call) -> Any:
        return function(call.input(0), call.input(1))


for _name, _function in (_COMPARISONS | _EQUALITIES).items():
    _enter(_name, _function)


@operator("SELECT", ANY)
def select(call: Call) -> Any:
    """Return elements or rows of input 1 where input 0 is true, else of input 2."""
    condition, a = call.input(0), call.input(1)
    if condition.ndim == 1 and a.ndim > 1:
        condition = condition.reshape(-1, *(1,) * (a.ndim - 1))
    if condition.size == 1:
        condition = condition.reshape(())
    return jnp.where(condition, a, call.input(2)).reshape(call.shape)


@operator("SELECT_V2", ANY)
def select_v2(call: Call) -> Any:
    """Return elements of input 1 where input 0 is true, else of input 2; all three broadcast."""
    # Three arrays of one element give the shape of one of them, whatever their ranks.
    return jnp.where(call.input(0), call.input(1), call.input(2)).reshape(call.shape)
