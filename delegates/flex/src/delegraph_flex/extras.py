"""Commands that install the optional packages of this distribution."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """Return the command that installs this package with an extra, such as ``tensorflow``."""
    return f'pip install "delegraph-flex[{extra}]"'
