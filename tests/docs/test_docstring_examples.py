"""The examples in docstrings print what stands there."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ["core", *(f"delegates/{name}/src" for name in ("edgetpu", "flex", "numba_cpu"))]
FILES = [
    (file, file.relative_to(ROOT / source).with_suffix(""))
    for source in SOURCES
    for file in sorted((ROOT / source).rglob("*.py"))
]
MODULES = [
    ".".join(name.parts).removesuffix(".__init__")
    for file, name in FILES
    if ">>> " in file.read_text(encoding="utf-8") and "templates" not in name.parts
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    if name.startswith("delegraph_"):
        pytest.importorskip(name.partition(".")[0])
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0
