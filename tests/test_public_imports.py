"""Distributions outside the core import public names only; docs/compatibility.md has them.

A delegate must go on working when the core's insides move, so the ones of this repository show that
the public packages are enough.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import delegraph.memory

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = sorted(path.parent for path in ROOT.glob("*/*/pyproject.toml"))
DISTRIBUTIONS.append(ROOT / "plugins_example")
SHOWN = [ROOT / "docs" / "demo", ROOT / "docs" / "examples"]
"""Scripts that users copy from."""

PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("delegates/*/README.md")])
"""Pages with code that users copy from."""

PAGE = ROOT / "docs" / "compatibility.md"

PACKAGES = {
    "aot",
    "arithmetic",
    "compiled_model",
    "delegation",
    "errors",
    "graph",
    "json_records",
    "lazy_dataclass",
    "memory",
    "micro",
    "native",
    "operators",
    "plugins",
    "scale",
    "schema",
    "testing",
    "tools",
}
"""Public as far as the package itself exports names."""

NAMESPACES = {
    "delegraph.errors",
    "delegraph.json_records",
    "delegraph.lazy_dataclass",
    "delegraph.micro.runtime",
    "delegraph.scale.beam",
    "delegraph.scale.ray",
    "delegraph.schema.enums",
    "delegraph.schema.options",
    "delegraph.schema.tables",
}
"""Public modules with all their names: each counts as one export."""

MOST = 350
"""Exports of all packages together; a new one takes the place of another."""

LOOK_IN = {
    "bundles": "delegraph.graph.load_model, which takes FILE#SECTION",
    "cli": "delegraph.testing.run_command for tests, click and rich for a command of your own",
    "collector": "gc of Python",
    "exports": "lazy_loader, which it is made of",
    "kernels": "delegraph.operators, delegraph.arithmetic or delegraph.builtin_registration",
    "locks": "threading of Python",
    "log": "logging of Python",
    "processes": "subprocess and multiprocessing of Python",
    "quantities": "f-strings of Python",
    "runtime": "delegraph itself: Interpreter, load_delegate",
}
"""Where to find what the private packages have."""

NAMES_OF_IMPORTS = {"google": "protobuf", "re2": "google-re2"}
"""Distributions whose import packages have other names."""


class Found(NamedTuple):
    """An import that is not public.

    Attributes:
        line: where it stands.
        name: what is imported: ``delegraph.kernels.conv``.
        look_in: where to look instead.
    """

    line: int
    name: str
    look_in: str


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything imported, by ``importorskip`` and the like as well."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = ast.unparse(node.func).rpartition(".")[2]
            if function in ("import_module", "importorskip"):
                yield node.lineno, str(node.args[0].value)


def exports(package: str) -> dict[str, str]:
    """Names that a package exports, each with the full name of what it is."""
    module = importlib.import_module(package)
    stub = Path(module.__file__ or "").with_suffix(".pyi")
    if not stub.exists():
        return {}
    found = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        place = ".".join(filter(None, (package, node.module)))
        found.update({alias.asname or alias.name: f"{place}.{alias.name}" for alias in node.names})
    return found


EXPORTS = {f"delegraph.{name}": exports(f"delegraph.{name}") for name in sorted(PACKAGES)}


def look_in(name: str) -> str | None:
    """Place to look in instead of *name*; None when it is public."""
    parts = name.split(".")
    if parts[0] != "delegraph" or len(parts) == 1:
        return None
    package = parts[1]
    if package in PACKAGES:
        is_namespace = name in NAMESPACES or name.rpartition(".")[0] in NAMESPACES
        exported = EXPORTS[f"delegraph.{package}"]
        is_export = len(parts) == 2 or (len(parts) == 3 and parts[2] in exported)
        return None if is_export or is_namespace else f"what delegraph.{package} itself exports"
    if package in LOOK_IN:
        return LOOK_IN[package]
    is_exported = package in (*delegraph.__all__, "__version__")
    return None if is_exported else "delegraph/__init__.pyi, or another public package"


def private_imports(source: str) -> list[Found]:
    """Return the imports in *source* that are not public."""
    found = ((line, name, look_in(name)) for line, name in imports(source))
    return [Found(line, name, other) for line, name, other in found if other is not None]


def short_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("folder", [*DISTRIBUTIONS, *SHOWN], ids=short_name)
def test_what_is_outside_the_core_imports_public_names_only(folder: Path) -> None:
    """Tests of this repository's delegates may also open modules of the public packages."""
    wrong = [
        f"{short_name(path)}:{line}: {name} is not public; look in {other}"
        for path in sorted(folder.rglob("*.py"))
        for line, name, other in private_imports(path.read_text(encoding="utf-8"))
        if "tests" not in path.relative_to(folder).parts or name.split(".")[1] not in PACKAGES
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=short_name)
def test_pages_show_public_names_only(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = re.findall(
        r"^ *(?:>>> )?((?:from delegraph\S* import \w.*|import delegraph\S*))$", text, re.M
    )
    assert private_imports("\n".join(shown)) == []


def test_delegates_run_without_the_test_kit() -> None:
    """``delegraph.testing`` needs pytest, which users do not install."""
    wrong = [
        f"{short_name(path)}:{line}"
        for distribution in DISTRIBUTIONS
        for path in sorted((distribution / "src").rglob("*.py"))
        for line, name in imports(path.read_text(encoding="utf-8"))
        if name.startswith("delegraph.testing")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "line", "place"),
    [
        ("from delegraph.kernels import conv", 1, "delegraph.operators"),
        ("import os\nimport delegraph.kernels.ops", 2, "delegraph.operators"),
        ("from delegraph.runtime.subgraph import Subgraph", 1, "Interpreter"),
        ("from delegraph import cli", 1, "run_command"),
        ("def late():\n    from delegraph.cli import printing", 2, "rich"),
        ("from delegraph.memory.arena import Allocation", 1, "delegraph.memory itself"),
        ("from delegraph.memory import arena", 1, "delegraph.memory itself"),
        ("import delegraph.native.litert.host", 1, "delegraph.native itself"),
        ("from delegraph.operators.tensor import Tensor", 1, "delegraph.operators itself"),
        ("kernels = pytest.importorskip('delegraph.kernels')", 1, "delegraph.operators"),
        ("from delegraph import no_such_name", 1, "__init__.pyi"),
    ],
)
def test_a_private_import_is_caught_and_told_where_to_look(
    source: str, line: int, place: str
) -> None:
    ((at, _, other),) = private_imports(source)
    assert at == line
    assert place in other


@pytest.mark.parametrize(
    "source",
    [
        "import delegraph",
        "from delegraph import Interpreter, errors, __version__",
        "from delegraph.memory import Allocation",
        "from delegraph.operators import LstmInput",
        "from delegraph.schema.options import AddOptions",
        "from delegraph.schema import enums",
        "import delegraph_flex.kernel",
    ],
)
def test_a_public_import_is_not(source: str) -> None:
    assert private_imports(source) == []


def test_the_page_names_what_is_public() -> None:
    named = set(re.findall(r"^\| `delegraph\.(\w+)`", PAGE.read_text(encoding="utf-8"), re.M))
    assert named == PACKAGES
    assert not named & LOOK_IN.keys()


def test_the_boundary_can_be_counted() -> None:
    """Names of ``delegraph`` itself that a package exports as well count once."""
    packages = {place for names in EXPORTS.values() for place in names.values()}
    both = packages | set(exports("delegraph").values()) | NAMESPACES
    assert len(both) <= MOST


def test_each_export_has_one_place() -> None:
    """Apart from ``delegraph`` itself, which repeats what users meet first."""
    places = Counter(place for names in EXPORTS.values() for place in names.values())
    assert [place for place, count in places.items() if count > 1] == []


@pytest.mark.parametrize("package", ["delegraph", *EXPORTS])
def test_every_export_has_a_docstring_and_a_type(package: str) -> None:
    """Modules say for themselves what they hold; constants have a text after them."""
    bare = [name for name, place in exports(package).items() if not is_documented(place)]
    assert bare == []


def is_documented(place: str) -> bool:
    """Whether a class or function has a docstring, and a constant a type and a text after it."""
    module, _, name = place.rpartition(".")
    found = getattr(importlib.import_module(module), name, None)
    if isinstance(found, ModuleType):
        return bool(found.__doc__)
    tree = ast.parse(Path(importlib.import_module(module).__file__ or "").read_bytes())
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) is not None
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(t, ast.Name) and t.id == name for t in targets):
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    return False


def test_an_unknown_name_of_a_package_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        delegraph.memory.nonsense  # type: ignore[attr-defined]  # noqa: B018 - the access is the test


def test_every_package_of_the_core_is_public_or_not() -> None:
    core = ROOT / "core" / "delegraph"
    here = {path.stem for path in core.iterdir() if path.suffix == ".py" or path.is_dir()}
    here -= {"__init__", "__main__", "__pycache__"}
    assert here == PACKAGES | LOOK_IN.keys()


@pytest.mark.parametrize("package", ["arithmetic", "operators"])
def test_the_docstring_of_a_package_lists_its_modules(package: str) -> None:
    folder = ROOT / "core" / "delegraph" / package
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_bytes())) or ""
    entries = re.findall(r"^- (``.*``):", text, re.M)
    listed = [name for entry in entries for name in re.findall(r"``(\w+)``", entry)]
    assert sorted(listed) == sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")


def project_of(distribution: Path) -> dict[str, object]:
    """Return the table ``[project]`` of a distribution."""
    text = (distribution / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, object] = tomllib.loads(text)["project"]
    return project


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=short_name)
def test_delegates_take_this_minor_release_of_the_core(distribution: Path) -> None:
    release = Version(delegraph.__version__).release
    dependencies = project_of(distribution)["dependencies"]
    assert f"delegraph~={release[0]}.{release[1]}.0" in dependencies  # type: ignore[operator]  # a list


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=short_name)
def test_distributions_require_what_they_import(distribution: Path) -> None:
    project = project_of(distribution)
    extras = project.get("optional-dependencies", {})
    lists = [project["dependencies"], *extras.values()]  # type: ignore[attr-defined]  # a dict
    required = {canonicalize_name(Requirement(text).name) for texts in lists for text in texts}
    imported = {
        name.partition(".")[0]
        for path in (distribution / "src").rglob("*.py")
        for _, name in imports(path.read_text(encoding="utf-8"))
    }
    others = imported - sys.stdlib_module_names - {path.name for path in distribution.glob("src/*")}
    names = {canonicalize_name(NAMES_OF_IMPORTS.get(name, name)) for name in others}
    assert {name for name in names if f"{name}-cpu" not in required} - required == set()
