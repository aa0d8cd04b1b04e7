"""The notebooks run, and their stored outputs are what they print."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "run_notebooks.py"
_spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
assert _spec is not None
assert _spec.loader is not None
run_notebooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run_notebooks)

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
