"""Sums, means, maxima, minima and their positions, along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from delegraph_jax.operators.registry import EIGHT_BIT, PLAIN, QUANTIZED, Call, operator


def axes_of(call: Call) -> tuple[int, ...]:
    """Return the axes to reduce, ascending."""
    rank = call.input(0).ndim
    return tuple(sorted({axis % rank for axis in call.integers(1)})) if rank else ()


def _enter(name: str, types: tuple[str, ...], function: Callable[..., Any]) -> None:
    @operator(name, types, axis="INT32", constants=(1,))
    def compute(call: Call) -> Any:
        return function(call.input(0), axis=axes_of(call), keepdims=bool(call.options.keep_dims))


def _or_worst(function: Callable[..., Any], limit: str) -> Callable[..., Any]:
    """Return *function* (maximum or minimum), with *limit* for no elements."""

    def extreme(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if all(x.shape[i] for i in axis):
            return function(x, axis=axis, keepdims=keepdims)
        info: Any = np.finfo if x.dtype.kind == "f" else np.iinfo
        worst = getattr(info(np.dtype(x.dtype)), limit)
        return jnp.full_like(jnp.sum(x, axis=axis, keepdims=keepdims), worst, dtype=x.dtype)

    return extreme


def _integer_mean(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Return the means of *x* along *axis*, truncated towards zero; 0 if there are no elements."""
    sums = x.sum(axis, np.int64, keepdims=keepdims)
    return lax.div(sums, jnp.full_like(sums, max(math.prod(x.shape[i] for i in axis), 1)))


_enter("SUM", PLAIN, jnp.sum)
_enter("MEAN", ("FLOAT32",), jnp.mean)
_enter("MEAN", ("INT32", "INT64"), _integer_mean)
_enter("REDUCE_PROD", PLAIN, jnp.prod)
_enter("REDUCE_MAX", (*PLAIN, *QUANTIZED), _or_worst(jnp.max, "min"))
_enter("REDUCE_MIN", (*PLAIN, *QUANTIZED), _or_worst(jnp.min, "max"))
_enter("REDUCE_ANY", ("BOOL",), jnp.any)
_enter("REDUCE_ALL", ("BOOL",), jnp.all)


@operator(("ARG_MAX", "ARG_MIN"), ("BOOL", *PLAIN, *EIGHT_BIT), constants=(1,))
def position(call: Call) -> Any:
    """Return the position of the largest or smallest element; of equal elements, the first."""
    find = jnp.argmax if call.name == "ARG_MAX" else jnp.argmin
    return find(call.input(0), call.integers(1)[0])


@operator("CUMSUM", PLAIN, constants=(1,))
def cumsum(call: Call) -> Any:
    """Return cumulative sums along an axis, inclusive or exclusive."""
    x = call.input(0)
    axis = call.integers(1)[0] % x.ndim
    sums = lax.cumsum(x, axis, reverse=bool(call.options.reverse))
    if not call.options.exclusive:
        return sums
    edge = [(0, 0, 0)] * x.ndim
    edge[axis] = (-1, 1, 0) if call.options.reverse else (1, -1, 0)
    return lax.pad(sums, np.zeros((), x.dtype), edge) if x.shape[axis] else sums


@operator("TOPK_V2", (*PLAIN, *QUANTIZED), constants=(1,))
def topk(call: Call) -> Any:
    """Return the largest elements along the last axis, and their positions."""
    return lax.top_k(call.input(0), call.shape[-1])
