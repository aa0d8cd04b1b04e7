"""Operating system and type of processor of this machine."""

from __future__ import annotations

import platform
import sys


def host_machine() -> str:
    """Return the type of this machine's processor: ``x86_64``, ``aarch64``."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def host_system() -> str:
    """Return the operating system, as ``sys.platform`` names it."""
    return sys.platform
