"""Last messages of a process of the sweep that ends: an error, and where it was raised."""

from __future__ import annotations

import re
import traceback
from pathlib import Path


def of_error(error: BaseException) -> bytes:
    """Text of an error that ends a process, with its traceback in the form of faulthandler."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    lines = [f'  File "{each.filename}", line {each.lineno} in {each.name}' for each in frames]
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return "\n".join([f"error: {text}", *lines, ""]).encode(errors="replace")


def innermost(words: str) -> str:
    """Return the innermost place in Delegraph's code in *words*, a traceback of faulthandler.

    All functions that run nodes count as one place, because the number of nodes decides which of
    them runs.
    """
    frames = re.findall(r'File "([^"]*)", line \d+ in (\S+)', words)
    ours = [(path, name) for path, name in frames if "/delegraph" in path]
    for path, name in ours or frames:
        folder = Path(path).parent.name
        return "a kernel" if folder == "execution" else f"{folder}/{Path(path).stem}.{name}"
    return ""


def error(words: str) -> str:
    """Text of the error in *words* that ended a process; empty if a signal ended it."""
    found = re.match("error: (.*)", words)
    return found[1] if found else ""
