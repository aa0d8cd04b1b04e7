from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delegraph import Delegate, DelegateContext, Interpreter, Rejection, SimpleDelegateInterface
from delegraph.errors import ArgumentError
from delegraph.graph.loader import load_model
from delegraph.testing import one_op_model, tensor
from delegraph.tools.explanation import SignaturePlacement, Stage, explain, explain_placement
from delegraph.tools.refusals import Refusal
from support.answering import Answering
from support.by_name import ByName
from support.half_weights import half_weights
from support.language_models import language_model

SIN = one_op_model("SIN", [tensor((2,))], [tensor((2,))])


class Silent(Delegate):
    def name(self) -> str:
        return "silent"

    def prepare(self, context: DelegateContext) -> None:
        """Claim nothing."""


def refusals(delegate: Delegate | SimpleDelegateInterface) -> tuple[Refusal, ...]:
    return explain(Interpreter(model_content=SIN, delegates=[delegate])).refusals


def test_a_model_nobody_touches_is_one_stage() -> None:
    found = explain(Interpreter(model_content=SIN))
    assert found.stages == (Stage(0, None, None, (0,), ("SIN",)),)
    assert found.refusals == ()


def test_a_reason_is_told_without_the_tensor_so_that_nodes_group() -> None:
    (refusal,) = refusals(Answering(Rejection("rank", actual=1, expected=4, tensor=0)))
    runner = ("Delegraph",)
    assert refusal == Refusal(
        "answering", "rank", "rank: is 1, needs 4", 0, (0,), ("SIN",), runner, bytes=8
    )


def test_constants_that_are_computed_once_are_in_no_stage_and_no_rejection() -> None:
    with Interpreter(model_content=half_weights(), delegates=[ByName("SIN")]) as interpreter:
        found = explain(interpreter)
        again = explain_placement(interpreter.placement, interpreter.session.model)
    sin = Stage(0, "by_name", 0, (4,), ("SIN",))
    assert found.stages == again.stages == (Stage(0, None, None, (1, 3), ("MUL", "MUL")), sin)
    assert [refusal.nodes for refusal in found.refusals] == [(1, 3)]


@pytest.mark.parametrize("make", [lambda: Answering(False), Silent], ids=["False", "silence"])
def test_no_answer_is_reported_as_such(
    make: Callable[[], Delegate | SimpleDelegateInterface],
) -> None:
    (refusal,) = refusals(make())
    assert (refusal.constraint, refusal.reason) == ("no-reason", "no reason given")


SINES = Path(__file__).parents[2] / "docs" / "demo" / "models" / "sines.tflite"


@pytest.mark.parametrize("ops", [("SIN",), ("ADD",), ("MUL", "ADD"), ("MUL", "SIN"), ("Twice",)])
def test_stages_hold_what_the_running_plan_has_each_behind_what_it_reads(
    ops: tuple[str, ...],
) -> None:
    model = load_model(str(SINES))
    with Interpreter(SINES, delegates=[ByName(*ops)]) as interpreter:
        expected = explain(interpreter)
        found = explain_placement(interpreter.placement, model)
    assert found.refusals == expected.refusals
    assert {(s.partition, s.delegate) for s in found.stages} == {
        (s.partition, s.delegate) for s in expected.stages
    }
    (subgraph,) = model.subgraphs
    made = {tensor.index for tensor in subgraph.tensors if tensor.data is not None}
    made |= set(subgraph.inputs)
    for stage in found.stages:
        operators = [subgraph.operators[i] for i in stage.nodes]
        inner = {tensor for operator in operators for tensor in operator.outputs}
        assert {tensor for operator in operators for tensor in operator.inputs} <= made | inner
        made |= inner
    assert sorted(i for stage in found.stages for i in stage.nodes) == [0, 1, 2, 3, 4]


# -- signatures --------------------------------------------------------------------------------


@pytest.fixture
def language() -> Interpreter:
    return Interpreter(model_content=language_model(), delegates=[ByName("SIN")])


def test_a_signature_alone_has_its_nodes_partitions_and_crossings(language: Interpreter) -> None:
    whole, found = explain(language), explain(language, "decode")
    assert {node.subgraph for node in found.placement.nodes} == {1}
    assert [(p.subgraph, p.index) for p in found.placement.partitions] == [(1, 0)]
    assert {stage.subgraph for stage in found.stages} == {1}
    assert {refusal.subgraph for refusal in found.refusals} == {1}
    taken = [node for node in found.placement.nodes if node.delegate]
    assert [(node.op, node.partition) for node in taken] == [("SIN", 0)]
    crossings = [c for c in whole.placement.crossings if c.subgraph == 1]
    assert len(found.placement.crossings) == len(crossings) == 2
    assert {(c.source, c.target) for c in found.placement.crossings} == {(None, 0), (0, None)}
    assert [stage.partition for stage in found.stages] == [None, 0, None]
    model = language.session.model
    assert explain_placement(whole.placement, model, "decode").placement == found.placement


def test_the_placement_of_each_signature_is_one_line(language: Interpreter) -> None:
    found = explain(language)
    assert found.signature is None
    stay = "stay with Delegraph's kernels"
    assert found.signatures == (
        SignaturePlacement("decode", 1, f"130 nodes: by_name takes 1 in 1 partition, 129 {stay}"),
        SignaturePlacement("prefill_8", 0, f"89 nodes: by_name takes 1 in 1 partition, 88 {stay}"),
    )
    assert explain(language, "decode").signatures == found.signatures


def test_a_delegate_seen_in_the_first_subgraph_only_is_not_said_to_take_none() -> None:
    with Interpreter(model_content=language_model(), delegates=[ByName("SIN")]) as interpreter:
        placement, model = interpreter.placement, interpreter.session.model
    found = explain_placement(placement, model, "decode", first_only=["by_name"])
    assert found.placement.delegates == ()
    assert [each.summary.count("by_name") for each in found.signatures] == [0, 1]


def test_an_unknown_signature(language: Interpreter) -> None:
    with pytest.raises(ArgumentError, match="no signature 'decod'"):
        explain(language, "decod")
