from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from delegraph.tools.fault_report import fault_report, without_paths

posix = pytest.mark.skipif(os.name != "posix", reason="paths are those of POSIX")


@posix
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/ann/my models/a.tflite", "<path>"),
        ("cannot read '/home/ann/my models/a.tflite': gone", "cannot read '<path>': gone"),
        ('File "/srv/acme/a.py", line 3', 'File "<path>", line 3'),
        ("a=/srv/acme:/srv/b, c", "a=<path>:<path>, c"),
        ("~/clients/acme", "<path>"),
        (f"{sys.prefix}/lib/a.so is old", "<environment>/lib/a.so is old"),
        (
            "ADD/SUB and 1/2, see https://example.org/a",
            "ADD/SUB and 1/2, see https://example.org/a",
        ),
        ("C:\\Users\\ann\\a.tflite is gone", "<path> is gone"),
        ("2 of 3 / 4", "2 of 3 / 4"),
    ],
)
def test_private_paths_are_replaced(text: str, shown: str) -> None:
    assert without_paths({"a": [text, 1, None]}) == {"a": [shown, 1, None]}


@posix
def test_a_cache_keeps_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "ann"))
    cache = str(tmp_path / "ann" / "delegraph" / "compiled")
    assert without_paths(f"not used: {cache} is full") == "not used: <cache>/compiled is full"


def test_findings_come_first() -> None:
    finding: Any = {"level": "note", "subject": "threads", "text": "few", "remedy": "more"}
    text = fault_report({"findings": [finding], "ok": True})
    assert text.startswith("# A fault of Delegraph\n")
    assert "- note: threads: few\n" in text
    assert '"remedy": "more"' in text
