"""What ``delegraph new`` writes works, from installation to its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.plugins import PluginSet
from delegraph.tools.scaffold import OPERATORS, Project, write_project

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
    with pytest.raises(ArgumentError, match="at least one operator"):
        Project.of("mychip", [])


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
        found = Project.of("example", ["ADD"]).clashes(PluginSet(entry_points=[]))
        assert [text.split()[0] for text in found] == ["delegraph-example"]


@pytest.mark.parametrize(
    ("name", "operators"), [("x", ("SIN",)), ("a-rather-long-name", tuple(OPERATORS))]
)
def test_the_code_is_clean_for_ruff_and_mypy(
    tmp_path: Path, name: str, operators: tuple[str, ...]
) -> None:
    pytest.importorskip("ruff")
    write_project(Project.of(name, operators), tmp_path)
    run(sys.executable, "-m", "ruff", "check", "--no-cache", ".", folder=tmp_path)
    run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".", folder=tmp_path)
    if (
        sys.version_info >= (3, 11) and len(operators) > 1
    ):  # NumPy's types for 3.10 are older than those used here
        pytest.importorskip("mypy")
        (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\nmypy_path = src\n")
        run(sys.executable, "-m", "mypy", "src", "tests", folder=tmp_path)


@pytest.mark.timeout(600)  # pip has much to install
def test_an_installed_project_passes_its_own_tests(tmp_path: Path) -> None:
    """Real pip, a fresh environment, the core beside it, and the conformance kit."""
    project = Project.of("fresh-chip", ["ADD", "MUL"])
    folder = tmp_path / "project"
    write_project(project, folder)
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    bin = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = (bin / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    installed = run(*pip, ROOT, f"{folder}[test]", folder=tmp_path, check=False)
    if installed.returncode != 0 and "connection" in installed.stderr.lower():
        pytest.skip("the package index cannot be reached")
    assert installed.returncode == 0, installed.stderr
    info = run(bin / "delegraph", "plugins", "info", "fresh_chip", folder=tmp_path).stdout
    assert "ADD and MUL on float32" in info
    tested = run(bin / "python", "-m", "pytest", folder=folder).stdout
    assert "fresh_chip: passed" in tested
    assert "failed" not in tested.splitlines()[-1]
