"""Checks of the section Delegation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from delegraph import Delegate, DelegateContext, Interpreter, Node, SimpleDelegateKernelInterface
from delegraph.errors import DelegateError
from delegraph.native import litert_delegate
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model, one_op_model, tensor
from differences.difference import Sides, attempt, difference, in_a_child
from support.buffered_delegate import Buffered
from support.by_name import ByName, ByNameKernel

CHAIN = graph_model([("SIN", "x", "a"), ("NEG", "a", "y")], inputs="x", outputs="y")
SINES = [("SIN", "x", "a"), ("ADD", "x x", "b", AddOptions()), ("SIN", "a", "c"), ("SIN", "x", "d")]
EDGES = bytes((1, 1, 1, 6, 2))  # version, subgraphs, pairs; node 3 before node 1
ORDERED = graph_model(
    SINES, inputs="x", outputs="b c d", metadata={"model_control_dependencies": EDGES}
)
SINE = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
TWICE = one_op_model("Twice", [tensor((2,))], [tensor((2,))])


class Failing(ByName):
    """Delegate whose kernel cannot be prepared."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        class Kernel(ByNameKernel):
            def prepare(self, context: DelegateContext, node: Node) -> None:
                raise ValueError("not this one")

        return Kernel(self)


def operators(interpreter: Any) -> list[str]:
    return [node["op_name"] for node in interpreter._get_ops_details()]


def litert_after_a_failure() -> list[str]:
    """Return the nodes in LiteRT after the second of two delegates has failed."""
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


def two_delegates(make: Callable[[list[ByName]], Any]) -> Any:
    """Whether a delegate of ADD is applied after one of SIN, if there is a control edge."""
    delegates = [ByName("SIN"), ByName("ADD", name="second")]
    return attempt(lambda: make(delegates) is not None)


def litert_of(model: bytes, delegates: Sequence[Delegate]) -> Any:
    """Return LiteRT's interpreter with Python delegates."""
    from ai_edge_litert.interpreter import Interpreter as LiteRt
    from ai_edge_litert.interpreter import OpResolverType

    return LiteRt(
        model_content=model,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_delegates=[litert_delegate(one, model=model) for one in delegates],
    )


def litert_of_two_delegates() -> Any:
    return two_delegates(lambda delegates: litert_of(ORDERED, delegates))


@difference("control-edges-after-a-delegate")
def _() -> Sides:
    ours = two_delegates(lambda delegates: Interpreter(model_content=ORDERED, delegates=delegates))
    return ours, in_a_child(litert_of_two_delegates)


def read_after_a_failed_copy(interpreter: Any) -> Any:
    """Return the result of reading an output that cannot be copied from a delegate's buffer."""
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones(4, np.float32))
    interpreter.invoke()
    return attempt(lambda: interpreter.get_tensor(1).shape)


def litert_after_a_failed_copy() -> Any:
    return read_after_a_failed_copy(litert_of(SINE, [Buffered(fails=True)]))


@difference("copies-from-buffers-that-fail")
def _() -> Sides:
    ours = Interpreter(model_content=SINE, delegates=[Buffered(fails=True)])
    return read_after_a_failed_copy(ours), in_a_child(litert_after_a_failed_copy)


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
