"""Commands that install the optional packages of this distribution."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """Return the command that installs this package with an extra, such as ``tensorflow``."""
    from delegraph.plugins.sources import pip_install  # lazy: it reads files of distributions

    return pip_install("delegraph-flex", extra)
