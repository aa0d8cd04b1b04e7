from __future__ import annotations

import doctest
from collections.abc import Callable

import pytest

from delegraph import (
    Delegate,
    DelegateContext,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.testing import one_op_model, tensor
from delegraph.tools import explanation
from delegraph.tools.explanation import Refusal, Stage, explain

SIN = one_op_model("SIN", [tensor((2,))], [tensor((2,))])


class Refusing(SimpleDelegateInterface):
    def __init__(self, answer: bool | Rejection) -> None:
        self._answer = answer

    def name(self) -> str:
        return "refusing"

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return self._answer

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        raise AssertionError("takes no node")


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
    (refusal,) = refusals(Refusing(Rejection("rank", actual=1, expected=4, tensor=0)))
    assert refusal == Refusal("refusing", "SIN", "rank", "rank: is 1, needs 4", 0, (0,), None)


@pytest.mark.parametrize("make", [lambda: Refusing(False), Silent], ids=["False", "silence"])
def test_no_answer_is_reported_as_such(
    make: Callable[[], Delegate | SimpleDelegateInterface],
) -> None:
    (refusal,) = refusals(make())
    assert (refusal.constraint, refusal.reason) == ("no-reason", "no reason given")


def test_the_examples_are_right() -> None:
    assert doctest.testmod(explanation).failed == 0
