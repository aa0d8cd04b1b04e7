"""Rounding to whole numbers, as in C."""

from __future__ import annotations

from typing import Any

import numpy as np


def half_away(x: Any) -> Any:
    """Return the whole numbers nearest to *x*, halves rounded away from zero as by C's ``round``.

    >>> half_away(np.float32([0.5, -1.5, 0.49999997])).tolist()
    [1.0, -2.0, 0.0]
    """
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(np.float32(1), x), np.float32(0))
