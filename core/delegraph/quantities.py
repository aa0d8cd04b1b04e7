"""Durations, rates, shares and counts as texts for people."""

from __future__ import annotations

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """Duration as text with a unit.

    >>> duration(0.0000123), duration(0.0123), duration(12.3)
    ('12.3 us', '12.3 ms', '12.3 s')
    """
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.4g} s"


def rate_text(value: float) -> str:
    """Rate per second as text.

    >>> rate_text(0.12345), rate_text(297.25), rate_text(400371.2)
    ('0.1235', '297.2', '400,371')
    """
    return f"{value:.4g}" if value < 999.5 else f"{value:,.0f}"


def percent(share: float, digits: int = 1) -> str:
    """Share (0 to 1) as text with a percent sign, and *digits* decimal places.

    >>> percent(0.125), percent(1, digits=0), percent(1e-4), percent(0.0)
    ('12.5 %', '100 %', '<0.1 %', '0 %')
    """
    least = 10.0**-digits
    if 100 * share < least / 2:
        return f"<{least:g} %" if share else "0 %"
    return f"{100 * share:.{digits}f} %"


def plural(count: int, noun: str) -> str:
    """Count with its noun, in the plural if necessary.

    >>> plural(1, "node"), plural(2, "node")
    ('1 node', '2 nodes')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


MOST_NAMED = 8
"""Largest number of names in a sentence."""


def few_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """List of the first names for a sentence, with the number of the others.

    >>> few_of(["ADD", "MUL"]), few_of(["a", "b", "c", "d"], 3)
    ('ADD, MUL', 'a, b, c and 1 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def real_value(scale: float, zero_point: int) -> str:
    """Text that tells how to convert stored integers of a quantized output to real values.

    >>> real_value(0.5, -3)
    'stored integers; real value = 0.5 x (stored + 3)'

    Args:
        scale: real value of one step.
        zero_point: stored integer of the real value 0.
    """
    sign = "-" if zero_point > 0 else "+"
    stored = f"(stored {sign} {abs(zero_point)})" if zero_point else "stored"
    return f"stored integers; real value = {scale:g} x {stored}"
