"""The table with which ``codegen/elementwise_sin_cos.py`` reduces large angles."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

TWO_OVER_PI = Fraction(
    0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E0, 1 << 320
)
"""2 / pi to 320 bits, which is enough for the largest float32, an integer of 128 bits."""

BITS = 26, 28, 53
"""Numbers of significant bits of the three parts.

Products of the first two parts with 24 bits are exact.
"""


@cache
def quarter_turns() -> NDArray[np.float64]:
    """Return, for each exponent of a float32, the value of its last bit in quarter turns, modulo 4.

    Returns:
        ``[256, 3], float64``: three parts whose sum is the number. Rows of infinity and NaN are
        zeros. Read-only.
    """
    table = np.array([_parts(exponent) for exponent in range(255)] + [[0.0] * len(BITS)])
    table.flags.writeable = False
    return table


def _parts(exponent: int) -> list[float]:
    rest = Fraction(2) ** (max(exponent, 1) - 150) * TWO_OVER_PI % 4
    parts = []
    for bits in BITS:
        parts.append(_cut(rest, bits))
        rest -= Fraction(parts[-1])
    return parts


def _cut(number: Fraction, bits: int) -> float:
    """Return a number truncated to its first *bits* bits; it must not be negative."""
    if not number:
        return 0.0
    unit = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length() - bits)
    return float(number // unit * unit)
