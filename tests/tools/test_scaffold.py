"""What ``delegraph new`` writes works, from installation to its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.plugins import PluginSet
from delegraph.tools.scaffold import ENGINES, KINDS, OPERATORS, Project, write_project

ROOT = Path(__file__).parents[2]


def run(*words: object, folder: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("DELEGRAPH_", "PYTEST"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize(
    ("typed", "name", "distribution", "package"),
    [
        ("mychip", "mychip", "delegraph-mychip", "delegraph_mychip"),
        ("My_Chip", "my_chip", "delegraph-my-chip", "delegraph_my_chip"),
        ("delegraph-My.Chip2", "my_chip2", "delegraph-my-chip2", "delegraph_my_chip2"),
        ("class", "class", "delegraph-class", "delegraph_class"),
    ],
)
def test_names_follow_from_the_one_typed(
    typed: str, name: str, distribution: str, package: str
) -> None:
    project = Project.of(typed, ["ADD"])
    assert (project.name, project.distribution, project.package) == (name, distribution, package)


@pytest.mark.parametrize(
    "name", ["", "2fast", "-x", "x-", "my chip", "my/chip", "é", "all", "help", "delegraph-2"]
)
def test_names_that_no_delegate_can_have_are_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="name is "):
        Project.of(name, ["ADD"])


def test_operators_that_the_template_cannot_compute_are_refused() -> None:
    with pytest.raises(ArgumentError, match="cannot start with operator 'CONV_2D', only with: ABS"):
        Project.of("mychip", ["ADD", "CONV_2D"])
    with pytest.raises(ArgumentError, match="'core', which no delegate can have: choose"):
        Project.of("core", ["ADD"])
    with pytest.raises(ArgumentError, match="at least one operator"):
        Project.of("mychip", [])
    with pytest.raises(ArgumentError, match="template is 'engin', expected one of kernel, engine"):
        Project.of("mychip", ["ADD"], "engin")
    with pytest.raises(ArgumentError, match="engine is 'ort', expected one of custom, onnx"):
        Project.of("mychip", ["ADD"], "engine", "ort")


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    project = Project.of("mychip", ["ADD"])
    write_project(project, tmp_path / "deep" / "folder")
    (tmp_path / "kept.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="is not empty; nothing was written"):
        write_project(project, tmp_path)
    with pytest.raises(ArgumentError, match="cannot be written"):
        write_project(project, tmp_path / "kept.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "kept.txt"]


def test_names_in_use_are_told() -> None:
    assert Project.of("surely-not-there", ["ADD"]).clashes(PluginSet(entry_points=[])) == []
    if {"sin"} <= {offer.spec.name for offer in PluginSet(allow="*").offers()}:
        assert "delegate 'sin' is provided by plugin 'example'" in str(
            Project.of("sin", ["ADD"]).clashes(PluginSet(allow="*"))
        )


def test_the_name_of_an_installed_distribution_is_refused() -> None:
    Project.of("surely-not-there", ["ADD"]).require_new()
    pytest.importorskip("delegraph_example")
    with pytest.raises(ArgumentError, match=r"delegraph-example .* is installed, and pip would"):
        Project.of("example", ["ADD"]).require_new()


@pytest.mark.parametrize(
    ("template", "engine"),
    [*((template, "custom") for template in KINDS), *(("compiler", name) for name in ENGINES)],
)
@pytest.mark.parametrize(
    ("name", "operators"), [("class", ("SIN",)), ("a-rather-long-name", tuple(OPERATORS))]
)
def test_the_code_is_clean_for_ruff(
    tmp_path: Path, name: str, operators: tuple[str, ...], template: str, engine: str
) -> None:
    pytest.importorskip("ruff")
    write_project(Project.of(name, operators, template, engine), tmp_path)
    run(sys.executable, "-m", "ruff", "check", "--no-cache", ".", folder=tmp_path)
    run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".", folder=tmp_path)


@pytest.mark.repetition(0)  # as types of the whole tree
@pytest.mark.skipif(sys.version_info < (3, 11), reason="NumPy's types for 3.10 are older")
def test_the_code_is_clean_for_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\nmypy_path = src\n")
    kinds = [(template, "custom") for template in KINDS.keys() - {"engine"}]  # or twice
    for template, engine in [*kinds, *(("compiler", name) for name in ENGINES.keys() - {"custom"})]:
        folder = tmp_path / f"{template}-{engine}"
        write_project(Project.of("typed", ["ADD", "SIN"], template, engine), folder)
        words = ("--config-file", tmp_path / "mypy.ini", "--cache-dir", tmp_path / "cache")
        if engine != "custom":
            words = ("--config-file", folder / "pyproject.toml", *words[2:])
        run(sys.executable, "-m", "mypy", *words, "src", "tests", folder=folder)


FUSED = """
from delegraph import Interpreter
from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import AddOptions
from delegraph.testing import one_op_model, tensor
from delegraph_chip.delegate import ChipDelegate
from delegraph_chip.options import ChipOptions

options = AddOptions(fused_activation_function=ActivationFunctionType.RELU6)
model = one_op_model("ADD", [tensor((2,))] * 2, [tensor((2,))], options)
interpreter = Interpreter(model_content=model, delegates=[ChipDelegate(ChipOptions())])
print(*(node.delegate for node in interpreter.placement.nodes))
"""


def test_an_engine_takes_nodes_with_the_activations_that_networks_fuse(tmp_path: Path) -> None:
    write_project(Project.of("chip", ["ADD", "SIN"], "engine"), tmp_path)
    (tmp_path / "src" / "fused.py").write_text(FUSED, encoding="utf-8")
    assert run(sys.executable, "src/fused.py", folder=tmp_path).stdout.split() == ["chip"]


def test_what_templates_share_is_the_same(tmp_path: Path) -> None:
    """One file differs from kind to kind only where the kinds do."""
    texts = {}
    for template in KINDS:
        write_project(Project.of("chip", ["ADD"], template), tmp_path / template)
        source = tmp_path / template / "src" / "delegraph_chip"
        texts[template] = {path.name: path.read_text() for path in source.iterdir()}
    engine, compiler = texts["engine"], texts["compiler"]
    for name in ("delegate.py", "engine.py", "options.py"):
        assert engine[name] == compiler[name]
    assert texts["kernel"]["options.py"] == engine["options.py"]


@pytest.mark.repetition(0)  # it takes long
@pytest.mark.timeout(600)  # pip has much to install
def test_installed_projects_pass_their_own_tests(tmp_path: Path) -> None:
    """Real pip, a fresh environment, the core beside them, and the conformance kit."""
    projects = [Project.of(f"fresh-{kind}", ["ADD", "MUL"], kind) for kind in KINDS]
    for project in projects:
        write_project(project, tmp_path / project.template)
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    bin = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = (bin / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    folders = [f"{tmp_path / project.template}[test]" for project in projects]
    installed = run(*pip, ROOT, *folders, folder=tmp_path, check=False)
    if installed.returncode != 0 and "connection" in installed.stderr.lower():
        pytest.skip("the package index cannot be reached")
    assert installed.returncode == 0, installed.stderr
    listed = run(bin / "delegraph", "plugins", "list", folder=tmp_path).stdout
    assert "A delegate for ADD and MUL" in listed
    assert "FreshCustomOp" in listed
    for project in projects:
        # The kit looks at delegates, and the compiler has that of the engine.
        kit = {"kernel": [], "compiler": ["--delegate-quick"]}.get(project.template)
        options = ["--ignore=tests/test_conformance.py"] if kit is None else kit
        folder = tmp_path / project.template
        tested = run(bin / "python", "-m", "pytest", *options, folder=folder).stdout
        assert "failed" not in tested.splitlines()[-1]
        assert (f"{project.name}: passed" in tested) is (kit is not None)
