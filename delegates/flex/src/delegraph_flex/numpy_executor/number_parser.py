"""Parses numbers in text as TensorFlow does: like C's ``strtod``, with blanks on both sides."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from delegraph_flex.data_types import DataType

PARSED = frozenset({DataType.FLOAT32, DataType.FLOAT64, DataType.INT32, DataType.INT64})
"""Types as which text can be parsed."""

_DECIMAL = re.compile(rb"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*", re.I)
_HEXADECIMAL = re.compile(rb"\s*([-+]?)0x([\da-f]+\.?[\da-f]*|\.[\da-f]+)(?:p([-+]?\d+))?\s*", re.I)
_INFINITE = re.compile(rb"\s*([-+]?inf(?:inity)?)\s*", re.I)
_NOT_A_NUMBER = re.compile(rb"\s*([-+]?nan)(?:\(\w*\))?\s*", re.I)
_INTEGER = re.compile(rb"\s*([-+]?)0*(\d{1,20})\s*")


def number_parser(type: DataType) -> Callable[[bytes], Any]:
    """Return the function that parses text as a number of *type*, and returns None for other text.

    >>> parse = number_parser(DataType.FLOAT32)
    >>> parse(b" 1.5 "), parse(b"0x1p3"), parse(b"1.5x")
    (np.float32(1.5), np.float32(8.0), None)

    Args:
        type: a type in :data:`PARSED`.
    """
    if type is DataType.FLOAT32:
        return _float32
    if type is DataType.FLOAT64:
        return _float64
    limits = np.iinfo(type.dtype)
    return lambda text: _integer(text, int(limits.min), int(limits.max))


def _integer(text: bytes, low: int, high: int) -> int | None:
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if low <= number <= high else None


def _float64(text: bytes) -> float | None:
    for form in (_DECIMAL, _INFINITE, _NOT_A_NUMBER):
        if found := form.fullmatch(text):
            return float(found[1])
    if not _HEXADECIMAL.fullmatch(text):
        return None
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return float("-inf" if text.lstrip().startswith(b"-") else "inf")


def _float32(text: bytes) -> np.float32 | None:
    """Return the float32 nearest to the number in *text*, with a single rounding.

    The result is None if the text is not a number.
    """
    number = _float64(text)
    if number is None:
        return None
    lower, upper = (np.float32(np.nextafter(number, end)) for end in (-np.inf, np.inf))
    is_tie = lower != upper and _finite(lower) + _finite(upper) == 2 * number
    exact = _exact(text) if is_tie else number
    if exact == number:
        return np.float32(number)
    return upper if exact > number else lower


def _finite(value: np.float32) -> float:
    """Return *value* as a Python float; infinity becomes the number after the largest float32."""
    return float(value) if np.isfinite(value) else math.copysign(2.0**128, value)


def _exact(text: bytes) -> Decimal | Fraction:
    """Return the exact number in a text, whose magnitude must be in the range of floats."""
    found = _HEXADECIMAL.fullmatch(text)
    if found is None:
        return Decimal(text.decode().strip())
    sign, digits, exponent = (group or b"" for group in found.groups())
    whole, _, part = digits.partition(b".")
    power = Fraction(2) ** (int(exponent or 0) - 4 * len(part))
    return int(sign + whole + part, 16) * power
