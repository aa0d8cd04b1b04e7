"""The table of operators: an operator is registered once, for all types or for each of some."""

from __future__ import annotations

import subprocess
import sys

import pytest

from delegraph import builtin_registration
from delegraph.operators import LazyTable
from delegraph_numba_cpu.lowering import MODULES, OPERATORS, registry
from delegraph_numba_cpu.lowering.registry import Call, Operator, register, register_variants
from delegraph_numba_cpu.program.builder import ProgramBuilder


def lower(call: Call, builder: ProgramBuilder) -> None:
    raise AssertionError("nothing is lowered here")


def operator(*types: str) -> Operator:
    return Operator(lambda call: None, lower, types)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> LazyTable[Operator]:
    """What is registered goes here for a while."""
    table = LazyTable[Operator]()
    monkeypatch.setattr(registry, "OPERATORS", table)
    return table


def test_an_operator_is_not_registered_twice(table: LazyTable[Operator]) -> None:
    register({"NEW": operator("INT8")})
    with pytest.raises(ValueError, match="NEW is registered twice"):
        register({"NEW": operator("INT16")})
    assert table["NEW"].types == ("INT8",)


def test_a_variant_is_not_registered_twice(table: LazyTable[Operator]) -> None:
    register_variants("INT8", {"NEW": operator("INT8")})
    register_variants("FLOAT32", {"NEW": operator("FLOAT32")})
    with pytest.raises(ValueError, match="NEW is registered already for INT8"):
        register_variants("INT8", {"NEW": operator("INT8")})
    types = {claim.types for claim in table["NEW"].claims("NEW")}
    assert types == {("INT8",), ("FLOAT32",)}


def test_an_operator_of_all_types_gets_no_variants_and_the_other_way_round(
    table: LazyTable[Operator],
) -> None:
    register({"ALL": operator("INT8")})
    with pytest.raises(ValueError, match="ALL is registered already for INT8"):
        register_variants("INT8", {"ALL": operator("INT8")})
    register_variants("INT8", {"SOME": operator("INT8")})
    with pytest.raises(ValueError, match="SOME is registered twice"):
        register({"SOME": operator("INT8")})


def test_every_name_is_an_operator_of_the_core() -> None:
    assert [name for name in OPERATORS if builtin_registration(name) is None] == []


def test_modules_register_what_is_declared() -> None:
    code = """
import sys
from importlib import import_module
from delegraph import builtin_registration
from delegraph.operators import LazyTable
from delegraph_numba_cpu.lowering import MODULES, OPERATORS, registry
found = {}
def noted(register, position):
    def run(*args, **kwargs):
        module = sys._getframe(1).f_globals["__name__"]
        found.setdefault(module, set()).update(args[position])
        register(*args, **kwargs)
    return run
registry.register = noted(registry.register, 0)
registry.register_variants = noted(registry.register_variants, 1)
for module in MODULES:
    import_module(f"delegraph_numba_cpu.lowering.{module}")
for module in sorted(found):
    print(module.removeprefix("delegraph_numba_cpu.lowering."), *sorted(found[module]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    declared = [" ".join([name, *sorted(MODULES[name].split())]) for name in sorted(MODULES)]
    assert run.stdout.splitlines() == declared


def test_a_lookup_imports_what_has_the_operator_only() -> None:
    code = (
        "import sys; from delegraph_numba_cpu.lowering import OPERATORS; OPERATORS['CAST']; "
        "'ADD' in OPERATORS; list(OPERATORS); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    prefix = "delegraph_numba_cpu.lowering."
    modules = {name.removeprefix(prefix) for name in run.stdout.split() if name.startswith(prefix)}
    assert modules & MODULES.keys() == {"elementwise.cast"}
