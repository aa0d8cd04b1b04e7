"""Checks of the section Delegation."""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph import DelegateContext, Interpreter, Node, SimpleDelegateKernelInterface
from delegraph.errors import DelegateError
from delegraph.native import litert_delegate
from delegraph.testing import graph_model, one_op_model, tensor
from differences.difference import Sides, attempt, difference, in_a_child
from support.by_name import ByName, ByNameKernel

CHAIN = graph_model([("SIN", "x", "a"), ("NEG", "a", "y")], inputs="x", outputs="y")
TWICE = one_op_model("Twice", [tensor((2,))], [tensor((2,))])


class Failing(ByName):
    """Cannot prepare its kernel."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        class Kernel(ByNameKernel):
            def prepare(self, context: DelegateContext, node: Node) -> None:
                raise ValueError("not this one")

        return Kernel(self)


def operators(interpreter: Any) -> list[str]:
    return [node["op_name"] for node in interpreter._get_ops_details()]


def litert_after_a_failure() -> list[str]:
    """Return LiteRT's nodes after the second of two delegates has failed."""
    from ai_edge_litert.interpreter import Interpreter as LiteRt

    delegates = [ByName("SIN"), Failing("NEG")]
    try:
        LiteRt(
            model_content=CHAIN,
            experimental_delegates=[litert_delegate(one, model=CHAIN) for one in delegates],
        )
    except RuntimeError as error:
        trace = error.__traceback__
        while trace is not None and "self" not in trace.tb_frame.f_locals:
            trace = trace.tb_next
        assert trace is not None, "its constructor has failed"
        return operators(trace.tb_frame.f_locals["self"])
    raise AssertionError("the delegate has not failed")


@difference("delegates-that-were-there-before")
def _() -> Sides:
    ours = Interpreter(model_content=CHAIN, delegates=[ByName("SIN")])
    try:
        ours.modify_graph_with_delegate(Failing("NEG"))
    except DelegateError:
        return operators(ours), in_a_child(litert_after_a_failure)
    raise AssertionError("the delegate has not failed")


def litert_of_a_custom_operator() -> Any:
    from ai_edge_litert.interpreter import Interpreter as LiteRt

    delegate = litert_delegate(ByName("Twice"), model=TWICE)
    return attempt(
        lambda: LiteRt(model_content=TWICE, experimental_delegates=[delegate]) and "runs"
    )


@difference("static-delegate-of-a-custom-operator")
def _() -> Sides:
    ours = Interpreter(model_content=TWICE, delegates=[ByName("Twice")])
    ours.allocate_tensors()
    ours.set_tensor(0, np.float32([1, 2]))
    ours.invoke()
    assert ours.get_tensor(1).tolist() == [2, 4]
    return "runs", in_a_child(litert_of_a_custom_operator)
