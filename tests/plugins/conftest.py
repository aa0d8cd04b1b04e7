from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.plugins.choice import ALLOW_VARIABLE, DISABLE_VARIABLE


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for fake distributions, first on ``sys.path``."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delenv(ALLOW_VARIABLE, raising=False)
    monkeypatch.delenv(DISABLE_VARIABLE, raising=False)
    return folder
