"""What package indexes show of each distribution, and what a stranger needs to use it."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement

import delegraph
from distributions.projects import ROOT, URL, Project, projects

PROJECTS = projects()
every_project = pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)


def test_core_example_and_delegates_are_found() -> None:
    names = {project.name for project in PROJECTS}
    assert {"delegraph", "delegraph-example", "delegraph-flex", "delegraph-numba-cpu"} <= names


@every_project
def test_licence_is_named_and_its_text_is_there(project: Project) -> None:
    declared = project.settings["project"]
    assert declared["license"].split(" AND ")[0] == "Apache-2.0"
    assert declared["license-files"][0] == "LICENSE"
    assert (project.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@every_project
def test_package_is_marked_as_typed(project: Project) -> None:
    assert (project.package / "py.typed").read_bytes() == b""
    assert "Typing :: Typed" in project.settings["project"]["classifiers"]


@every_project
def test_authors_links_and_description_are_there(project: Project) -> None:
    declared = project.settings["project"]
    assert declared["authors"] == [{"name": "The Delegraph authors"}]
    assert declared["urls"]["Source"] == URL
    assert all(link.startswith(URL) for link in declared["urls"].values())
    assert declared["description"]
    assert (project.folder / declared.get("readme", "README.md")).is_file()


@every_project
def test_index_shows_no_relative_link(project: Project) -> None:
    """Package indexes show the README outside of the repository."""
    text = (project.folder / "README.md").read_text(encoding="utf-8")
    hooks = project.settings["tool"]["hatch"].get("metadata", {}).get("hooks", {})
    for rule in hooks.get("fancy-pypi-readme", {}).get("substitutions", []):
        text = re.sub(rule["pattern"], rule["replacement"], text)
    targets = re.findall(
        r"(?:\]\(|src(?:set)?=\")([^)\"\s]+)|^\[[^\]]+\]: (\S+)", text, re.MULTILINE
    )
    links = [inline or reference for inline, reference in targets]
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_links_of_the_front_page_are_relative() -> None:
    """Relative links work in a clone, in a fork and on a branch."""
    assert URL not in (ROOT / "README.md").read_text(encoding="utf-8")


@every_project
def test_supported_pythons_are_listed(project: Project) -> None:
    declared = project.settings["project"]
    assert declared["requires-python"] == ">=3.10"
    classifiers = declared["classifiers"]
    if project.name != "delegraph-example":  # as short as a third party's
        engine = project.name in ("delegraph-jax", "delegraph-openvino")
        for minor in range(10, 14 if engine else 16):
            assert f"Programming Language :: Python :: 3.{minor}" in classifiers


@every_project
def test_version_is_the_core_s(project: Project) -> None:
    """The example stands for a third party's package, so it has a version of its own."""
    if project.name == "delegraph-example":
        assert re.fullmatch(r"\d+\.\d+\.\d+", project.settings["project"]["version"])
        return
    assert project.settings["project"]["dynamic"][-1] == "version"
    source = project.folder / project.settings["tool"]["hatch"]["version"]["path"]
    assert source.resolve() == ROOT / "core" / "delegraph" / "__init__.py"


@every_project
def test_plugin_accepts_the_core_beside_it(project: Project) -> None:
    requirements = map(Requirement, project.settings["project"]["dependencies"])
    cores = [r for r in requirements if r.name == "delegraph"]
    assert [r.specifier.contains(delegraph.__version__) for r in cores] == [True] * len(cores)
    assert bool(cores) == (project.name != "delegraph")


@every_project
def test_architecture_page_has_a_reason_for_each_dependency(project: Project) -> None:
    declared = project.settings["project"]
    extras = declared.get("optional-dependencies", {}).values()
    requirements = [*declared["dependencies"], *(line for extra in extras for line in extra)]
    names = {Requirement(line).name for line in requirements} - {"delegraph"}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    assert [name for name in sorted(names) if f"`{name}`" not in rows] == []
