"""The libraries that the page draws with are those that ``libraries.json`` tells of."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from delegraph.tools.reporting import page

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ASSETS = Path(str(files("delegraph.tools.reporting") / "assets"))
LIBRARIES = json.loads((ASSETS / "libraries.json").read_text())
ROOT = Path(__file__).parents[3]


def test_every_library_of_the_page_is_told_of() -> None:
    told = {f"{name}/{library['file']}" for name, library in LIBRARIES.items()}
    assert set(page.LIBRARIES) == told
    assert {path.parent.name for path in ASSETS.glob("*/*.js")} == set(LIBRARIES)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_is_the_file_of_its_version(name: str) -> None:
    library = LIBRARIES[name]
    content = (ASSETS / name / library["file"]).read_bytes()
    assert sha256(content).hexdigest() == library["sha256"]
    assert library["version"]
    assert library["source"].endswith(f"/{name}")


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_licences_of_all_that_a_library_holds_lie_beside_it(name: str) -> None:
    text = (ASSETS / name / "LICENSE").read_text()
    for package, licence in LIBRARIES[name]["packages"].items():
        headings = [line for line in text.splitlines() if line.startswith(f"{package} ")]
        assert any(line.endswith(f"({licence})") for line in headings), package


def test_the_distribution_names_these_licences() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(project["license"].split(" AND "))
    found = {licence for lib in LIBRARIES.values() for licence in lib["packages"].values()}
    dual = "(MIT OR CC0-1.0)"  # then it is MIT here
    assert named == {"Apache-2.0"} | {"MIT" if licence == dual else licence for licence in found}
    patterns = project["license-files"][1:]
    kept = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert kept == {ASSETS / name / "LICENSE" for name in LIBRARIES}


def test_every_own_script_is_in_the_page() -> None:
    assert set(page.SCRIPTS) == {path.name for path in ASSETS.glob("*.js")}
