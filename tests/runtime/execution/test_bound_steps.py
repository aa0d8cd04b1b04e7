"""Kernels whose eval is bound to what it needs: called in place of the usual one."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateParams,
    Eval,
    Interpreter,
    Node,
    OpContext,
    Registration,
)
from delegraph.delegation.delegate import raise_if_requested
from delegraph.errors import CallCancelledError, DelegateError, DelegateNodeError
from delegraph.operators.registration import nothing
from delegraph.runtime.execution.bound_steps import bound_run
from delegraph.runtime.execution.calls import Cancellation
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from support.by_name import ByName, ByNameKernel


class Native(ByName):
    """Notes which of both was called; *within* is called first."""

    def __init__(self, within: Callable[[DelegateContext, Node], None] | None = None) -> None:
        super().__init__("ADD", kernel=NativeKernel)
        self.within = within


class NativeKernel(ByNameKernel):
    delegate: Native

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        super().init(context, params)
        self.delegate.calls.clear()

    def native_eval(self, context: DelegateContext, node: Node) -> Callable[[], None]:
        def run() -> None:
            self.delegate.calls.append("native")
            if self.delegate.within is not None:
                self.delegate.within(context, node)
            inner, _ = self.nodes[0]
            x, y, z = (context.tensors[i].data for i in (*inner.inputs, *inner.outputs))
            np.add(x, y, z)

        return run


def interpreter_of(delegate: Native, model: bytes | None = None) -> Interpreter:
    if model is None:
        model = one_op_model("ADD", [tensor((2,)), tensor((2,))], [tensor((2,))], AddOptions())
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    interpreter.allocate_tensors()
    return interpreter


def result(interpreter: Interpreter, *inputs: object) -> list[float]:
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], np.array(value, np.float32))
    interpreter.invoke()
    values: list[float] = interpreter.get_tensor(
        interpreter.get_output_details()[0]["index"]
    ).tolist()
    return values


def test_it_runs_in_place_of_eval() -> None:
    delegate = Native()
    interpreter = interpreter_of(delegate)
    assert result(interpreter, [1, 2], [3, 4]) == [4, 6]
    assert result(interpreter, [1, 2], [0, 1]) == [1, 3]
    assert delegate.calls == ["prepare", "native", "native"]


def test_it_is_made_anew_for_another_shape() -> None:
    interpreter = interpreter_of(Native())
    assert result(interpreter, [1, 2], [3, 4]) == [4, 6]
    for details in interpreter.get_input_details():
        interpreter.resize_tensor_input(details["index"], [3])
    interpreter.allocate_tensors()
    assert result(interpreter, [1, 2, 3], [3, 4, 5]) == [4, 6, 8]


def test_it_runs_among_other_nodes() -> None:
    model = graph_model(
        [("ADD", "x x", "s", AddOptions()), ("SIN", "s", "y")],
        inputs="x",
        outputs="y",
        tensors={name: tensor((2,)) for name in ("x", "s", "y")},
    )
    delegate = Native()
    assert result(interpreter_of(delegate, model), [0, 0]) == [0, 0]
    assert delegate.calls[-1] == "native"


def test_what_it_raises_is_the_nodes_error_and_the_next_call_is_right() -> None:
    def fail(context: DelegateContext, node: Node) -> None:
        raise DelegateError("no power", phase="eval")

    delegate = Native(fail)
    interpreter = interpreter_of(delegate)
    with pytest.raises(DelegateNodeError, match=r"by_name.*failed to invoke.*no power"):
        interpreter.invoke()
    delegate.within = None
    assert result(interpreter, [1, 2], [3, 4]) == [4, 6]


def test_no_shape_changes_while_it_runs() -> None:
    def resize(context: DelegateContext, node: Node) -> None:
        context.resize_tensor(context.tensors[node.outputs[0]], (3,))

    with pytest.raises(DelegateNodeError, match="cannot become"):
        interpreter_of(Native(resize)).invoke()


def test_other_calls_are_refused_while_it_runs() -> None:
    delegate = Native(lambda context, node: interpreter.reset_all_variables())
    interpreter = interpreter_of(delegate)
    with pytest.raises(DelegateNodeError, match=r"invoke runs .* reset_all_variables was called"):
        interpreter.invoke()


def test_a_call_that_was_cancelled_ends_and_the_next_one_runs() -> None:
    def cancel(context: DelegateContext, node: Node) -> None:
        interpreter.cancel()
        raise_if_requested(context)

    delegate = Native(cancel)
    interpreter = interpreter_of(delegate)
    with pytest.raises(CallCancelledError):
        interpreter.invoke()
    delegate.within = None
    assert result(interpreter, [1, 2], [3, 4]) == [4, 6]


WHO = ContextVar("WHO", default="default")


def test_a_custom_operator_sees_the_context_variables_of_the_caller() -> None:
    seen = []

    def prepare(context: OpContext, node: Node) -> Eval:
        return lambda: seen.append(WHO.get())

    model = graph_model(
        [("Ask", "x", "y")], inputs="x", outputs="y", tensors={"x": tensor((1,)), "y": tensor((1,))}
    )
    custom_ops = {"Ask": Registration("Ask", prepare)}
    interpreter = Interpreter(model_content=model, custom_ops=custom_ops, delegates=[])
    interpreter.allocate_tensors()
    before = WHO.set("caller")
    interpreter.invoke()
    WHO.reset(before)
    assert seen == ["caller"]


def test_float_errors_raise_within_the_caller_only() -> None:
    model = one_op_model("EXP", [tensor((1,))], [tensor((1,))])
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.float32([1000]))
    with np.errstate(all="raise"):
        interpreter.invoke()
        assert np.geterr()["over"] == "raise"


def test_a_partition_beside_nodes_that_were_computed_once_is_right() -> None:
    """A float16 weight is widened while preparing; the run has the other node only."""
    model = graph_model(
        [("DEQUANTIZE", "h", "w"), ("ADD", "x w", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={
            "h": constant(np.float16([1, 2]), type="FLOAT16"),
            **{name: tensor((2,)) for name in ("x", "w", "y")},
        },
    )
    delegate = Native()
    assert result(interpreter_of(delegate, model), [3, 4]) == [4, 6]
    assert delegate.calls[-1] == "native"


class Counted:
    """Stop request that counts how often it is read: once at first, then before each step."""

    reads = 0

    @property
    def reason(self) -> str:
        self.reads += 1
        return ""


def test_nodes_that_were_computed_once_have_no_step() -> None:
    request: Any = Counted()
    ran: list[int] = []
    evals = [nothing, lambda: ran.append(1), nothing, lambda: ran.append(2), nothing]
    bound_run(evals, request, lambda position, error: error, hides_context=True).run()
    assert ran == [1, 2]
    assert request.reads == 3


def test_the_stop_request_is_read_once_for_a_single_step() -> None:
    request: Any = Counted()
    bound_run([lambda: None], request, lambda _, error: error, hides_context=True).run()
    assert request.reads == 1


def test_the_error_of_a_node_after_one_without_step_names_it() -> None:
    def fail() -> None:
        raise ValueError("no power")

    positions: list[int] = []

    def failure(position: int, error: Exception) -> Exception:
        positions.append(position)
        return error

    bound = bound_run([nothing, nothing, fail], Cancellation(), failure, hides_context=True)
    with pytest.raises(ValueError, match="no power"):
        bound.run()
    assert positions == [2]
