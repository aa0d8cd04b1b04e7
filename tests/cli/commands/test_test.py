"""``delegraph test``, in a process of its own, since it runs pytest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path


def test_the_kit_tells_what_is_right_and_writes_a_badge(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "delegraph", "test", "sin", "--quick", "--badge", "badge.svg"]
    found = subprocess.run(
        [*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    (card,) = json.loads(found.stdout)["delegates"]
    assert card["name"] == "sin"
    assert card["passed"]
    assert "1 operator" in (tmp_path / "badge.svg").read_text()
    assert "delegate conformance" in found.stderr
    counts = re.search(r"collected (\d+) items / 1 deselected / (\d+) selected", found.stderr)
    assert counts is not None, found.stderr  # the sweep is deselected
    text = " ".join(found.stderr.split())
    assert "deselected: random models, which 'delegraph test-operators' runs" in text
    assert text.index("deselected: ") < text.index("delegate conformance")
    assert "tries about 20 times as many models" in card["sample"]
    assert int(counts[1]) == int(counts[2]) + 1
