"""Folders from which the packages of Delegraph and of plugins are imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.tools.import_folders import check_imports, import_folders
from delegraph.tools.plugin_check import Level
from support.fake_distributions import write_distribution


def test_a_package_that_another_copy_hides_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    write_distribution(site, "fake-one", {"fake_one": ""}, {"one": "fake_one"})
    monkeypatch.syspath_prepend(site)
    modules = {"fake-one": "fake_one.plugin", "absent": "fake_absent"}
    folders = import_folders(modules)
    assert folders == {"fake-one": str(site), "absent": ""}
    assert list(check_imports(folders)) == []
    (other / "fake_one").mkdir(parents=True)
    (other / "fake_one" / "__init__.py").touch()
    monkeypatch.syspath_prepend(other)
    folders = import_folders(modules)
    assert folders["fake-one"] == str(other / "fake_one")
    (finding,) = check_imports(folders)
    text = f"fake-one: imported from {other / 'fake_one'}, installed in {site}"
    assert (finding.level, finding.text) == (Level.NOTE, text)
    assert "PYTHONPATH" in finding.remedy
