"""``delegraph test``."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import Command


def test_the_kit_tells_what_is_right_and_writes_a_badge(
    delegraph: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    badge = tmp_path / "badge.svg"
    found = delegraph("test", "sin", "--quick", "--badge", badge, "--json")
    assert found.code == 0, found.stderr
    (card,) = found.json["delegates"]
    assert card["name"] == "sin"
    assert card["passed"]
    assert "1 operator" in badge.read_text()
    assert "delegate conformance" in found.err
