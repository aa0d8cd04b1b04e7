"""The table of operators: an operator is registered once, for all types or for each of some."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from delegraph_numba_cpu.operators import OPERATORS, registry
from delegraph_numba_cpu.operators.registry import Call, Operator, register, register_variants
from delegraph_numba_cpu.program import ProgramBuilder


def lower(call: Call, builder: ProgramBuilder) -> None:
    raise AssertionError("nothing is lowered here")


def operator(*types: str) -> Operator:
    return Operator(lambda call: None, lower, types)


@pytest.fixture(autouse=True)
def own_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave the tables as they were."""
    monkeypatch.setattr(registry, "_VARIANTS", {})
    kept = dict(OPERATORS)
    yield
    OPERATORS.clear()
    OPERATORS.update(kept)


def test_an_operator_is_not_registered_twice() -> None:
    register({"NEW": operator("INT8")})
    with pytest.raises(ValueError, match="NEW is registered already"):
        register({"NEW": operator("INT16")})
    assert OPERATORS["NEW"].types == ("INT8",)


def test_a_variant_is_not_registered_twice() -> None:
    register_variants("INT8", {"NEW": operator("INT8")})
    register_variants("FLOAT32", {"NEW": operator("FLOAT32")})
    with pytest.raises(ValueError, match="NEW is registered already for INT8"):
        register_variants("INT8", {"NEW": operator("INT8")})
    types = {claim.types for claim in OPERATORS["NEW"].claims("NEW")}
    assert types == {("INT8",), ("FLOAT32",)}


def test_an_operator_of_all_types_gets_no_variants_and_the_other_way_round() -> None:
    register({"ALL": operator("INT8")})
    with pytest.raises(ValueError, match="ALL is registered already for INT8"):
        register_variants("INT8", {"ALL": operator("INT8")})
    register_variants("INT8", {"SOME": operator("INT8")})
    with pytest.raises(ValueError, match="SOME is registered already"):
        register({"SOME": operator("INT8")})
