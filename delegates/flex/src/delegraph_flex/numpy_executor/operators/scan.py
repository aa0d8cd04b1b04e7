"""Cumulative sums and products along an axis, and similar operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import widened
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.indices import axis_of
from delegraph_flex.numpy_executor.registry import FLOATS, NUMBERS, operator, step_of

Scan = Callable[[NDArray[Any], int], NDArray[Any]]


@operator("Cumsum", "Cumprod", types=NUMBERS)
def cumulate(node: FlexNode) -> Step:
    """Return a function that computes cumulative sums or products along an axis."""
    ufunc, start = (np.add, 0) if node.op == "Cumsum" else (np.multiply, 1)

    def scan(x: NDArray[Any], axis: int) -> NDArray[Any]:
        return ufunc.accumulate(x, axis, dtype=x.dtype)

    return _scan(node, scan, start)


@operator("CumulativeLogsumexp", types=FLOATS)
def cumulative_logsumexp(node: FlexNode) -> Step:
    """Return a function that computes the cumulative log-sum-exp along an axis."""
    dtype = node.type("T").dtype

    def scan(x: NDArray[Any], axis: int) -> NDArray[Any]:
        return np.logaddexp.accumulate(widened(x), axis).astype(dtype, copy=False)

    return _scan(node, scan, -np.inf)


def _scan(node: FlexNode, scan: Scan, start: float) -> Step:
    """Return a function that applies *scan*, by the attributes ``exclusive`` and ``reverse``.

    *scan* computes cumulative values along an axis; *start* is the value before the first element.
    """
    is_exclusive, is_reverse = node.bool("exclusive", False), node.bool("reverse", False)

    def run(x: NDArray[Any], axis: NDArray[Any]) -> NDArray[Any]:
        along = axis_of(axis, x.ndim)
        made = scan(np.flip(x, along) if is_reverse else x, along)
        if is_exclusive and made.shape[along]:
            made = _shifted(made, along, start)
        return np.flip(made, along) if is_reverse else made

    return run


def _shifted(x: NDArray[Any], axis: int, start: float) -> NDArray[Any]:
    """Return *x* shifted by one place along an axis; the first place becomes *start*."""
    result = np.empty_like(x)
    to, origin = result.swapaxes(0, axis), x.swapaxes(0, axis)
    to[0], to[1:] = start, origin[:-1]
    return result


@step_of("Roll")
def roll(x: NDArray[Any], shift: NDArray[Any], axis: NDArray[Any]) -> NDArray[Any]:
    """Return *x* shifted along axes; elements beyond one end appear at the other end."""
    shifts, axes = np.asarray(shift).reshape(-1), np.asarray(axis).reshape(-1)
    if shift.shape != axis.shape or not x.ndim:
        raise ValueError(
            f"{shifts.size} shifts of {axes.size} axes of an array of {x.ndim} dimensions"
        )
    for by, along in zip(shifts.tolist(), axes, strict=True):
        x = _rolled(x, by, axis_of(along, x.ndim))
    return x if shifts.size else x.copy()


def _rolled(x: NDArray[Any], by: int, axis: int) -> NDArray[Any]:
    size = x.shape[axis]
    cut = size - by % size if size else 0
    before = (slice(None),) * axis
    return np.concatenate((x[(*before, slice(cut, None))], x[(*before, slice(cut))]), axis)


@step_of("Cross")
def cross(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the cross products of vectors, ``[..., 3]``."""
    if a.shape != b.shape or a.shape[-1:] != (3,):
        raise ValueError(f"{list(a.shape)} and {list(b.shape)}, expected two times [..., 3]")
    result = np.empty_like(a)
    (x0, x1, x2), (y0, y1, y2), out = a.T, b.T, result.T
    out[0], out[1], out[2] = x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0
    return result
