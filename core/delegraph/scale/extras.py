"""Checks that optional dependencies (extras) are installed."""

from __future__ import annotations

from importlib.util import find_spec

from delegraph.errors import ArgumentError


def require_extra(what: str, extra: str, *packages: str) -> None:
    """Check that the packages of an extra are installed, without importing any.

    *what* names the feature that needs the packages.

    Raises:
        ArgumentError: a package is missing.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ArgumentError(f"{what} needs {_listed(missing)}: pip install 'delegraph[{extra}]'")


def _listed(names: list[str]) -> str:
    """The *names* separated by commas, with ``and`` before the last."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
