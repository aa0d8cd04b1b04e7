"""Warnings about names and arguments that the next minor version removes."""

from __future__ import annotations

import warnings

GOES_IN = "0.3"
"""Version in which all names that are deprecated now are removed; see docs/compatibility.md."""


def warn_deprecated(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that *old* will be removed, and name the replacement *new*.

    Args:
        old: the name or argument, as users write it.
        new: name or argument to use instead.
        stacklevel: stack level of the user's call; 3 if the deprecated function calls this
            function.
    """
    text = f"{old} is deprecated and goes in {GOES_IN}; use {new}"
    warnings.warn(text, DeprecationWarning, stacklevel)
