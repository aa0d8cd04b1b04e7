"""The entry points of ``delegraph.plugins``, stored in the user's cache folder.

Reading every installed distribution takes longer than running a small model. So the list of entry
points is stored together with its origin: ``sys.path``, and the name and time of each
distribution's metadata folder there. Installing or removing a distribution changes the origin, so
the next process searches again. Folders without distributions, such as those of scripts, do not
count.

The file decides which modules are imported, so it is used only if no other user but root may write
it; see :mod:`delegraph.delegation.cache_files`. A damaged file is ignored.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib.machinery import PathFinder

from delegraph.delegation.cache_files import CacheFolder, user_cache_folder
from delegraph.lazy_dataclass import NamedTuple

GROUP = "delegraph.plugins"
LIST = "entry_points.txt"

_FORM = "entry points of delegraph.plugins, 1"
_ENDINGS = (".dist-info", ".egg-info", ".egg", "egg-info")
_SETTLED_NS = 2_000_000_000
"""Nanoseconds after a folder's change from which on a further change gives another time."""


class DeclaredPlugin(NamedTuple):
    """An entry point of group ``delegraph.plugins``.

    Attributes:
        name: name of the entry point.
        value: object of the entry point: ``package.module`` or ``package.module:attribute``.
        distribution: name of the distribution that declares it.
        version: version of that distribution; empty if unknown.
    """

    name: str
    value: str
    distribution: str
    version: str


class PathState:
    """State of the folders on ``sys.path``; stored entry points are valid while it is the same.

    Attributes:
        text: text that identifies the state; empty if no text identifies it.
    """

    def __init__(self) -> None:
        self.text = ""
        try:
            seen = [(place or os.getcwd(), _descriptions(place or os.curdir)) for place in sys.path]
        except (OSError, TypeError):  # the working folder was removed, or an entry is no string
            return
        seen = [each for each in seen if each[1]]  # equal for all working folders
        newest = max((when for _, found in seen for _, when in found), default=0)
        is_settled = newest < time.time_ns() - _SETTLED_NS
        if is_settled and _are_plain_finders():
            self.text = repr((_FORM, sys.version, seen))

    def kept(self) -> list[DeclaredPlugin] | None:
        """Return the entry points stored for this ``sys.path``; None if none are stored."""
        if not self.text:
            return None
        try:
            lines = CacheFolder(user_cache_folder()).read(_file()).decode().splitlines()
        except (OSError, UnicodeDecodeError):
            return None
        if lines[:1] != [self.text] or lines[-1:] != [_FORM]:
            return None  # the file is of another state, or incomplete
        fields = [line.split("\t") for line in lines[1:-1]]
        if any(len(each) != len(DeclaredPlugin._fields) for each in fields):
            return None
        return [DeclaredPlugin(*each) for each in fields]

    def keep(self, points: list[DeclaredPlugin]) -> None:
        """Store *points*, the entry points found on this ``sys.path``, in the cache folder.

        Errors, such as a full disk, are ignored.
        """
        lines = ["\t".join(point) for point in points]
        is_plain = all(line.isprintable() for point in points for line in point)
        if self.text and is_plain:
            content = "\n".join([self.text, *lines, _FORM]).encode()
            with suppress(OSError):
                CacheFolder(user_cache_folder()).write(_file(), content)


def _file() -> str:
    """Name of the file for this Python environment, which depends on ``sys.path``."""
    number = int.from_bytes(os.fsencode(sys.prefix), "big") % (2**61 - 1)
    return f"plugins/{number:x}"


def _descriptions(place: str) -> list[tuple[str, int]]:
    """Return name and time of each distribution's metadata in the folder *place*.

    The result has metadata folders, which each installation creates anew, and lists that are
    changed in place. The time of *place* itself does not count, since programs may write results
    there.
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
    """Whether distributions are found only on ``sys.path``, not by other finders."""
    return all(
        finder is PathFinder
        or not hasattr(finder, "find_distributions")
        or type(finder).__module__.startswith("importlib_metadata")
        for finder in sys.meta_path
    )
