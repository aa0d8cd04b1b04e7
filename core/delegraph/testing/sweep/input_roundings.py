"""Inputs that are off by roundings: they show how far a right answer may move."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NUDGES = 6
"""Runs that tell how far answers depend on roundings."""


def nudged(x: NDArray[Any], rng: np.random.Generator, *, smoothly: bool) -> NDArray[Any]:
    """Copy of *x* with changes as large as the roundings of float32 sums.

    The rounding of a product or a partial sum is as good as a change of summands. Short sums: each
    element by 4 units of 2**-23 up or down. Sums along the longest axis, *smoothly*: what has
    been added up once is rounded at each later step, which makes a random walk.

    Args:
        x: float32.
        rng: says which go up.
        smoothly: whether neighbours change by nearly the same.
    """
    ups = rng.choice((-1.0, 1.0), x.size)
    longest = max(x.shape, default=1)
    if smoothly:
        ups = np.cumsum(ups) * np.sqrt(max(longest, 1) / max(x.size, 1))
    else:
        ups *= 4
    with np.errstate(all="ignore"):
        moved: NDArray[Any] = (x * (1 + ups.reshape(x.shape) * 2.0**-23)).astype(np.float32)
    return moved
