"""Packages listed from metadata, which may come from anybody."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import plugin_catalogue
from delegraph.tools.plugin_catalogue import (
    html_page,
    installed_packages,
    markdown_page,
    packages_of_wheels,
)
from support.fake_distributions import write_distribution

METADATA = """\
Metadata-Version: 2.4
Name: delegraph-chip
Version: 1.2
Summary: A chip <script> | that is quick
License-Expression: MIT
Requires-Python: >=3.10
Requires-Dist: numpy>=1
Requires-Dist: Delegraph~=0.1.0
Project-URL: Source, https://example.org/chip
Project-URL: Docs, javascript:alert(1)
Project-URL: Delegraph badge, https://example.org/badge.svg
"""
POINTS = "[delegraph.plugins]\nchip = delegraph_chip.plugin\n"


def wheel(path: Path, metadata: str | None = METADATA, points: str | None = POINTS) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("METADATA", metadata), ("entry_points.txt", points)):
            if text is not None:
                archive.writestr(f"delegraph_chip-1.2.dist-info/{name}", text)


def test_a_wheel_is_listed_without_an_import(tmp_path: Path) -> None:
    wheel(tmp_path / "delegraph_chip-1.2-py3-none-any.whl")
    wheel(tmp_path / "numbers-1.0-py3-none-any.whl", points=None)
    (found,), unreadable = packages_of_wheels(tmp_path)
    assert not unreadable
    assert (found.distribution, found.version, found.plugins) == (
        "delegraph-chip",
        "1.2",
        ("chip",),
    )
    assert (found.delegraph, found.python, found.license) == ("~=0.1.0", ">=3.10", "MIT")
    assert found.links == {"Source": "https://example.org/chip"}
    assert found.badge == "https://example.org/badge.svg"


def test_a_damaged_installed_package_is_named_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    write_distribution(tmp_path, "fake-damaged", {}, "[delegraph.plugins]\nno equals\n")
    write_distribution(tmp_path, "fake-odd", {}, {"odd": "no reference"})
    packages, unreadable = installed_packages()
    assert list(unreadable) == ["fake-damaged"]
    assert "fake-odd" in [package.distribution for package in packages]


def test_pages_show_metadata_as_text(tmp_path: Path) -> None:
    wheel(tmp_path / "chip.whl")
    packages, _ = packages_of_wheels(tmp_path)
    markdown, page = markdown_page(packages), html_page(packages)
    assert "| A chip &lt;script&gt; \\| that is quick | chip |" in markdown
    assert "[Source](https://example.org/chip)" in markdown
    assert "A chip &lt;script&gt; | that is quick" in page
    assert '<img src="https://example.org/badge.svg"' in page


def test_wheels_that_cannot_be_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_catalogue, "LARGEST", 1000)
    (tmp_path / "damaged.whl").write_bytes(b"PK")
    wheel(tmp_path / "empty.whl", metadata=None)
    wheel(tmp_path / "large.whl", metadata=METADATA + "\n" + "x" * 2000)
    wheel(tmp_path / "list.whl", points="[delegraph.plugins]\nchip\n")
    wheel(tmp_path / "nameless.whl", metadata="Metadata-Version: 2.4\n")
    packages, unreadable = packages_of_wheels(tmp_path)
    assert packages == []
    assert sorted(unreadable) == [
        "damaged.whl",
        "empty.whl",
        "large.whl",
        "list.whl",
        "nameless.whl",
    ]
    assert "'chip' of [delegraph.plugins], expected NAME = MODULE" in unreadable["list.whl"]
    assert "no name" in unreadable["nameless.whl"]
    assert "no METADATA" in unreadable["empty.whl"]
    assert "more than 1,000 bytes" in unreadable["large.whl"]


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="none' does not exist"):
        packages_of_wheels(tmp_path / "none")
