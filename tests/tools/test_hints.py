from __future__ import annotations

import numpy as np
import pytest

from delegraph import (
    Capabilities,
    Claim,
    Interpreter,
    PlacementPolicy,
    PlacementRule,
    Rejection,
    SimpleDelegateInterface,
)
from delegraph.delegation.delegate import DelegateContext
from delegraph.operators.registration import Node, Registration
from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import AddOptions, FullyConnectedOptions, ReducerOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools.explanation import explain
from delegraph.tools.hints import Hint, hints_for
from support.answering import Answering, Claiming

RELU6 = ActivationFunctionType.RELU6
FC, ADD = FullyConnectedOptions, AddOptions
MODEL = graph_model(
    [
        ("FULLY_CONNECTED", "x w", "a", FC(fused_activation_function=RELU6)),
        ("ADD", "a x", "b", ADD(fused_activation_function=RELU6)),
        ("ADD", "b one", "c", ADD()),
        ("ABS", "c", "d"),
        ("ABS", "i", "j"),
    ],
    inputs="x i",
    outputs="d j",
    tensors={
        **{name: tensor((2, 4)) for name in "xabcd"},
        **{name: tensor((3,), "INT32") for name in "ij"},
        "w": constant(np.ones((4, 4), np.float32)),
        "one": constant(np.ones((1,), np.float32)),
    },
)


def hints(
    delegate: SimpleDelegateInterface, model: bytes = MODEL, excluded: str = ""
) -> tuple[Hint, ...]:
    rules = [PlacementRule("exclude", nodes=excluded)] if excluded else []
    with Interpreter(
        model_content=model, delegates=[delegate], placement=PlacementPolicy(rules=rules)
    ) as interpreter:
        explanation = explain(interpreter)
        return hints_for(interpreter, explanation.placement, explanation.costs)


@pytest.fixture
def all_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints that win nothing of the arithmetic are kept."""
    monkeypatch.setattr("delegraph.tools.hints.LEAST_SHARE", 0.0)


@pytest.mark.usefixtures("all_shares")
@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (
            Claim(["ADD", "FULLY_CONNECTED", "ABS"], ["FLOAT32", "INT32"], "broadcast"),
            ["answering could claim activations RELU6: 2 more nodes, 100.0 % of the arithmetic"],
        ),
        (
            Claim(["ADD", "FULLY_CONNECTED", "ABS"], "FLOAT32", "activation"),
            [
                "answering could claim features broadcast: 1 more node, 1 partition fewer",
                "answering could claim types INT32: 1 more node",
            ],
        ),
        (
            Claim(["ADD", "ABS"], ["FLOAT32", "INT32"], "activation", "broadcast"),
            ["answering could claim FULLY_CONNECTED: 1 more node, 100.0 % of the arithmetic"],
        ),
        (
            Claim(
                ["ADD", "FULLY_CONNECTED", "ABS"],
                ["FLOAT32", "INT32"],
                "activation",
                "broadcast",
                versions=(2, 3),
            ),
            ["answering could claim version 1: 5 more nodes, 100.0 % of the arithmetic"],
        ),
    ],
    ids=["activation", "feature and types", "operator", "version"],
)
def test_one_constraint_of_the_claims_is_lifted(claim: Claim, expected: list[str]) -> None:
    assert [str(hint) for hint in hints(Claiming(Capabilities([claim])))] == expected


def test_a_change_without_arithmetic_is_a_hint_only_if_it_joins_partitions() -> None:
    claim = Claim(["ADD", "FULLY_CONNECTED", "ABS"], "FLOAT32", "activation")
    assert [str(hint) for hint in hints(Claiming(Capabilities([claim])))] == [
        "answering could claim features broadcast: 1 more node, 1 partition fewer"
    ]


def test_in_a_model_without_arithmetic_every_change_is_a_hint() -> None:
    model = graph_model([("ABS", "x", "y")], inputs="x", outputs="y")
    found = hints(Claiming(Capabilities([Claim("ABS", "INT32")])), model)
    assert [str(hint) for hint in found] == ["answering could claim types FLOAT32: 1 more node"]


INTEGERS = graph_model(
    [
        ("ABS", "i", "j"),
        ("FULLY_CONNECTED", "j w bias", "k", FC(fused_activation_function=RELU6)),
    ],
    inputs="i",
    outputs="k",
    tensors={
        **{name: tensor((1, 4), "INT8", scale=0.5) for name in "ijk"},
        "w": constant(np.ones((4, 4), np.int8), scale=0.5),
        "bias": constant(np.ones(4, np.int32), scale=0.25),
    },
)


@pytest.mark.usefixtures("all_shares")
def test_of_changes_with_the_same_effect_the_shortest_is_shown() -> None:
    """INT32, for the bias, does not help: the delegate does not name what else it lacks."""
    claim = Claim(["ABS", "FULLY_CONNECTED"], "FLOAT32")
    found = hints(Unfused(Capabilities([claim])), INTEGERS)
    assert [str(hint) for hint in found] == ["answering could claim types INT8: 1 more node"]


@pytest.mark.usefixtures("all_shares")
def test_two_constraints_of_a_node_give_one_hint_and_most_arithmetic_comes_first() -> None:
    claim = Claim(["ABS", "FULLY_CONNECTED"], "FLOAT32")
    assert [str(hint) for hint in hints(Claiming(Capabilities([claim])), INTEGERS)] == [
        "answering could claim types INT32, INT8 and activations RELU6: 2 more nodes, "
        "100.0 % of the arithmetic",
        "answering could claim types INT8: 1 more node",
    ]


@pytest.mark.parametrize(
    ("type", "properties"),
    [
        ("INT8", 'bias="INT32" and activations RELU6'),
        ("FLOAT32", "types INT32, INT8 and activations RELU6"),
    ],
)
def test_an_operator_is_added_together_with_its_types_and_activations(
    type: str, properties: str
) -> None:
    (most, *_) = hints(Claiming(Capabilities([Claim("ABS", type)])), INTEGERS)
    assert most.change == f"claim FULLY_CONNECTED with {properties}"
    assert most.share == 1.0


REDUCED = graph_model(
    [("MEAN", "x axis", "y", ReducerOptions()), ("ABS", "y", "z")],
    inputs="x",
    outputs="z",
    tensors={
        "x": tensor((2, 4)), "axis": constant(np.int32([1])), "y": tensor((2,)), "z": tensor((2,)),
    },
)  # fmt: skip


@pytest.mark.parametrize(
    ("claims", "change"),
    [
        ([Claim(["ABS", "MEAN"], "FLOAT32")], 'axis="INT32"'),
        ([Claim("ABS", "FLOAT32"), Claim("MEAN", "FLOAT32", axis="INT64")], 'axis="INT32"'),
        ([Claim("ABS", "FLOAT32")], 'MEAN with axis="INT32"'),
    ],
)
def test_the_type_of_a_single_role_is_claimed_for_it(claims: list[Claim], change: str) -> None:
    found = hints(Claiming(Capabilities(claims)), REDUCED)
    assert [str(hint) for hint in found] == [f"answering could claim {change}: 1 more node"]


class Unfused(Claiming):
    """Rejects fused activations without naming the constraint."""

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = super().is_node_supported_by_delegate(registration, node, context)
        return answer if registration.name == "ABS" else answer and False


class Shallow(Claiming):
    """Takes what it claims, on four dimensions."""

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = super().is_node_supported_by_delegate(registration, node, context)
        rank = len(context.tensors[node.outputs[0]].shape)
        return answer and (rank == 4 or Rejection("rank", actual=rank, expected=4))


def test_a_rank_is_padded_together_with_a_wider_claim() -> None:
    claim = Claim(["FULLY_CONNECTED"], "FLOAT32")
    assert (
        "answering could claim activations RELU6 and pad ranks to 4: 1 more node, "
        "100.0 % of the arithmetic"
    ) in map(str, hints(Shallow(Capabilities([claim]))))


class Raising(Claiming):
    """Fails when asked about an operator that it does not claim."""

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer = super().is_node_supported_by_delegate(registration, node, context)
        if answer and registration.name == "ABS":
            raise KeyError("ABS")
        return answer


def test_a_delegate_that_fails_on_what_it_does_not_claim_has_no_hint_of_it() -> None:
    claim = Claim(["ADD", "FULLY_CONNECTED"], "FLOAT32", "activation", "broadcast")
    assert hints(Raising(Capabilities([claim]))) == ()


def test_nodes_left_for_another_reason_are_not_counted() -> None:
    claim = Claim(["ADD", "FULLY_CONNECTED"], "FLOAT32", "broadcast", activations="RELU6")
    assert hints(Claiming(Capabilities([claim])), excluded="3-4") == ()


def test_a_change_does_not_count_nodes_that_a_rule_keeps_off() -> None:
    claim = Claim(["ADD", "FULLY_CONNECTED", "ABS"], ["FLOAT32", "INT32"], "broadcast")
    found = hints(Claiming(Capabilities([claim])), excluded="1-4")
    assert [hint.nodes for hint in found] == [1]


def test_answers_that_no_lift_changes_give_no_hint() -> None:
    assert hints(Answering(Rejection("chip-memory"))) == ()


def test_arithmetic_of_unknown_shapes_is_a_least_share_or_none() -> None:
    tensors = {name: tensor((1, 4), shape_signature=(-1, 4)) for name in "xa"}
    tensors |= {"y": tensor(()), "w": constant(np.ones((4, 4), np.float32))}
    nodes = [("FULLY_CONNECTED", "x w", "a", FC()), ("BATCH_MATMUL", "a w", "y")]
    model = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    found = hints(Claiming(Capabilities([Claim("ADD", "FLOAT32")])), model)
    assert [str(hint).partition(" could claim ")[2] for hint in found] == [
        "FULLY_CONNECTED: 1 more node, at least 100.0 % of the arithmetic",
        "BATCH_MATMUL: 1 more node",
    ]
