"""Tests with a configuration file of their own in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.delegation import configuration
from delegraph.delegation.configuration import CONFIG_VARIABLE, DEFAULT_DELEGATES_VARIABLE


def configure(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> Path:
    """Write ``delegraph.toml`` into *folder*, and use it during the test."""
    path = folder / "delegraph.toml"
    path.write_text(text, encoding="utf-8")
    configuration.configuration_of.cache_clear()  # an earlier file may have had the path
    monkeypatch.setenv(CONFIG_VARIABLE, str(path))
    monkeypatch.delenv(DEFAULT_DELEGATES_VARIABLE, raising=False)  # which would win
    return path
