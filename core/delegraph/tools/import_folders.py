"""Folders from which the packages of Delegraph and of plugins are imported."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from delegraph.plugins.sources import installed_from
from delegraph.tools.plugin_check import Finding, Level


def import_folders(modules: Mapping[str, str]) -> dict[str, str]:
    """Return the folder of each distribution's package; empty if there is no package.

    Args:
        modules: mapping from a distribution to a module of its package, which is not imported.
    """
    return {name: _folder(module.partition(".")[0]) for name, module in modules.items()}


def _folder(package: str) -> str:
    with suppress(ImportError, ValueError):
        spec = find_spec(package)
        if spec is not None and spec.origin:
            return os.path.dirname(spec.origin)
    return ""


def check_imports(folders: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a note if packages are imported from other places than those of their distributions.

    Args:
        folders: result of :func:`import_folders`.
    """
    installed = {name: _installed(name) for name, folder in folders.items() if folder}
    hidden = [
        f"{name}: imported from {folders[name]}, installed in {place}"
        for name, place in installed.items()
        if place is not None and not _is_in(Path(folders[name]).resolve(), place)
    ]
    if hidden:
        text = "; ".join(hidden)
        remedy = "look for other copies in PYTHONPATH and in the current folder, which come first"
        yield Finding(Level.NOTE, "imports", text, remedy)


def _is_in(folder: Path, place: Path) -> bool:
    return place in (folder, *folder.parents)


def _installed(distribution: str) -> Path | None:
    """Folder in which a distribution was installed; None if that is unknown."""
    try:
        installed = metadata.distribution(distribution).locate_file("")
    except metadata.PackageNotFoundError:
        return None
    return Path(installed_from(distribution, is_editable=True) or str(installed)).resolve()
