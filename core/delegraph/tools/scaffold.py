"""Writes the distribution of a new delegate, ready to install and to test.

What the files hold is in ``templates/``; ``$name`` and the other words there are the fields that
:meth:`Project.words` gives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.resources import files
from pathlib import Path
from string import Template

from packaging.utils import canonicalize_name
from packaging.version import Version

from delegraph.errors import ArgumentError
from delegraph.plugins.plugin_set import PluginSet
from delegraph.plugins.specs import RESERVED_NAMES

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_.]+[A-Za-z0-9]+)*")
_PREFIX = "delegraph-"

UNARY = {
    "ABS": "np.absolute",
    "CEIL": "np.ceil",
    "COS": "np.cos",
    "EXP": "np.exp",
    "FLOOR": "np.floor",
    "LOG": "np.log",
    "NEG": "np.negative",
    "SIN": "np.sin",
    "SQRT": "np.sqrt",
    "SQUARE": "np.square",
    "TANH": "np.tanh",
}
BINARY = {
    "ADD": "np.add",
    "DIV": "np.divide",
    "MUL": "np.multiply",
    "SUB": "np.subtract",
}
OPERATORS = UNARY | BINARY
"""Operators a project can start with, and the NumPy function that computes each on floats."""

FILES = {
    ".github/workflows/tests.yml": "workflow.yml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "src/{package}/__init__.py": "__init__.py",
    "src/{package}/delegate.py": "delegate.py",
    "src/{package}/options.py": "options.py",
    "src/{package}/plugin.py": "plugin.py",
    "src/{package}/py.typed": "py.typed",
    "tests/test_conformance.py": "test_conformance.py",
    "tests/test_delegate.py": "test_delegate.py",
}
"""Path of each file in the project, and its template."""


@dataclass(frozen=True, slots=True)
class Project:
    """A distribution to be written.

    Attributes:
        name: the delegate's name, as users type it: ``my_chip``.
        operators: names of :data:`OPERATORS` that the delegate starts with.
    """

    name: str
    operators: tuple[str, ...]

    @classmethod
    def of(cls, name: str, operators: Sequence[str]) -> Project:
        """Return the project for a name as typed; ``delegraph-My.Chip`` means ``my_chip``.

        Raises:
            ArgumentError: a name that packages or delegates cannot have, or an operator that a
                project cannot start with.
        """
        if not _NAME.fullmatch(name):
            raise ArgumentError(
                f"name is {name!r}, expected a letter, then letters and digits with single '-', "
                "'_' or '.' between"
            )
        stem = canonicalize_name(name).removeprefix(_PREFIX)
        if stem in RESERVED_NAMES or not stem[0].isalpha():
            raise ArgumentError(f"name is {name!r}, which no delegate can have")
        for operator in operators:
            if operator not in OPERATORS:
                raise ArgumentError(
                    f"a project cannot start with operator {operator!r}, only with: "
                    + ", ".join(sorted(OPERATORS))
                )
        if not operators:
            raise ArgumentError("a project starts with at least one operator")
        return cls(stem.replace("-", "_"), tuple(dict.fromkeys(operators)))

    @property
    def distribution(self) -> str:
        """What pip installs: ``delegraph-my-chip``."""
        return _PREFIX + self.name.replace("_", "-")

    @property
    def package(self) -> str:
        """What Python imports: ``delegraph_my_chip``."""
        return self.distribution.replace("-", "_")

    def words(self) -> dict[str, str]:
        """Return what stands for each ``$word`` of the templates."""
        release = ".".join(map(str, Version(version("delegraph")).release))
        features = ["dynamic-shapes", "empty", "many-dims", "scalar"]
        if BINARY.keys() & set(self.operators):
            features.insert(0, "broadcast")
        return {
            "name": self.name,
            "distribution": self.distribution,
            "package": self.package,
            "prefix": "".join(part.capitalize() for part in self.name.split("_")),
            "operators_text": _listed(self.operators),
            "first": self.operators[0],
            "compute": "\n".join(f'    "{op}": {OPERATORS[op]},' for op in self.operators),
            "features": ", ".join(f'"{feature}"' for feature in features),
            "requirement": f"delegraph~={release}",
            "test_requirement": f"delegraph[testing]~={release}",
        }

    def clashes(self, plugins: PluginSet) -> list[str]:
        """Return what is installed under the same names, in words."""
        found = [
            f"delegate {self.name!r} is provided by {offer.plugin}"
            for offer in plugins.offers()
            if offer.spec.name == self.name
        ]
        try:
            installed = distribution(self.distribution)
        except PackageNotFoundError:
            return found
        return [f"{self.distribution} {installed.version} is installed", *found]


def write_project(project: Project, folder: Path) -> list[Path]:
    """Write all files and return their paths, sorted.

    Args:
        project: what to write.
        folder: where; made when it is not there.

    Raises:
        ArgumentError: *folder* is a file, holds something, or cannot be written.
    """
    try:
        if folder.exists() and any(folder.iterdir()):
            raise ArgumentError(f"folder {str(folder)!r} is not empty; nothing was written")
        return [
            _write(folder / path.format(package=project.package), template, project.words())
            for path, template in FILES.items()
        ]
    except OSError as error:
        raise ArgumentError(f"folder {str(folder)!r} cannot be written: {error}") from error


def _write(path: Path, template: str, words: dict[str, str]) -> Path:
    text = (files("delegraph.tools") / "templates" / f"{template}.template").read_text("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(Template(text).substitute(words), encoding="utf-8", newline="\n")
    return path


def _listed(words: Sequence[str]) -> str:
    """Return words as a sentence has them.

    >>> _listed(["ADD", "MUL", "SUB"])
    'ADD, MUL and SUB'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
