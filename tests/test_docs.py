"""The examples of the documentation run, and its tables and links are in step with the code."""

from __future__ import annotations

import codeop
import contextlib
import doctest
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import delegraph.cli.exit_codes
import delegraph.errors
from delegraph import BuiltinOperator, Interpreter, TensorType
from delegraph.plugins import PluginState, hookspecs
from delegraph.schema.tables import Buffer, Model, Operator, SubGraph, Tensor, operator_code
from delegraph.schema.writer import write_model
from distributions.projects import URL
from support.scripts import script

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NUMBA_CPU = ROOT / "delegates" / "numba_cpu" / "src" / "delegraph_numba_cpu"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
LINKED_PAGES = [
    *PAGES,
    *sorted(ROOT.glob("[!R]*.md")),
    *sorted(ROOT.glob("delegates/*/*.md")),
    *sorted(DOCS.glob("*/*.md")),
]
BLOB = f"{URL}/blob/main/"
TUTORIAL = [DOCS / f"{n}.md" for n in ("first-delegate", "delegate-options", "test-a-delegate")]
"""Pages that build the example plugin, one after the other."""
EXAMPLE = ROOT / "plugins_example"

FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = "prints"
"""Title of a block that shows what the code before it prints."""

TITLE = re.compile(r'title="([^"]+)"')
LINK = re.compile(r'(?:\]\(|^\[[^\]]+\]: |src(?:set)?=")([^)"\s]+)', re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is a part of, its text and its line."""

    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        title = TITLE.search(match[2])
        line = text.count("\n", 0, match.start()) + 2
        found.append(Block(match[1], title[1] if title else "", match[3], line))
    return found


def pages_with(language: str) -> list[Path]:
    return [p for p in PAGES if any(b.language == language and not b.title for b in blocks(p))]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages_with("python"), ids=page_name)
def test_python_blocks_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page's blocks from the top, in one namespace, as a reader would type them."""
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {"__name__": "example"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    printed = io.StringIO()
    for block in blocks(page):
        if block.title == PRINTS:
            assert printed.getvalue() == block.text
        if block.language != "python" or block.title:
            continue
        if ">>>" in block.text:
            parsed = doctest.DocTestParser().get_doctest(
                block.text, names, f"{page.name}:{block.line}", str(page), block.line - 1
            )
            runner.run(parsed, clear_globs=False)
            names.update(parsed.globs)
        else:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("page", pages_with("python"), ids=page_name)
def test_examples_can_be_pasted_without_their_prompts(page: Path) -> None:
    """After a compound statement, Python's prompt waits for an empty line."""
    for block in (b for b in blocks(page) if b.language == "python"):
        pending: list[str] = []
        for line in block.text.splitlines():
            if not line.startswith("..."):
                assert not pending, f"'...' is missing after {pending[-1]}"
            if line.startswith((">>>", "...")):
                pending.append(line[4:])
                if codeop.compile_command("\n".join(pending)) is not None:
                    pending = []


def sines_in_a_row(count: int) -> bytes:
    """Return a model of *count* SIN nodes in a row on ``[3], float32``."""
    tensors = tuple(Tensor(shape=(3,), type=TensorType.FLOAT32) for _ in range(count + 1))
    nodes = tuple(Operator(inputs=(i,), outputs=(i + 1,)) for i in range(count))
    graph = SubGraph(tensors=tensors, inputs=(0,), outputs=(count,), operators=nodes)
    codes = (operator_code(BuiltinOperator.SIN),)
    return write_model(
        Model(version=3, operator_codes=codes, subgraphs=(graph,), buffers=(Buffer(),))
    )


@pytest.mark.parametrize(("page", "most"), [("README.md", 150), ("docs/first-delegate.md", 400)])
def test_page_that_beginners_read_is_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= most


@pytest.mark.parametrize("count", [1, 2, 3])
def test_readme_delegate_computes_whole_partitions(count: int) -> None:
    code = next(b.text for b in blocks(ROOT / "README.md") if "class SinDelegate" in b.text)
    names: dict[str, Any] = {}
    exec(code, names)
    interpreter = Interpreter(
        model_content=sines_in_a_row(count), delegates=[names["SinDelegate"]()]
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.float32([1, -2, 0]))
    interpreter.invoke()
    expected = np.float32([1, -2, 0])
    for _ in range(count):
        expected = np.sin(expected)
    np.testing.assert_array_equal(interpreter.get_tensor(count), expected)
    assert [p.nodes for p in interpreter.placement.partitions] == [tuple(range(count))]


def commands(page: Path) -> list[tuple[str, str]]:
    """Return the ``$ delegraph`` lines of a page, each with the output that the page shows."""
    shown = []
    for block in blocks(page):
        if block.language == "console":
            for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("delegraph "):
                    shown.append((command, output))
    return shown


@pytest.mark.repetition(4)
@pytest.mark.parametrize(
    ("command", "output"),
    [pytest.param(*c, id=f"{page_name(p)}: {c[0]}") for p in PAGES for c in commands(p)],
)
def test_command_prints_what_the_page_shows(command: str, output: str) -> None:
    """Compare outputs without their blanks; ``...`` on a page stands for anything."""
    run = subprocess.run(
        [sys.executable, "-m", "delegraph", *shlex.split(command)[1:]],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    printed = run.stdout + run.stderr
    if output.strip():
        expected, got = ("".join(text.split()) for text in (output, printed))
        assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), printed
    else:
        assert run.returncode == 0, printed


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_a_page_that_shows_nodes_left_says_how_they_stay_so(page: Path) -> None:
    """Most readers have a delegate that takes them by default."""
    left = re.compile(r"[1-9]\d* stays? with Delegraph's kernels")
    if any(left.search(block.text) for block in blocks(page)):
        assert "`export DELEGRAPH_DEFAULT_DELEGATES=`" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", LINKED_PAGES, ids=page_name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Links to this repository's own address are files of the clone."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [t.split("#")[0] for t in LINK.findall(text)]
    files = [
        ROOT / t.removeprefix(BLOB) if t.startswith(BLOB) else page.parent / t
        for t in targets
        if t and (t.startswith(BLOB) or "://" not in t)
    ]
    assert [str(f) for f in files if not f.exists()] == []


def tutorial_files(*, final: bool = True) -> dict[str, str]:
    """Return the files that the tutorial builds, in their last state or in their first."""
    files: dict[str, str] = {}
    for block in (block for page in TUTORIAL for block in blocks(page)):
        if block.title and (final or block.title not in files):
            files[block.title] = block.text
    return files


def test_tutorial_ends_with_the_example_plugin() -> None:
    for name, text in tutorial_files().items():
        held = (EXAMPLE / name).read_text(encoding="utf-8")
        if name == "pyproject.toml":  # the page leaves out what a first delegate does not need
            lines = iter(held.splitlines())
            assert [line for line in text.splitlines() if line not in lines] == []
        else:
            assert text == held, name


def test_tutorial_shows_every_file_of_the_example_plugin() -> None:
    shown = set(tutorial_files())
    held = {p.relative_to(EXAMPLE).as_posix() for p in EXAMPLE.rglob("*.py")} | {"pyproject.toml"}
    assert held - shown == set()


def test_tutorial_first_plugin_offers_its_delegate(tmp_path: Path) -> None:
    """Lay out the files of the first part as an installed package and ask for ``sin``."""
    for name, text in tutorial_files(final=False).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    project = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    entry_points = re.search(r'entry-points."(.*?)"\]\n(\w+) = "(.*?)"', project)
    assert entry_points is not None
    info = tmp_path / "src" / "delegraph_example-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: delegraph-example\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[{}]\n{} = {}\n".format(*entry_points.groups()))
    code = (
        "from delegraph.plugins import installed; plugins = installed();"
        "print(*(o.address for o in plugins.offers()), plugins.create_delegate('sin').name())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": str(tmp_path / "src"),
            "DELEGRAPH_PLUGINS": "delegraph-example:example",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.split() == ["delegraph-example:sin", "sin"], run.stderr


def test_publishing_page_shows_the_workflow_that_new_writes() -> None:
    (shown,) = [b.text for b in blocks(DOCS / "publish-a-delegate.md") if b.language == "yaml"]
    templates = resources.files("delegraph.tools") / "templates"
    assert shown == (templates / "publish.yml.template").read_text("utf-8")


def test_operators_page_is_in_step_with_the_op_table() -> None:
    generator = script("generate_operators.py")
    page = (DOCS / "operators.md").read_text(encoding="utf-8")
    assert generator.page() == page, "run: python docs/generate_operators.py"


def test_errors_page_explains_every_exception_with_its_base() -> None:
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    tree = inspect.cleandoc(str(delegraph.errors.__doc__)).split("\n\n")[1]
    assert f"```text\n{tree}\n```" in page
    builtin = (ValueError, RuntimeError, MemoryError, IndexError)
    for name, kind in inspect.getmembers(delegraph.errors, inspect.isclass):
        if kind.__module__ != delegraph.errors.__name__:
            continue
        bases = [b.__name__ for b in builtin if issubclass(kind, b)]
        base = f"`{bases[0]}` " if bases else ""
        assert f"| `{name}` | {base}|" in page


def test_architecture_page_names_files_that_exist() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    names = re.findall(r"(?<![\w/])((?:\w+/)+(?:\w+\.py)?)(?=[\s`])", page)
    assert len(names) > 40
    places = (ROOT, ROOT / "core" / "delegraph", DOCS)
    assert [n for n in names if not any((place / n).exists() for place in places)] == []


def test_glossary_names_files_that_exist() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    sources = re.findall(r"^\| \*\*.*\| `([\w/]+(?:\.py|/))`[^|]*\|$", page, re.MULTILINE)
    assert len(sources) > 15
    assert [s for s in sources if not (ROOT / "core" / "delegraph" / s).exists()] == []
    places = re.findall(r"\| numba_cpu, `([^`]*)` \|$", page, re.MULTILINE)
    assert len(places) > 15
    assert [p for p in places if not (NUMBA_CPU / p).exists()] == []


def test_hooks_page_explains_every_hook_and_plugin_state() -> None:
    page = (DOCS / "hooks.md").read_text(encoding="utf-8")
    hooks = {n: hook for n, hook in vars(hookspecs).items() if n.startswith("delegraph_")}
    assert hooks
    for name, hook in hooks.items():
        signature = str(inspect.signature(hook)).replace("'", "")
        assert f"## `{name}{signature}`" in page
    for state in PluginState:
        assert f"| `{state.value}` |" in page


def test_command_line_page_explains_every_command_and_exit_code() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    for command in delegraph.cli.COMMANDS:
        assert f"## `delegraph {command}" in page
    codes = [(str(code), text) for code, text in delegraph.cli.exit_codes.CODES.items()]
    assert [code for code, _ in codes] == ["0", "1", "2", "3", "4"]
    for code, meaning in codes:
        assert f"| {code} | {meaning} |" in page
