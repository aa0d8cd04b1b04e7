"""Last messages of a process of the sweep that ends: an error, and where it was raised."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

from delegraph.tools.user_code import Place, is_authors


def of_error(error: BaseException) -> bytes:
    """Text of an error that ends a process, with its traceback in the form of faulthandler."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    lines = [f'  File "{each.filename}", line {each.lineno} in {each.name}' for each in frames]
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return "\n".join([f"error: {text}", *lines, ""]).encode(errors="replace")


def innermost(words: str) -> str:
    """Return the innermost place of a delegate's author or of Delegraph in *words*.

    All functions that run nodes count as one place, because the number of nodes decides which of
    them runs.

    Args:
        words: traceback of faulthandler.
    """
    frames = re.findall(r'File "([^"]*)", line (\d+) in (\S+)', words)
    known = [frame for frame in frames if "/delegraph" in frame[0] or is_authors(frame[0])]
    for path, line, name in known or frames:
        if is_authors(path):
            return str(Place(path, int(line), name))
        folder = Path(path).parent.name
        return "a kernel" if folder == "execution" else f"{folder}/{Path(path).stem}.{name}"
    return ""


def error(words: str) -> str:
    """Text of the error in *words* that ended a process; empty if a signal ended it."""
    found = re.match("error: (.*)", words)
    return found[1] if found else ""
