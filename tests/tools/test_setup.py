from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from delegraph import Interpreter
from delegraph.delegation.rules import PlacementRule
from delegraph.errors import ArgumentError, PlacementError
from delegraph.tools import Setup


def test_every_interpreter_is_a_new_one(sines: Path) -> None:
    setup = Setup(str(sines), delegates=("sin",))
    with setup.interpreter() as first, setup.interpreter() as second:
        assert isinstance(first, Interpreter)
        assert first is not second
        assert first.placement.delegates == ("sin",)


def test_a_path_becomes_text(sines: Path) -> None:
    assert Setup(sines).model == str(sines)  # type: ignore[arg-type]  # what notebooks pass


def test_none_means_no_delegate_at_all() -> None:
    assert Setup("m.tflite").requested_delegates() is None
    assert Setup("m.tflite", delegates=("none",)).requested_delegates() == []


@pytest.mark.parametrize(
    ("words", "runs_on"), [(("none",), None), ((), None), (("default",), "XNNPACK")]
)
def test_none_means_nothing_but_builtin_kernels_in_litert_too(
    sines: Path, words: tuple[str, ...], runs_on: str | None
) -> None:
    pytest.importorskip("ai_edge_litert")
    with Setup(str(sines), runtime="litert", delegates=words).interpreter() as interpreter:
        interpreter.allocate_tensors()
        assert {node.delegate for node in interpreter.placement.nodes} == {runs_on}


def test_default_means_what_applies_without_being_named() -> None:
    assert Setup("m.tflite", delegates=("default",)).requested_delegates() is None
    assert Setup("m.tflite", delegates=("default", "sin")).requested_delegates() == ["sin"]


def test_rules_are_passed_on(sines: Path) -> None:
    rule = PlacementRule("exclude", operators="SIN")
    with Setup(str(sines), delegates=("sin",), rules=[rule]).interpreter() as interpreter:
        assert not interpreter.placement.partitions


def test_rules_and_require_are_passed_on_to_litert(sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    rule = PlacementRule("exclude", "sin", nodes=3)
    setup = Setup(str(sines), "litert", ("sin",), rules=[rule], use_default_delegates=False)
    with setup.interpreter() as interpreter:
        interpreter.allocate_tensors()
        assert [p.nodes for p in interpreter.placement.partitions] == [(0,)]
    full = replace(setup, require="full").interpreter()
    with full, pytest.raises(PlacementError, match="4 nodes stay behind"):
        full.allocate_tensors()


def test_what_litert_has_not_is_refused(sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    with pytest.raises(ArgumentError, match="partition_policy needs runtime='delegraph'"):
        Setup(str(sines), runtime="litert", partition_policy="measured").interpreter()


def test_default_delegates_can_be_left_out_of_litert(sines: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    setup = Setup(str(sines), runtime="litert", use_default_delegates=False)
    with setup.interpreter() as interpreter:
        interpreter.allocate_tensors()
        assert {node.delegate for node in interpreter.placement.nodes} == {None}


def test_its_text_tells_what_is_not_by_default() -> None:
    setup = Setup("a/b.tflite", "litert", ("sin", "flex"), threads=1, use_default_delegates=False)
    assert str(setup) == "b.tflite, litert, sin, flex, no default delegates, 1 thread"
    assert str(Setup("b.tflite", on_failure="shadow")) == "b.tflite, on failure shadow"


@pytest.mark.parametrize("delegates", [("none",), (), None])
def test_its_text_says_once_that_there_are_no_delegates(delegates: tuple[str, ...] | None) -> None:
    setup = Setup("b.tflite", "litert", delegates, use_default_delegates=False)
    assert str(setup) == "b.tflite, litert, no delegates"


def test_json_has_what_is_not_by_default() -> None:
    shown = Setup("b.tflite", rules=[PlacementRule("exclude", nodes=3)], threads=2).to_json()
    assert shown == {
        "model": "b.tflite",
        "runtime": "delegraph",
        "delegates": None,
        "threads": 2,
        "rules": ["exclude nodes 3 from every delegate"],
    }
