"""The import layers, file lengths and docstrings of the core, checked from its source alone.

import-linter checks the layers too, from pyproject.toml; this test also sees what it does not:
imports of the top-level package, and a folder whose row differs between the two lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "delegraph"
SOURCES = sorted(CORE.rglob("*.py"))
LAYERED = [path for path in SOURCES if path != CORE / "__init__.py"]
EXTENSIONS = sorted([*ROOT.glob("delegates/*/src/**/*.py"), *ROOT.glob("plugins_example/**/*.py")])

ROWS = [
    {"errors"},
    {"schema"},
    {"graph"},
    {"operators"},
    {"arithmetic"},
    {"kernels", "memory"},
    {"delegation"},
    {"plugins"},
    {"runtime"},
    {"native", "micro"},
    {"tools", "testing"},
    {"cli"},
]
ROW = {name: row for row, names in enumerate(ROWS) for name in names}
FACADE = "runtime"  # the row of what `delegraph` itself exports: Interpreter and what lies below
MAX_LINES = 400
TABLES = {CORE / "schema" / "enums.py"}  # one member a line; splitting it would hide, not help


def folder_of(path: Path) -> str:
    """Return the part of the core that *path* belongs to: ``kernels``, ``errors``."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def imported_modules(source: str) -> Iterator[str]:
    """Yield the full name of everything imported, wherever the import stands.

    ``from a import b`` yields ``a.b``. Imports under ``if TYPE_CHECKING`` count as well: a type
    from a higher layer is knowledge of it.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{a.name}" for a in node.names)


def misplaced_imports(folder: str, source: str) -> list[str]:
    """Return the imports in *source* that a module of *folder* may not have."""
    misplaced = []
    for name in imported_modules(source):
        parts = name.split(".")
        if parts[0] == "":
            misplaced.append(f"{name} (relative)")
        elif parts[0] == "delegraph":
            other = parts[1] if len(parts) > 1 and parts[1] in ROW else FACADE
            if other != folder and not ROW[other] < ROW[folder]:
                misplaced.append(name)
        elif parts[0].startswith("delegraph_"):
            misplaced.append(f"{name} (a plugin)")
    return misplaced


def short_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", LAYERED, ids=short_name)
def test_module_imports_only_lower_layers(path: Path) -> None:
    assert misplaced_imports(folder_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted({*SOURCES, *EXTENSIONS} - TABLES), ids=short_name)
def test_file_is_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", SOURCES, ids=short_name)
def test_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=short_name)
def test_module_name_says_what_it_holds(path: Path) -> None:
    assert not {"utils", "util", "common", "helpers", "misc"} & set(path.stem.split("_"))


def test_import_linter_knows_the_same_rows() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^layers = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    rows = [set(re.findall(r"\w+", row)) for row in re.findall(r'"(.*?)"', listed[1])]
    assert rows[::-1] == ROWS


@pytest.mark.parametrize(
    "source",
    [
        "import delegraph",
        "import delegraph.cli",
        "from delegraph import Interpreter",
        "from delegraph import runtime",
        "from delegraph.runtime.interpreter import Interpreter",
        "def late():\n    from delegraph.plugins import PluginSet",
        "if TYPE_CHECKING:\n    from delegraph.delegation import Delegate",
        "from delegraph.memory import arena_planner",
        "from . import tensor",
        "import delegraph_example.plugin",
    ],
)
def test_a_kernel_that_looks_up_is_caught(source: str) -> None:
    assert misplaced_imports("kernels", source)


def test_a_kernel_that_looks_down_is_allowed() -> None:
    source = "import numpy\nfrom delegraph.graph.model import Model\nimport delegraph.errors"
    assert misplaced_imports("kernels", source) == []
