from __future__ import annotations

import json
from pathlib import Path

import pytest

from delegraph.plugins import sources
from delegraph.plugins.sources import installed_from, pip_install
from support.fake_distributions import write_distribution

ROOT = Path(__file__).parents[2]


def record_origin(site: Path, origin: object, name: str = "fake-thing") -> None:
    """Write a distribution as pip installs it from *origin*."""
    write_distribution(site, name, {}, {})
    (info,) = site.glob(f"{name.replace('-', '_')}-*.dist-info")
    (info / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))


def test_in_a_clone_its_folders_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert pip_install("delegraph-numba-cpu") == "pip install ./delegates/numba_cpu"
    assert pip_install("delegraph-flex", "text") == "pip install './delegates/flex[text]'"
    monkeypatch.chdir(tmp_path)
    assert pip_install("delegraph-example") == f"pip install {ROOT / 'plugins_example'}"


def test_a_clone_on_the_import_path_needs_no_installation(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(site, "delegraph", {}, {})
    monkeypatch.chdir(ROOT)
    assert pip_install("delegraph-flex") == "pip install ./delegates/flex"


def test_a_release_is_installed_from_the_package_index(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "__file__", str(site / "delegraph" / "plugins" / "sources.py"))
    write_distribution(site, "delegraph", {}, {})
    assert pip_install("delegraph-flex", "text") == "pip install 'delegraph-flex[text]'"
    assert pip_install("delegraph-numba-cpu") == "pip install delegraph-numba-cpu"


def test_a_wheel_that_pip_built_from_a_clone_leads_to_the_clone(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "__file__", str(site / "delegraph" / "plugins" / "sources.py"))
    record_origin(site, {"url": ROOT.as_uri(), "dir_info": {}}, "delegraph")
    monkeypatch.chdir(ROOT)
    assert pip_install("delegraph-flex") == "pip install ./delegates/flex"


@pytest.mark.parametrize(
    ("origin", "is_editable"),
    [
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, True),
        ({"url": "file:///a%20b", "dir_info": {}}, False),
    ],
)
def test_the_folder_of_an_editable_installation_is_known(
    site: Path, origin: object, is_editable: bool
) -> None:
    record_origin(site, origin)
    assert installed_from("fake-thing") == Path("/a b")
    assert (installed_from("fake-thing", is_editable=True) is not None) == is_editable


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "{",
        "[]",
        '{"url": 3}',
        '{"url": "https://x/y.whl"}',
        '{"url": "file:///", "dir_info": 1}',
    ],
)
def test_other_and_damaged_origins_are_no_folder(site: Path, origin: str) -> None:
    record_origin(site, origin)
    assert installed_from("fake-thing") is None
    assert installed_from("not-installed") is None
