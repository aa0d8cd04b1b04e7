"""What packages export is what their stubs say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from delegraph import exports

STUBS = sorted(Path(exports.__file__).parent.rglob("__init__.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.parent.name)
def test_a_stub_is_read_as_python_would_read_it(stub: Path) -> None:
    submodules, names = exports.read_stub(str(stub.with_suffix(".py")))
    found = [("", name) for name in submodules]
    found += [(module, name) for module, each in names.items() for name in each]
    expected = [
        (node.module or "", alias.name)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert expected
    assert sorted(found) == sorted(expected)
