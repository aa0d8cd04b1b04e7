"""Checks the attributes that the author of an engine's delegate writes in its class."""

from __future__ import annotations

from typing import Any

from delegraph.errors import DelegateError


def check_attributes(delegate: Any) -> None:
    """Check name, refusals and number of programs of an ``EngineDelegate``.

    Raises:
        DelegateError: one of them has the wrong type or value.
    """
    kind = type(delegate).__name__
    if not isinstance(name := delegate.name(), str) or not name:
        raise DelegateError(f"{kind}.name() returned {name!r}, expected a text, such as 'chip'")
    refusals = delegate.refusals
    if not isinstance(refusals, tuple) or not all(map(_is_error, refusals)):
        raise DelegateError(
            f"{kind}.refusals is {refusals!r}, expected a tuple of classes of errors: write "
            "refusals = (RuntimeError,)"
        )
    most = delegate.max_programs
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise DelegateError(
            f"{kind}.max_programs is {most!r}, expected a number of at least 1: write "
            "max_programs = 4"
        )


def _is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Exception)
