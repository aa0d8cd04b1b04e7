"""Texts of shapes that a model file may lack, and of the arithmetic that depends on them."""

from __future__ import annotations

from collections.abc import Iterable

from delegraph.cli.answers.printing import amount


def macs_amount(macs: int | None, are_least: bool) -> str:
    """Return a number of multiply-accumulates for a table; empty if an operator has none.

    >>> macs_amount(8192, False), macs_amount(8192, True), macs_amount(0, True)
    ('8.2 k', '8.2 k+', '?')
    """
    if not macs:
        return "?" if are_least else ""
    return f"{amount(macs)}{'+' * are_least}"


LEAST_MACS = "+: at least so many, since the file lacks a shape"
"""Explanation of the sign in texts of :func:`macs_amount`."""


def shape_text(shape: Iterable[int] | None) -> str:
    """Return a shape as text; a question mark if it is None, so unknown."""
    return "?" if shape is None else str(list(shape))
