from __future__ import annotations

import numpy as np

from delegraph import Interpreter, Rejection
from delegraph.testing import constant, graph_model, tensor
from delegraph.tools.explanation import explain
from delegraph.tools.refusals import Refusal
from support.answering import Answering

NODES = [
    ("FULLY_CONNECTED", "x w", "a"),
    ("FULLY_CONNECTED", "a w", "b"),
    ("ABS", "b", "c"),
    ("NEG", "c", "y"),
]
MODEL = graph_model(
    NODES,
    inputs="x",
    outputs="y",
    tensors={
        **{name: tensor((1, 4)) for name in "xabcy"},
        "w": constant(np.ones((4, 4), np.float32)),
    },
)


def refusals(*answers: bool | Rejection) -> tuple[Refusal, ...]:
    return explain(Interpreter(model_content=MODEL, delegates=[Answering(*answers)])).refusals


def test_nodes_with_one_reason_are_one_refusal_whatever_their_operators() -> None:
    (found,) = refusals(Rejection("activation", "activation is RELU6; claimed is NONE"))
    assert found.nodes == (0, 1, 2, 3)
    assert found.ops == ("FULLY_CONNECTED", "FULLY_CONNECTED", "ABS", "NEG")
    assert (found.macs, found.share, found.bytes) == (32, 1.0, 4 * 16)


def test_the_operator_itself_is_not_repeated_in_the_reason() -> None:
    answers = [Rejection("op", actual=op, expected="SIN") for op, _, _ in NODES]
    assert [r.reason for r in refusals(*answers)] == ["takes only SIN"]


def test_messages_that_differ_in_the_operator_alone_are_one_refusal() -> None:
    (found,) = refusals(*(Rejection("op", f"npu has no kernel for {op}") for op, _, _ in NODES))
    assert found.reason == "npu has no kernel for FULLY_CONNECTED, ABS or NEG"
    assert found.nodes == (0, 1, 2, 3)


def test_actual_values_of_one_reason_are_told_together() -> None:
    answers = [Rejection("rank", actual=actual, expected=4) for actual in (1, 3, 2, 1)]
    assert [r.reason for r in refusals(*answers)] == ["rank: is 1 to 3, needs 4"]
    answers = [Rejection("dtype", actual=name, expected="INT4") for name in "abba"]
    assert [r.reason for r in refusals(*answers)] == ["dtype: is a or b, needs INT4"]
    answers = [Rejection("shape", actual=[i, i], expected="one") for i in (1, 1, 1, 2)]
    assert [r.reason for r in refusals(*answers)] == ["shape: is [1, 1] or [2, 2], needs one"]


def test_what_leaves_most_arithmetic_behind_comes_first() -> None:
    small, large = Rejection("small"), Rejection("large")
    found = refusals(large, True, small, small)
    assert [(r.constraint, r.nodes, r.share) for r in found] == [
        ("large", (0,), 0.5),
        ("small", (2, 3), 0.0),
    ]


def test_a_share_is_unknown_where_shapes_and_so_the_arithmetic_are() -> None:
    tensors = {"x": tensor((1, 4)), "a": tensor((1, 4)), "y": tensor(())}
    tensors["w"] = constant(np.ones((4, 4), np.float32))
    nodes = [("FULLY_CONNECTED", "x w", "a"), ("FULLY_CONNECTED", "a w", "y")]
    model = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    delegate = Answering(Rejection("known"), Rejection("unknown"))
    found = explain(Interpreter(model_content=model, delegates=[delegate])).refusals
    assert [(r.constraint, r.macs, r.share, r.macs_are_least) for r in found] == [
        ("known", 16, 1.0, False),
        ("unknown", 0, None, True),
    ]
