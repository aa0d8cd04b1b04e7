"""Runs the notebooks of these pages and stores their outputs: ``python docs/run_notebooks.py``.

Cells run one after the other in one namespace, without Jupyter: what they print and the value of
the last line are their outputs. ``tests/docs/test_notebooks.py`` runs them again and compares.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(path: Path) -> list[list[dict[str, Any]]]:
    """Run a notebook in its own folder; return the outputs of each cell with code."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    before = Path.cwd()
    os.chdir(FOLDER)
    try:
        return [outputs(source, names) for source in sources]
    finally:
        os.chdir(before)


def outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell in the namespace *names*; return its outputs as a notebook stores them."""
    body = ast.parse(source).body
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        found.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        data = {"text/plain": [repr(value)]}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = [value._repr_html_()]
        found.append(
            {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def main() -> None:
    """Run all notebooks and store the outputs in their files."""
    os.environ["DELEGRAPH_CONFIG"] = ""
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        coded = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for cell, found in zip(coded, run(path), strict=True):
            cell["outputs"] = found
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
