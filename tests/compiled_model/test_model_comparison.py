from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.compiled_models import reshaping

DEMO_MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"
SCRIPT = Path(__file__).with_name("compare_models.py")


def compared(folder: Path) -> tuple[int, list[str]]:
    """Exit status and lines of the script."""
    done = subprocess.run(
        [sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_equal_models_are_counted() -> None:
    assert compared(DEMO_MODELS) == (0, ["   4 equal"])


def test_what_one_of_the_two_cannot_run_is_told(tmp_path: Path) -> None:
    (tmp_path / "strings.tflite").write_bytes(reshaping("STRING"))
    (tmp_path / "damaged.tflite").write_bytes(b"none")
    status, lines = compared(tmp_path)
    assert status == 0
    assert [line.split(": ")[:2] for line in lines[:2]] == [
        ["damaged", "neither runs it"],
        ["strings", "Delegraph alone runs it"],
    ]
