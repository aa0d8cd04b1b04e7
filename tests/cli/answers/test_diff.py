from __future__ import annotations

from pathlib import Path

import pytest

from delegraph.cli.answers.diff import print_difference
from delegraph.cli.answers.printing import console
from delegraph.tools import Setup, diff

MODELS = Path(__file__).parents[3] / "docs" / "demo" / "models"


def test_stored_and_real_values_are_told_apart_in_narrow_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_difference(
        console(), diff(Setup(str(MODELS / "digits_int8.tflite"), delegates=()), runs=1)
    )
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[:2] for line in lines if line.startswith("  digit ")]
    assert rows == [["digit", "stored"], ["digit", "real"]]
