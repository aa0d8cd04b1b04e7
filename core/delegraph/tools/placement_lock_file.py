"""Lock files of placements: JSON with one line per node, so that a change is one line of a diff.

::

    "nodes": {
      "0 SIN": "sin",
      "1 ADD": null
    }
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from delegraph.errors import ArgumentError
from delegraph.tools.placement_lock import LockedSubgraph, PlacementLock, with_paths

_FORMAT = "delegraph-placement-lock"
_VERSION = 1
_COMMAND = "'delegraph explain --lock'"


def write_lock(lock: PlacementLock, path: str | os.PathLike[str]) -> None:
    """Write *lock* to the file *path*; equal placements give equal bytes.

    Paths of delegates' files are written relative to the folder of *path*.

    Raises:
        ArgumentError: the file cannot be written.
    """
    delegates, files = with_paths(_relative_to(path), lock.delegates, lock.delegate_files)
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": {"file": lock.model, "sha256": lock.sha256},
        "delegates": list(delegates),
        "delegate_files": list(files),
        **({"by_default": dict(lock.by_default)} if lock.by_default else {}),
        **({"versions": dict(lock.versions)} if lock.versions else {}),
        "subgraphs": [
            {
                "name": subgraph.name,
                "partitions": dict(subgraph.partitions),
                "nodes": {
                    f"{index} {op}": delegate
                    for index, (op, delegate) in enumerate(
                        zip(subgraph.operators, subgraph.delegates, strict=True)
                    )
                },
            }
            for subgraph in lock.subgraphs
        ],
    }
    try:
        Path(path).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise ArgumentError(
            f"lock file {str(path)!r} cannot be written: {error.strerror}"
        ) from error


def read_lock(path: str | os.PathLike[str]) -> PlacementLock:
    """Return the lock that the file *path* holds.

    Relative paths of delegates' files start at the folder of *path*.

    Raises:
        ArgumentError: the file cannot be read, is no lock file, is damaged, or has another version.
    """
    file = os.fspath(path)
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ArgumentError(f"lock file {file!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ArgumentError(
            f"lock file {file!r} is damaged: not JSON: {error}; {_COMMAND} writes one"
        ) from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ArgumentError(f"{file!r} is no placement lock; {_COMMAND} writes one")
    if content.get("version") != _VERSION:
        raise ArgumentError(
            f"lock file {file!r} has version {content.get('version')!r}, this Delegraph reads "
            f"{_VERSION}; write it again with {_COMMAND}"
        )
    try:
        return _lock(content, os.path.dirname(os.path.abspath(path)))
    except ArgumentError as error:
        raise ArgumentError(f"lock file {file!r} is damaged: {error}") from None


def _relative_to(file: str | os.PathLike[str]) -> Callable[[str], str]:
    """Return a function for paths relative to the folder of *file*, with ``/`` on each system."""
    folder = os.path.dirname(os.path.abspath(file))

    def relative(path: str) -> str:
        try:
            return Path(os.path.relpath(path, folder)).as_posix()
        except ValueError:  # on another drive of Windows
            return path

    return relative


def _lock(content: dict[str, Any], folder: str) -> PlacementLock:
    delegates, files = with_paths(
        lambda path: os.path.normpath(os.path.join(folder, path)),
        _texts(content, "delegates"),
        _texts(content, "delegate_files"),
    )
    model = _field(content, "model", dict)
    subgraphs = _field(content, "subgraphs", list)
    return PlacementLock(
        _field(model, "file", str),
        _field(model, "sha256", str),
        delegates,
        files,
        tuple(_subgraph(subgraph, i) for i, subgraph in enumerate(subgraphs)),
        *(_field({key: {}, **content}, key, dict) for key in ("by_default", "versions")),
    )


def _subgraph(content: Any, index: int) -> LockedSubgraph:
    if not isinstance(content, dict):
        raise ArgumentError(f"subgraph {index} is {content!r}")
    nodes, partitions = _field(content, "nodes", dict), _field(content, "partitions", dict)
    operators = []
    for position, (key, delegate) in enumerate(nodes.items()):
        number, _, op = key.partition(" ")
        if number != str(position) or not op or not isinstance(delegate, str | None):
            raise ArgumentError(
                f"node {position} of subgraph {index} is {key!r}: {delegate!r}, expected an entry "
                f"such as '{position} CONV_2D': 'delegate'"
            )
        operators.append(op)
    for name, count in partitions.items():
        if type(count) is not int:
            raise ArgumentError(f"partitions of {name!r} in subgraph {index} is {count!r}")
    return LockedSubgraph(
        _field(content, "name", str), tuple(operators), tuple(nodes.values()), partitions
    )


def _field(content: dict[str, Any], key: str, kind: type) -> Any:
    if not isinstance(content.get(key), kind):
        raise ArgumentError(f"{key!r} is {content.get(key)!r}, expected a JSON {_JSON_NAMES[kind]}")
    return content[key]


def _texts(content: dict[str, Any], key: str) -> tuple[str, ...]:
    values = _field(content, key, list)
    if not all(isinstance(value, str) for value in values):
        raise ArgumentError(f"{key!r} is {values!r}, expected names")
    return tuple(values)


_JSON_NAMES: dict[type, str] = {dict: "object", list: "array", str: "string"}
