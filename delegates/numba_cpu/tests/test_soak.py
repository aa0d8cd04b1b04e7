"""A short version of ``benchmarks/soak.py``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[1] / "benchmarks" / "soak.py"


@pytest.mark.timeout(400)  # more than the program's own limit
def test_two_thousand_invokes_over_four_interpreters_are_right_and_leave_no_memory() -> None:
    done = subprocess.run(
        [sys.executable, str(SOAK), "--invokes", "2000"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no wrong answer" in done.stdout
