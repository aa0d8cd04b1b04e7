"""Deciding in a test which plugins this process has, whatever is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.plugins import PluginSet, plugin_set


def disable_plugins(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Run the test as if these plugins were not installed."""
    monkeypatch.setattr(plugin_set, "found_plugins", PluginSet(["*"], names))


def use_plugins_of(monkeypatch: pytest.MonkeyPatch, site: Path) -> None:
    """Run the test with the distributions in folder *site* in addition to the installed ones."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(plugin_set, "found_plugins", PluginSet(["*"], []))
