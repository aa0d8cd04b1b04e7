"""Tables of operators: names that are declared, and modules imported when one is looked up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import delegraph.kernels.ops  # noqa: F401 - declares the kernels
from delegraph.operators import OP_TABLE, LazyTable
from delegraph.schema.enums import BuiltinOperator
from delegraph.testing.operator_cases import MAKERS


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package whose modules ``one`` and ``two`` enter operators in its table."""
    name = f"tables_{tmp_path.name}".replace("-", "_")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "table.py").write_text(
        "from delegraph.operators.op_table import LazyTable\n"
        "TABLE = LazyTable(__package__)\nDECLARED = LazyTable()\n"
        'DECLARED.declare(__package__, {"one": "ONE", "two": "TWO"})\n'
    )
    for word in ("one", "two"):
        enter = f"enter({word.upper()!r}, {word!r})"
        (folder / f"{word}.py").write_text(
            f"from {name}.table import DECLARED, TABLE\nTABLE.{enter}\nDECLARED.{enter}\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    return name


def table_of(package: str, name: str) -> LazyTable[str]:
    module = __import__(f"{package}.table", fromlist=[name])
    table: LazyTable[str] = getattr(module, name)
    return table


def test_a_look_up_imports_the_declared_module_only(package: str) -> None:
    table = table_of(package, "DECLARED")
    assert (sorted(table), len(table), "ONE" in table) == (["ONE", "TWO"], 2, True)
    assert table["TWO"] == "two"
    assert f"{package}.two" in sys.modules
    assert f"{package}.one" not in sys.modules


@pytest.mark.parametrize("look", [len, sorted, lambda t: "ONE" in t, lambda t: t.get("NONE")])
def test_any_look_up_imports_the_whole_package(package: str, look: object) -> None:
    table = table_of(package, "TABLE")
    assert not table.entered
    look(table)  # type: ignore[operator]
    assert dict(table) == {"ONE": "one", "TWO": "two"}


def test_an_operator_that_is_replaced_stays_so(package: str) -> None:
    table = table_of(package, "DECLARED")
    table["ONE"] = "other"
    assert table["ONE"] == "other"
    with pytest.raises(ValueError, match="ONE is registered twice"):
        table.enter("ONE", "one")


def test_names_in_capitals_are_of_the_schema_and_cases_are_of_known_operators() -> None:
    capitals = {name for name in OP_TABLE if name.isupper()}
    assert capitals - BuiltinOperator.__members__.keys() == {"IRFFT2D"}
    assert MAKERS.keys() <= OP_TABLE.keys()
