"""The notebooks run, and their stored outputs are what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.scripts import script

run_notebooks = script("run_notebooks.py")

NEEDED = {"first-delegate": "ai_edge_litert", "find-the-node-that-drifts": "PIL"}


@pytest.mark.parametrize("path", run_notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_prints_what_is_stored(path: Path) -> None:
    if path.stem in NEEDED:
        pytest.importorskip(NEEDED[path.stem])
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    stored = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    assert run_notebooks.run(path) == stored, "run: python docs/run_notebooks.py"


def test_the_index_lists_every_notebook() -> None:
    index = (run_notebooks.FOLDER / "README.md").read_text(encoding="utf-8")
    assert [p.name for p in run_notebooks.NOTEBOOKS if f"]({p.name})" not in index] == []
