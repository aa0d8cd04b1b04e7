"""Origin of an HTML page, for its footer: version of Delegraph and time."""

from __future__ import annotations

from datetime import datetime, timezone

from importlib_metadata import version


def made_by() -> str:
    """Name and version of the program that makes the page."""
    return f"Delegraph {version('delegraph')}"


def made_at() -> str:
    """Present time in UTC, in whole seconds, in ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def origin_text() -> str:
    """Version and time as a sentence, in the words of the footer of ``report``."""
    return f"{made_by()}, {made_at().replace('T', ' ').replace('+00:00', ' UTC')}."
