"""The op table: declared names, and modules that are imported when one is looked up."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

import delegraph.kernels
from delegraph.kernels.ops import KERNELS
from delegraph.operators import OP_TABLE, LazyTable, Registration
from delegraph.operators.op_table import kernel


def test_what_every_kernel_module_registers_is_declared() -> None:
    modules = [m.name for m in walk_packages(delegraph.kernels.__path__, "delegraph.kernels.")]
    for module in modules:
        import_module(module)
    declared = {
        name.partition(":")[0]: f"delegraph.kernels.{module}"
        for module, names in KERNELS.items()
        for name in names.split()
    }
    assert {name: OP_TABLE[name].prepare.__module__ for name in OP_TABLE} == declared


def test_a_kernel_is_imported_once_it_is_needed_and_no_other() -> None:
    code = """
import sys
import delegraph.kernels.ops
from delegraph.operators.op_table import LazyTable
from delegraph.operators.op_table import OP_TABLE
assert "CONV_2D" in OP_TABLE and len(OP_TABLE) > 150 and "delegraph.kernels.conv" not in sys.modules
found = OP_TABLE["CONV_2D"]
assert (found.name, found.builtin_code, found.versions) == ("CONV_2D", 3, (1, 8))
assert found.init is None and not found.is_unresolved and OP_TABLE["CONV_2D"] is found
assert "delegraph.kernels.conv" not in sys.modules
assert found.uses_blas and found.prepare.__module__ == "delegraph.kernels.conv"
assert OP_TABLE["CONV_2D"] is found and not hasattr(found, "other")
assert "delegraph.kernels.conv" in sys.modules and "delegraph.kernels.conv3d" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_nobody_declared_is_not_there() -> None:
    table = LazyTable[Registration]()
    assert "CONV_2D" not in table
    assert table.get("CONV_2D") is None
    with pytest.raises(KeyError, match="CONV_2D"):
        table["CONV_2D"]


def test_a_replaced_registration_is_found_and_counted_once() -> None:
    table = LazyTable[Registration]()
    table.declare("delegraph.kernels", {"conv": "CONV_2D"})
    table["CONV_2D"] = own = Registration("CONV_2D", OP_TABLE["CONV_2D"].prepare)
    assert table["CONV_2D"] is own
    assert [*table] == ["CONV_2D"]
    assert len(table) == 1
    del table["CONV_2D"]
    assert "CONV_2D" in table


def test_two_kernels_of_one_name_are_caught() -> None:
    prepare = OP_TABLE["CONV_2D"].prepare
    with pytest.raises(ValueError, match="CONV_2D is registered twice"):
        kernel("CONV_2D")(prepare)
