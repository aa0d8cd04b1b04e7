"""Reads the entry points of group ``delegraph.plugins`` from the installed distributions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import importlib_metadata

from delegraph.errors import close_names
from delegraph.plugins.address import canonical_name
from delegraph.plugins.kept_entry_points import GROUP, LIST, DeclaredPlugin

Distribution = Any  # the class depends on the version of importlib_metadata
UNKNOWN = "(unknown distribution)"

_OURS = "delegraph."
"""Prefix of group names that no other program reads."""


class UnreadableList(NamedTuple):
    """A distribution whose list of entry points cannot be read, and the reason."""

    distribution: str
    version: str
    error: Exception


def installed_entry_points() -> tuple[list[DeclaredPlugin], list[UnreadableList]]:
    """Return the entry points of ``delegraph.plugins``, and distributions with unreadable lists.

    If a distribution is installed several times, the first on ``sys.path`` counts, as for imports.
    """
    points: list[DeclaredPlugin] = []
    unreadable: list[UnreadableList] = []
    for name, dist in distributions_with_plugins():
        version = _version(dist)
        try:
            points += [DeclaredPlugin(*pair, name, version) for pair in entry_points_of(dist)]
        except Exception as error:  # noqa: BLE001 - one damaged file must not stop the others
            unreadable.append(UnreadableList(name, version, error))
    return points, unreadable


def distributions_with_plugins() -> Iterator[tuple[str, Distribution]]:
    """Yield name and distribution of each installed one that mentions ``delegraph.plugins``.

    Of several copies of a distribution, the first on ``sys.path`` is yielded, even if it has no
    plugins.
    """
    seen: set[str] = set()
    for dist in importlib_metadata.distributions():
        if not _mentions_our_group(dist):
            continue  # most distributions have no plugin
        name = _distribution_name(dist)
        if name != UNKNOWN:
            if canonical_name(name) in seen:
                continue
            seen.add(canonical_name(name))
            dist = _first_on_path(name, dist)
        yield name, dist


def entry_points_of(dist: Distribution) -> list[tuple[str, str]]:
    """Return name and value of each entry point of ``delegraph.plugins`` in the list of *dist*.

    A value that refers to no object stays as it is, and other groups are not read.
    ``dist.entry_points`` of importlib-metadata 9 raises an error for the whole list if any value of
    any group refers to no object.

    Raises:
        OSError: the list cannot be read.
        ValueError: the list is no text, or a line of the group has no ``=``.

    Source:
        importlib-metadata, ``Sectioned``: spaces round a line, a name and a value do not count.
    """
    found = []
    group = ""
    for line in map(str.strip, (dist.read_text(LIST) or "").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
        elif group == GROUP and line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ValueError(f"{line[:100]!r} of [{GROUP}], expected NAME = MODULE")
            found.append((name.strip(), value.strip()))
    return found


def misspelled_groups() -> list[str]:
    """Return a text for each installed distribution with a misspelled ``delegraph.plugins``.

    The function reads all distributions, which takes long, so it is called only for messages.
    """
    found = {}
    for dist in importlib_metadata.distributions():
        for group in re.findall(r"^\[(.+)\]\s*$", _entry_points_text(dist), re.MULTILINE):
            if group != GROUP and (group.startswith(_OURS) or close_names(group, [GROUP], 0.85)):
                found[canonical_name(_distribution_name(dist))] = (
                    f"{_distribution_name(dist)} {_version(dist)} has entry points of group "
                    f"{group!r}, which Delegraph does not read: name it {GROUP!r} in its "
                    "pyproject.toml, and install it again"
                )
    return [found[name] for name in sorted(found)]


def described(points: Iterable[importlib_metadata.EntryPoint]) -> list[DeclaredPlugin]:
    """Return entry points with name and version of the distributions that declare them."""
    return [
        DeclaredPlugin(point.name, point.value, UNKNOWN, "")
        if point.dist is None
        else DeclaredPlugin(
            point.name, point.value, _distribution_name(point.dist), _version(point.dist)
        )
        for point in points
    ]


def _mentions_our_group(dist: Distribution) -> bool:
    return GROUP in _entry_points_text(dist)


def _entry_points_text(dist: Distribution) -> str:
    """Return the file of a distribution's entry points; empty if it is missing or damaged."""
    try:
        return dist.read_text(LIST) or ""
    except (OSError, UnicodeDecodeError):
        return ""


def _first_on_path(name: str, dist: Distribution) -> Distribution:
    """Return the first distribution called *name* on ``sys.path``, even without entry points.

    If it cannot be found or read, the result is *dist*.
    """
    try:
        return importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        return dist  # its metadata folder has another name
    except (OSError, ValueError):
        return dist  # another copy is damaged: importlib-metadata 9 reads all of it


def _distribution_name(dist: Distribution) -> str:
    return _header(dist, "Name") or UNKNOWN


def _version(dist: Distribution) -> str:
    return _header(dist, "Version")


def _header(dist: Distribution, name: str) -> str:
    """Return one header of a distribution's metadata; empty if it is missing or damaged.

    ``dist.name`` would parse the whole file, including the long description. That takes
    milliseconds for each plugin, at the start of every process.

    Source:
        Core metadata specifications, https://packaging.python.org/specifications/core-metadata/:
        headers come first, one to a line, and an empty line ends them.
    """
    try:
        text = dist.read_text("METADATA") or dist.read_text("PKG-INFO") or ""
    except (OSError, UnicodeDecodeError):
        return ""
    headers = text.partition("\n\n")[0].splitlines()
    named = (line.partition(":") for line in headers)
    value = next((value for key, _, value in named if key.lower() == name.lower()), "")
    return value.strip()
