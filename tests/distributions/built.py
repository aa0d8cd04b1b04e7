"""Checks of built distributions, for ``make dist``: ``pytest tests/distributions/built.py``.

``make dist`` leaves a wheel and an sdist of every distribution in ``dist/``, each wheel built from
its sdist. Nothing here looks at the clone but to know what belongs into them.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import delegraph
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from distributions.projects import ROOT, URL, Project, projects

DIST = ROOT / "dist"
PROJECTS = projects()
pytestmark = pytest.mark.timeout(900)  # the first test that needs it installs everything
every_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)

NEVER = ("__pycache__", ".venv", ".pyc", ".so", ".nbi", ".nbc", "_cache/", ".hypothesis")

LIBRARIES = "delegraph_numba_cpu/libraries/"
"""Where a wheel has compiled kernels."""


def built(project: Project, ending: str) -> Path:
    """Return the only built file of a distribution for this processor family."""
    paths = DIST.glob(f"{project.name.replace('-', '_')}-[0-9]*{ending}")
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    (found,) = [path for path in paths if other not in path.name or sys.platform != "linux"]
    return found


def wheel_files(project: Project) -> dict[str, bytes]:
    with zipfile.ZipFile(built(project, ".whl")) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def sdist_files(project: Project) -> dict[str, bytes]:
    """Return the files of an sdist, relative to its top folder."""
    files = {}
    with tarfile.open(built(project, ".tar.gz")) as sdist:
        for member in sdist.getmembers():
            content = sdist.extractfile(member)
            if content is not None:
                files[member.name.split("/", 1)[1]] = content.read()
    return files


def metadata(project: Project) -> Message:
    files = wheel_files(project)
    (name,) = [n for n in files if n.endswith(".dist-info/METADATA")]
    return message_from_bytes(files[name])


@every_project
def test_wheel_holds_the_package_and_its_licence_alone(project: Project) -> None:
    """It contains all files of the package, with stubs, data and ``py.typed``, and no tests."""
    package = project.package.name
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=project.package,
        capture_output=True,
        text=True,
        check=True,
    )
    expected = {f"{package}/{name}" for name in tracked.stdout.splitlines()}
    files = {name for name in wheel_files(project) if not name.startswith(LIBRARIES)}
    info = {name for name in files if ".dist-info/" in name}
    assert files - info == expected
    assert f"{package}/py.typed" in files
    assert [name for name in info if name.endswith("licenses/LICENSE")]


@every_project
def test_sdist_holds_what_a_packager_needs(project: Project) -> None:
    files = sdist_files(project)
    wanted = {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"}
    assert wanted - set(files) == set()
    assert [name for name in files if Path(name).name.startswith("test_")]


@every_project
@pytest.mark.parametrize("read", [wheel_files, sdist_files])
def test_nothing_of_this_machine_is_inside(project: Project, read: object) -> None:
    assert callable(read)
    files: dict[str, bytes] = read(project)
    own = [name for name in files if not name.startswith(LIBRARIES)]
    assert [name for name in own if any(part in name for part in NEVER)] == []
    places = [str(ROOT).encode(), str(Path(sys.prefix)).encode()]
    assert [n for n, content in files.items() if any(p in content for p in places)] == []


@every_project
def test_metadata_shows_version_licence_and_links(project: Project) -> None:
    shown = metadata(project)
    assert shown["Version"] == delegraph.__version__
    assert shown["License-Expression"] == project.settings["project"]["license"]
    assert shown["Author"] == "The Delegraph authors"
    assert f"Source, {URL}" in shown.get_all("Project-URL", [])
    assert "](docs/" not in str(shown.get_payload())


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install all wheels into an empty environment; return the folder that holds it and a model."""
    folder = tmp_path_factory.mktemp("outside")
    venv.create(folder / "env", with_pip=True)
    wheels = [str(built(project, ".whl")) for project in PROJECTS]
    run(folder, "python", "-m", "pip", "--disable-pip-version-check", "install", "-q", *wheels)
    models = ROOT / "docs" / "demo" / "models"
    for name in ("sines.tflite", "digits_int8.tflite"):
        (folder / name).write_bytes((models / name).read_bytes())
    return folder


def run(folder: Path, program: str, *arguments: str) -> str:
    """Run a program of that environment, as a user without the clone would."""
    bin_ = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DELEGRAPH"))}
    done = subprocess.run(
        [str(bin_ / program), *arguments],
        cwd=folder,
        env={**kept, "COLUMNS": "120", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_command_tells_its_version(outside: Path) -> None:
    first, *plugins = run(outside, "delegraph", "--version").splitlines()
    assert first == f"delegraph {delegraph.__version__}"
    assert len(plugins) == len(PROJECTS) - 1


def test_installed_packages_come_from_the_environment(outside: Path) -> None:
    code = f"import {', '.join(p.package.name for p in PROJECTS)}; print(delegraph.__file__)"
    assert Path(run(outside, "python", "-c", code).strip()).is_relative_to(outside)


def test_installed_plugins_are_all_usable(outside: Path) -> None:
    shown = run(outside, "delegraph", "plugins", "list")
    for project in PROJECTS[1:]:
        (row,) = [line.split() for line in shown.splitlines() if project.name in line.split()]
        assert row[-1] == "ok", row


@pytest.mark.parametrize(
    ("model", "delegate"),
    [("sines.tflite", "sin"), ("digits_int8.tflite", "add_sub"), ("digits_int8.tflite", "")],
)
def test_installed_runtime_runs_a_model(outside: Path, model: str, delegate: str) -> None:
    chosen = ["--delegate", delegate] if delegate else []
    shown = run(outside, "delegraph", "run", model, *chosen)
    assert "output" in shown.lower()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere wheels are for one family")
@pytest.mark.parametrize("family", ["x86_64", "aarch64"])
def test_wheels_of_numba_cpu_have_all_levels_and_ask_for_no_compiler(family: str) -> None:
    (path,) = DIST.glob(f"delegraph_numba_cpu-*{family}.whl")
    assert f"-py3-none-manylinux_2_17_{family}." in path.name
    assert path.stat().st_size < 5e6
    with zipfile.ZipFile(path) as wheel:
        manifest = wheel.read(f"{LIBRARIES}manifest.txt").decode()
        (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
        shown = message_from_bytes(wheel.read(name))
    expected = {n for n, level in LEVELS.items() if level.machine in ("", family)}
    assert set(re.findall(r"^file (\w+)\t", manifest, re.MULTILINE)) == expected
    assert f"\nmachine\t{family}\n" in manifest
    needed = map(Requirement, shown.get_all("Requires-Dist", []))
    names = {r.name for r in needed if r.marker is None or r.marker.evaluate({"extra": ""})}
    assert names & {"numba", "llvmlite", "ziglang"} == set()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere wheels have object code")
def test_the_wheel_of_numba_cpu_has_its_kernels(outside: Path) -> None:
    levels = json.loads(run(outside, "delegraph", "numba", "info", "--json"))["levels"]
    assert {level["source"] for level in levels} == {"library"}
    code = "import importlib.util as u; print(u.find_spec('numba'), u.find_spec('llvmlite'))"
    assert run(outside, "python", "-c", code) == "None None\n"
    run(outside, "delegraph", "run", "digits_int8.tflite", "--delegate", "numba_cpu")


def test_installed_plugins_bring_their_commands(outside: Path) -> None:
    shown = run(outside, "delegraph", "flex", "flexify", "sines.tflite", "-o", "flex.tflite")
    assert "operators: 0 builtin, 5 of TensorFlow" in shown
    assert "output" in run(outside, "delegraph", "run", "flex.tflite").lower()
