"""Per-channel constants applied to long runs of memory instead of short rows.

With channels last, ``x * scale`` broadcasts over rows of only ``O`` values, and NumPy's loop costs
more than its arithmetic. Repeating the constants makes rows of about two thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

TILE = 1 << 15
"""Values handled at once: float64 temporaries of a tile stay in the second-level cache."""

_PATTERN = 2048
_LONG_ENOUGH = 512


def repeated(constants: NDArray[Any]) -> NDArray[Any]:
    """Return ``[O]`` constants repeated to about 2048 values; from 512 on they are long enough.

    >>> len(repeated(np.zeros(3)))
    2046
    """
    if not 0 < len(constants) < _LONG_ENOUGH:
        return constants
    return np.tile(constants, _PATTERN // len(constants))


def by_pattern(compute: Callable[..., None], pattern: int, *arrays: NDArray[Any]) -> None:
    """Call *compute* on pieces of flat arrays, each piece ``[rows, pattern]`` or a shorter ``[n]``.

    Args:
        compute: takes one piece of each array; the channel at a piece's start is always the first.
        pattern: length of the repeated constants.
        arrays: ``[size]`` each, a whole number of channels.
    """
    size = arrays[0].size
    if not size:
        return
    whole = size - size % pattern
    step = max(TILE // pattern, 1) * pattern
    for start in range(0, whole, step):
        stop = min(start + step, whole)
        compute(*(array[start:stop].reshape(-1, pattern) for array in arrays))
    if whole < size:
        compute(*(array[whole:] for array in arrays))
