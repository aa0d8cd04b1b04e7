"""The distributions of this repository, as their ``pyproject.toml`` declares them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
URL = SETTINGS["project"]["urls"]["Source"]
"""Address of the repository."""


@dataclass(frozen=True)
class Project:
    """One distribution: its folder, its import package and the parsed ``pyproject.toml``."""

    folder: Path
    package: Path
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the distribution: ``delegraph-flex``."""
        return str(self.settings["project"]["name"])


def projects() -> list[Project]:
    """Return every distribution, the core first."""
    files = [ROOT / "pyproject.toml", *sorted(ROOT.glob("*/pyproject.toml"))]
    files += sorted(ROOT.glob("delegates/*/pyproject.toml"))
    found = []
    for file in files:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
        (package,) = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        found.append(Project(file.parent, file.parent / package, settings))
    return found
