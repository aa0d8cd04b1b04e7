"""Which system and which kind of processor this is."""

from __future__ import annotations

import platform
import sys


def host_machine() -> str:
    """Return the family of this processor, by one name: ``x86_64``, ``aarch64``."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def host_system() -> str:
    """Return the operating system, as ``sys.platform`` calls it."""
    return sys.platform
