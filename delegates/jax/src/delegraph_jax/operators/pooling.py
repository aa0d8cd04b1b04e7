"""Means, maxima and root mean squares of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from delegraph.arithmetic import Window, pool_windows
from delegraph_jax.operators.convolution import pads
from delegraph_jax.operators.fused import check_clamp, clamp
from delegraph_jax.operators.registry import FLOATS, Call, operator


def windows_of(call: Call) -> tuple[Window, Window]:
    """Return the windows of a pool along height and width."""
    size = (call.options.filter_height, call.options.filter_width)
    return pool_windows(call.options, call.input(0).shape, size)


def reduced(
    x: Any, windows: tuple[Window, Window], initial: float, function: Callable[[Any, Any], Any]
) -> Any:
    """Return *windows* of *x*, each reduced by *function*, starting from *initial*."""
    down, across = windows
    return lax.reduce_window(
        x,
        x.dtype.type(initial),
        function,
        (1, down.kernel, across.kernel, 1),
        (1, down.stride, across.stride, 1),
        ((0, 0), *pads(windows), (0, 0)),
    )


def _mean(x: Any, windows: tuple[Window, Window]) -> Any:
    """Return the mean of each of *windows* of *x*, without the padding."""
    return reduced(x, windows, 0, lax.add) / counts(windows)[..., None].astype(x.dtype)


def counts(windows: tuple[Window, Window]) -> NDArray[np.float64]:
    """Return the number of elements in each of *windows* without padding: ``[OH, OW]``."""
    found = np.ones(())
    for each in windows:
        found = np.multiply.outer(found, each.inputs_of_outputs())
    return found


@operator("AVERAGE_POOL_2D", FLOATS, check=check_clamp)
def average_pool_2d(call: Call) -> Any:
    """Return the mean of each window, with the fused activation applied."""
    return clamp(call.options, _mean(call.input(0), windows_of(call)))


@operator("MAX_POOL_2D", FLOATS, check=check_clamp)
def max_pool_2d(call: Call) -> Any:
    """Return the maximum of each window, with the fused activation applied."""
    return clamp(call.options, reduced(call.input(0), windows_of(call), -np.inf, lax.max))


@operator("L2_POOL_2D", FLOATS, check=check_clamp)
def l2_pool_2d(call: Call) -> Any:
    """Return the roots of the means of squares of the windows."""
    return clamp(call.options, jnp.sqrt(_mean(jnp.square(call.input(0)), windows_of(call))))
