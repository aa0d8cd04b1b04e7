"""The entry points of our group as they were found last time, kept in the user's cache folder.

Looking at every installed distribution takes longer than running a small model. The list that was
found is kept with what it follows from: ``sys.path``, and name and time of each distribution's
description there. Installing and removing change those, so the next process looks again.

The file decides which modules are imported, so it is used only where this user and root alone may
write it, as :mod:`delegraph.delegation.cache_files` has it; one that is damaged is as good as none.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib.machinery import PathFinder
from typing import NamedTuple

from delegraph.delegation.cache_files import CacheFolder, user_cache_folder

GROUP = "delegraph.plugins"
LIST = "entry_points.txt"

_FORM = "entry points of delegraph.plugins, 1"
_ENDINGS = (".dist-info", ".egg-info", ".egg", "egg-info")
_SETTLED_NS = 2_000_000_000
"""Nanoseconds after which another change to a folder has another time for sure."""


class DeclaredPlugin(NamedTuple):
    """An entry point of group ``delegraph.plugins``.

    Attributes:
        name: of the entry point.
        value: object of the entry point: ``package.module`` or ``package.module:attribute``.
        distribution: the name of the distribution that declares it.
        version: of that distribution; empty when unknown.
    """

    name: str
    value: str
    distribution: str
    version: str


class PathState:
    """What is on ``sys.path`` now, as far as the entry points follow from it.

    Attributes:
        text: tells it from any other state; empty where that cannot be told.
    """

    def __init__(self) -> None:
        self.text = ""
        try:
            seen = [(place or os.getcwd(), _descriptions(place or os.curdir)) for place in sys.path]
        except (OSError, TypeError):  # the working folder was removed, or a place is no text
            return
        newest = max((when for _, found in seen for _, when in found), default=0)
        is_settled = newest < time.time_ns() - _SETTLED_NS
        if is_settled and _are_plain_finders():
            self.text = repr((_FORM, sys.version, seen))

    def kept(self) -> list[DeclaredPlugin] | None:
        """Return the stored entry points for this state; None if none are stored."""
        if not self.text:
            return None
        try:
            lines = CacheFolder(user_cache_folder()).read(_file()).decode().splitlines()
        except (OSError, UnicodeDecodeError):
            return None
        if lines[:1] != [self.text] or lines[-1:] != [_FORM]:
            return None  # of another state, or not whole
        fields = [line.split("\t") for line in lines[1:-1]]
        if any(len(each) != len(DeclaredPlugin._fields) for each in fields):
            return None
        return [DeclaredPlugin(*each) for each in fields]

    def keep(self, points: list[DeclaredPlugin]) -> None:
        """Keep the entry points that were found in this state; a full or read-only disk is fine."""
        lines = ["\t".join(point) for point in points]
        is_plain = all(line.isprintable() for point in points for line in point)
        if self.text and is_plain:
            content = "\n".join([self.text, *lines, _FORM]).encode()
            with suppress(OSError):
                CacheFolder(user_cache_folder()).write(_file(), content)


def _file() -> str:
    """Name of the file of this environment: others have other folders on their path."""
    number = int.from_bytes(os.fsencode(sys.prefix), "big") % (2**61 - 1)
    return f"plugins/{number:x}"


def _descriptions(place: str) -> list[tuple[str, int]]:
    """Return the descriptions of distributions in a folder of the path, each with its time.

    Those are folders that are made anew at each installation, and lists that are changed in place.
    The time of *place* itself does not count: programs write their results beside themselves.
    """
    found: list[tuple[str, int]] = []
    try:
        with os.scandir(place) as entries:
            described = [each for each in entries if each.name.lower().endswith(_ENDINGS)]
    except NotADirectoryError:
        return [("", os.stat(place).st_mtime_ns)]  # a zip
    except OSError:
        return found
    for each in sorted(described, key=lambda each: each.name):
        with suppress(OSError):
            found.append((each.path, each.stat().st_mtime_ns))
        if each.name.lower().endswith(".dist-info"):
            continue
        for inner in ((), ("EGG-INFO",)):
            name = os.path.join(each.path, *inner, LIST)
            with suppress(OSError):
                found.append((name, os.stat(name).st_mtime_ns))
    return found


def _are_plain_finders() -> bool:
    """Whether distributions are found on ``sys.path`` alone."""
    return all(
        finder is PathFinder
        or not hasattr(finder, "find_distributions")
        or type(finder).__module__.startswith("importlib_metadata")
        for finder in sys.meta_path
    )
