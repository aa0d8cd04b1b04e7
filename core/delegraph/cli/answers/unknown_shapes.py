"""Texts of shapes that a model file may lack, and of the arithmetic that depends on them."""

from __future__ import annotations

from collections.abc import Iterable

from delegraph.cli.answers.printing import amount
from delegraph.quantities import percent


def macs_amount(macs: int | None, are_least: bool) -> str:
    """Return a number of multiply-accumulates for a table; empty if an operator has none.

    >>> macs_amount(8192, False), macs_amount(8192, True), macs_amount(0, True)
    ('8.2 k', '8.2 k+', '?')
    """
    if not macs:
        return "?" if are_least else ""
    return f"{amount(macs)}{'+' * are_least}"


def macs_share(share: float | None, are_least: bool) -> str:
    """Return a share of multiply-accumulates for a table, with ``+`` if it is a least share.

    >>> macs_share(0.25, False), macs_share(0.25, True), macs_share(None, True)
    ('25.0 %', '25.0 %+', '?')
    """
    if share is None and are_least:
        return "?"
    return f"{percent(share or 0.0)}{'+' * are_least}"


LEAST_MACS = "+: at least so many, since the file lacks a shape"
"""Explanation of the sign in texts of :func:`macs_amount`."""


def shape_text(shape: Iterable[int] | None) -> str:
    """Return a shape as text; a question mark if it is None, so unknown."""
    return "?" if shape is None else str(list(shape))
