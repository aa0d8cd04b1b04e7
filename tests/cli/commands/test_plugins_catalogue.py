"""``delegraph plugins catalogue``."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import Command
from support.fake_distributions import write_plugin

CATALOGUE = ("plugins", "catalogue")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    write_plugin(folder, "good")
    write_plugin(folder, "broken", "raise RuntimeError('never imported')")
    return folder


def test_installed_packages_are_listed_without_an_import(
    fresh_delegraph: Command, site: Path
) -> None:
    ran = fresh_delegraph(*CATALOGUE)
    assert (ran.code, ran.err) == (0, "")
    assert {"fake-good 1.0", "fake-broken 1.0", "plugins: broken"} <= {*ran.lines}
    names = [
        package["distribution"]
        for package in fresh_delegraph(*CATALOGUE, "--json").json["packages"]
    ]
    assert {"fake-good", "fake-broken"} <= {*names}


def test_a_page_is_written(fresh_delegraph: Command, site: Path, tmp_path: Path) -> None:
    for name in ("page.md", "page.html"):
        ran = fresh_delegraph(*CATALOGUE, "-o", tmp_path / name)
        assert f"in {tmp_path / name}" in ran.out
        assert "fake-good" in (tmp_path / name).read_text(encoding="utf-8")


def test_mistakes_are_told(delegraph: Command, tmp_path: Path) -> None:
    assert delegraph(*CATALOGUE, "-o", "page.txt").code == 2
    assert delegraph(*CATALOGUE, "-o", tmp_path / "no" / "page.md").code == 2
    assert delegraph(*CATALOGUE, "--wheels", tmp_path / "no").code == 2
    (tmp_path / "damaged.whl").write_bytes(b"PK")
    ran = delegraph(*CATALOGUE, "--wheels", tmp_path)
    assert (ran.code, ran.out) == (0, "no packages with plugins\n")
    assert "warning: damaged.whl is left out: File is not a zip file" in ran.err
