"""The import layers, circles, file lengths and docstrings, checked from the source alone.

import-linter checks the layers too, from pyproject.toml; this test also sees what it does not:
imports of the top-level package, and a folder whose row differs between the two lists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "delegraph"
TESTS = ROOT / "tests"
SOURCES = sorted(CORE.rglob("*.py"))
LAYERED = [path for path in SOURCES if path != CORE / "__init__.py"]
EXTENSIONS = sorted([*ROOT.glob("delegates/*/src/**/*.py"), *ROOT.glob("plugins_example/**/*.py")])

ROWS = [
    {"collector"},
    {"errors", "exports", "json_records", "lazy_dataclass", "locks", "log", "quantities"},
    {"schema", "processes"},
    {"bundles"},
    {"graph"},
    {"operators"},
    {"arithmetic"},
    {"kernels", "memory"},
    {"delegation"},
    {"plugins"},
    {"runtime"},
    {"native", "micro", "compiled_model"},
    {"tools"},
    {"testing", "scale", "aot"},
    {"cli"},
    {"__main__"},
]
ROW = {name: row for row, names in enumerate(ROWS) for name in names}
FACADE = "runtime"  # the row of what `delegraph` itself exports: Interpreter and what lies below
MAX_LINES = 400
TABLES = {CORE / "schema" / "enums.py"}  # one member a line; splitting it would hide, not help


def folder_of(path: Path) -> str:
    """Return the part of the core that *path* belongs to: ``kernels``, ``errors``."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


class Facts(NamedTuple):
    """What these tests ask of a source.

    Attributes:
        imported: full name of everything imported, wherever the import stands; see
            :func:`imported_modules`.
        bound: names that the module defines or assigns, as attributes of anything too.
        is_described: whether the module has a docstring.
    """

    imported: tuple[str, ...]
    bound: frozenset[str]
    is_described: bool


@cache
def facts(source: str) -> Facts:
    """Return the facts of a source; each is parsed and walked once for all tests."""
    imported: list[str] = []
    bound: set[str] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = f"{'.' * node.level}{node.module or ''}"
            imported += (f"{start}.{alias.name}" for alias in node.names)
        else:
            bound |= bound_by(node)
    return Facts(tuple(imported), frozenset(bound), bool(ast.get_docstring(tree)))


def bound_by(node: ast.AST) -> set[str]:
    """Return the name that a definition or an assignment binds; empty for other nodes."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        return {node.id if isinstance(node, ast.Name) else node.attr}
    return set()


def imported_modules(source: str) -> tuple[str, ...]:
    """Return the full name of everything imported, wherever the import stands.

    ``from a import b`` gives ``a.b``. Imports under ``if TYPE_CHECKING`` count as well: a type
    from a higher layer is knowledge of it.
    """
    return facts(source).imported


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


def test_modules_import_only_lower_layers() -> None:
    found = {
        short_name(path): misplaced_imports(folder_of(path), path.read_text(encoding="utf-8"))
        for path in LAYERED
    }
    assert {name: imports for name, imports in found.items() if imports} == {}


def test_files_are_at_most_400_lines() -> None:
    lines = {
        short_name(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in sorted({*SOURCES, *EXTENSIONS} - TABLES)
    }
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_modules_have_docstrings() -> None:
    bare = [path for path in SOURCES if not facts(path.read_text("utf-8")).is_described]
    assert [short_name(path) for path in bare] == []


def test_docstrings_of_booleans_begin_with_whether() -> None:
    other = re.compile(r'"""(Return|Tell|Tells|Say|Says) whether\b')
    found = [path for path in (*SOURCES, *EXTENSIONS) if other.search(path.read_text("utf-8"))]
    assert [short_name(path) for path in found] == []


def test_names_of_modules_say_what_they_hold() -> None:
    vague = {"utils", "util", "common", "helpers", "misc"}
    assert [short_name(path) for path in SOURCES if vague & set(path.stem.split("_"))] == []


STARTS_PROCESSES = [
    "core/delegraph/processes/",
    "delegates/numba_cpu/src/delegraph_numba_cpu/library/compile_processes.py",
]
"""The only product code that starts processes; the second also runs without the core."""


def test_processes_are_started_by_one_package() -> None:
    ways = re.compile(r"\b(subprocess|multiprocessing|Popen|os\.(fork|spawn\w*|exec\w*|killpg))\b")
    found = [
        short_name(path)
        for path in sorted({*SOURCES, *EXTENSIONS})
        if ways.search(path.read_text(encoding="utf-8")) and "tests" not in path.parts
    ]
    assert [name for name in found if not name.startswith(tuple(STARTS_PROCESSES))] == []


OUTSIDE = {
    *("benchmarks", "conformance", "differences", "distributions", "docs"),
    *("fuzz", "mutation", "soak", "support"),
}
"""Folders of tests that are about more than one folder of the core."""

TOPICS = {
    "bundles/damage": "random damage of every format",
    "cli/commands/bundles": "a model in a bundle, in every command",
    "cli/main": "cli",
    "cli/mistakes": "likely mistakes, in every command",
    "cli/plugin_commands": "commands that plugins add",
    "cli/runtime": "--runtime litert, in every command",
    "kernels/numerics": "both official sets of kernels",
    "kernels/stablehlo/models": "several operators at once",
    "memory/corpus_plans": "real models",
    "memory/official_offsets": "what the official planner gives",
    "micro/wheel": "what TFLM itself makes of cases",
    "native/litert/hosts": "both hosts on real models",
    "native/litert/lifetime": "who is closed first",
    "plugins/commands": "commands that plugins add",
    "plugins/compilers": "compilers of partitions that plugins add",
    "runtime/delegates/delegate_flags": "each flag, in the whole runtime",
    "runtime/delegates/failing_phases": "each phase of a delegate, in the whole runtime",
    "runtime/delegates/measured_policy": "the policy, as users ask for it",
    "runtime/delegates/replanning": "delegates that come and go",
    "runtime/delegates/shadow_policy": "the policy, as users ask for it",
    "runtime/delegates/three_delegates": "several delegates on a real model",
    "runtime/delegates/validation": "the option, as users ask for it",
    "runtime/garbage": "memory in circles, of all that an interpreter holds",
    "runtime/interrupts": "Ctrl-C in every call of an interpreter",
    "runtime/same_mistakes": "errors of the official interpreter",
    "runtime/shapes_and_memory": "a running model",
    "scale/isolated_rows": "rows that end the process that computes them",
    "schema/declarations": "what flatc generated",
    "schema/malformed": "damaged files",
    "tools/evaluation/known_precisions": "precisions known by hand, by each definition",
    "tools/reporting/colours": "the page's colours, as people see them",
    "testing/conformance/references": "custom operators without a kernel",
}
"""Test files that are named for a topic, and which; the others start with a module's name."""


def misplaced_tests(names: Iterable[str], core: Iterable[str]) -> list[str]:
    """Return the tests that do not mirror the core.

    Args:
        names: of test files, without ``test_``: ``"kernels/conv"``.
        core: of modules and folders: ``"kernels/conv"``, ``"kernels"``.
    """
    places = set(core)
    misplaced = []
    for name in names:
        folder, _, subject = name.rpartition("/")
        words = subject.split("_")
        starts = {"_".join(words[:count]) for count in range(1, len(words) + 1)}
        if folder not in places or not {f"{folder}/{start}" for start in starts} & places:
            misplaced.append(name)
    return misplaced


def test_tests_mirror_the_core() -> None:
    core = [str(path.relative_to(CORE).with_suffix("")) for path in CORE.rglob("*")]
    names = [
        path.relative_to(TESTS).with_name(path.stem.removeprefix("test_")).as_posix()
        for path in TESTS.glob("*/**/test_*.py")
        if path.relative_to(TESTS).parts[0] not in OUTSIDE
    ]
    assert sorted(misplaced_tests(names, core)) == sorted(TOPICS)


def test_a_test_without_a_module_is_caught() -> None:
    core = ["kernels", "kernels/conv"]
    fitting = ["kernels/conv", "kernels/conv_int8"]
    wrong = ["kernels/convolution", "kernels/add", "ops/conv", "conv"]
    assert misplaced_tests([*fitting, *wrong], core) == wrong


OFFICIAL = {
    "_asdict", "_custom_op_registerers", "_delegates", "_fields", "_get_native_delegate_pointer",
    "_get_op_details", "_get_ops_details", "_interpreter", "_library", "_make", "_native_handle",
    "_replace", "_safe_to_run",
}  # fmt: skip
"""Members of the official interpreter, and of named tuples, that are public in all but name."""

NEEDED = {"_subgraph"}
"""Faulty delegates take a context's subgraph, to run the nodes that they replace."""


def _name(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def private_members(source: str) -> set[str]:
    """Private names of other modules that *source* imports, reads or patches by ``setattr``."""
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        bound |= bound_by(node)
        if isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and _name(node.func).endswith("setattr"):
            names = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
            used |= {str(name).rpartition(".")[2] for name in names}
    return {name for name in used - bound if re.fullmatch(r"_[a-z]\w*(?<!_)", name)}


def test_tests_reach_no_private_member_of_the_product() -> None:
    products = [*SOURCES, *ROOT.glob("delegates/*/src/**/*.py")]
    ours = set().union(*(facts(path.read_text(encoding="utf-8")).bound for path in products))
    private = {name for name in ours - OFFICIAL - NEEDED if name.startswith("_")}
    reached = {}
    for path in (*TESTS.rglob("*.py"), *ROOT.glob("delegates/*/tests/**/*.py")):
        source = path.read_text(encoding="utf-8")
        if private.intersection(re.findall(r"\b_\w+", source)):  # few files need to be parsed
            reached[short_name(path)] = private_members(source) & private
    assert {name: used for name, used in reached.items() if used} == {}


def test_a_private_member_is_caught() -> None:
    source = "from a import _b\nc._d()\nmonkeypatch.setattr(e, '_f', 1)\n_g = h._g"
    assert private_members(source) == {"_b", "_d", "_f"}


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


# -- circles -----------------------------------------------------------------------------------

SOURCE_ROOTS = [ROOT / "core", *sorted(ROOT.glob("delegates/*/src")), ROOT / "plugins_example/src"]


def module_imports() -> dict[str, list[str]]:
    """Return the imports of each module of the core and of all distributions, by full name.

    What a stub imports counts for its module: it says what a lazy package exports.
    """
    found: dict[str, list[str]] = {}
    for root in SOURCE_ROOTS:
        for path in sorted({*root.rglob("*.py"), *root.rglob("*.pyi")}):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            imported = imported_modules(path.read_text(encoding="utf-8"))
            full = [f"{name}.{n.lstrip('.')}" if n.startswith(".") else n for n in imported]
            found[name] = found.get(name, []) + full
    return found


def imports_between(imported: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return which of the modules each of them imports.

    Args:
        imported: what each module imports, other modules or names in them.
    """
    found: dict[str, set[str]] = {}
    for module, names in imported.items():
        modules = (name if name in imported else name.rpartition(".")[0] for name in names)
        found[module] = {name for name in modules if name in imported and name != module}
    return found


def circle_of(imports: Mapping[str, set[str]]) -> list[str]:
    """Return modules each of which imports the next, the first one again last; empty if none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    imports = imports_between(module_imports())
    assert " imports ".join(circle_of(imports)) == ""


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        "from a import Thing",
        "if TYPE_CHECKING:\n    from a import Thing",
        "def late():\n    import a",
    ],
)
def test_a_circle_is_named_wherever_its_imports_stand(source: str) -> None:
    sources = {"a": "from p import b", "p": "", "p.b": "import p.c, os", "p.c": source}
    imported = {name: imported_modules(source) for name, source in sources.items()}
    assert circle_of(imports_between(imported)) == ["a", "p.b", "p.c", "a"]
