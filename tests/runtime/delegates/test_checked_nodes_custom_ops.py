"""A custom operator's kernel is asked for shapes as any other: delegates find them as in LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    Registration,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError, NodeError
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.testing import graph_model, tensor
from support.by_name import ByName, ByNameKernel, partitions

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
PROPAGATED = DYNAMIC | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

MODEL = graph_model(
    [("DynamicCopy", "x", "loose fixed")],
    inputs="x",
    outputs="loose fixed",
    tensors={"x": tensor((3,)), "loose": tensor((3,)), "fixed": tensor((3,))},
)


def dynamic_copy(calls: list[str], *, is_dynamic: bool = True) -> Registration:
    """Two copies of the input: the shape of the first is left open, that of the second is told."""

    def prepare(context: OpContext, node: Node) -> Eval:
        calls.append("prepare")
        x, loose, fixed = (context.tensors[i] for i in (*node.inputs, *node.outputs))
        if is_dynamic:
            context.set_dynamic(loose)
        else:
            context.resize_tensor(loose, x.shape)
        context.resize_tensor(fixed, x.shape)

        def run() -> None:
            context.resize_tensor(loose, x.shape)
            loose.data[...] = fixed.data[...] = x.data

        return run

    return Registration("DynamicCopy", prepare)


class Copying(ByName):
    """Computes the operator; it gives shapes to nothing but what is left open."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        class Kernel(ByNameKernel):
            def prepare(self, context: DelegateContext, node: Node) -> None:
                pass

            def eval(self, context: DelegateContext, node: Node) -> None:
                x = context.tensors[0]
                for output in (context.tensors[i] for i in node.outputs):
                    if output.is_dynamic:
                        context.resize_tensor(output, x.shape)
                    output.data[...] = x.data

        return Kernel(self)


def interpreter_with(op: Registration, flags: DelegateFlags) -> Interpreter:
    delegate = Copying("DynamicCopy", flags=flags)
    return Interpreter(model_content=MODEL, delegates=[delegate], custom_ops={"DynamicCopy": op})


def test_its_dynamic_outputs_keep_a_static_delegate_away() -> None:
    with pytest.raises(DelegateError, match="static-sized"):
        interpreter_with(dynamic_copy([]), DelegateFlags.NONE)


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED], ids=["dynamic", "propagated"])
def test_a_delegate_gets_it_with_its_output_left_open(flags: DelegateFlags) -> None:
    calls: list[str] = []
    interpreter = interpreter_with(dynamic_copy(calls), flags)
    assert partitions(interpreter) == [("by_name", (0,))]
    for size in (3, 5) if flags is PROPAGATED else (3,):
        interpreter.resize_tensor_input(0, [size])
        interpreter.allocate_tensors()
        assert calls, "its kernel was never asked"
        loose, fixed = (interpreter.session.subgraphs[0].tensors[i] for i in (1, 2))
        assert loose.is_dynamic
        assert not fixed.is_dynamic
        assert fixed.shape == (size,)
        x = np.arange(size, dtype=np.float32)
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        for index in (1, 2):
            np.testing.assert_array_equal(interpreter.get_tensor(index), x)


def test_shapes_are_propagated_through_it_before_the_delegate_prepares() -> None:
    calls: list[str] = []
    op = dynamic_copy(calls, is_dynamic=False)
    interpreter = interpreter_with(op, PROPAGATED)
    interpreter.allocate_tensors()
    before = len(calls)
    interpreter.resize_tensor_input(0, [4])
    interpreter.allocate_tensors()
    assert len(calls) > before
    assert [d["shape"].tolist() for d in interpreter.get_output_details()] == [[4], [4]]


def refuse(context: OpContext, node: Node) -> Eval:
    raise ValueError("not with me")


def test_a_node_that_its_kernel_refuses_may_be_a_delegates() -> None:
    interpreter = interpreter_with(Registration("DynamicCopy", refuse), DYNAMIC)
    assert partitions(interpreter) == [("by_name", (0,))]
    interpreter.allocate_tensors()
    x = np.arange(3, dtype=np.float32)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), x)


def test_a_delegate_that_requires_propagated_shapes_needs_the_kernel() -> None:
    interpreter = interpreter_with(Registration("DynamicCopy", refuse), PROPAGATED)
    assert partitions(interpreter) == [("by_name", (0,))]
    for _ in range(2):
        with pytest.raises(NodeError, match=r"DynamicCopy\) failed to prepare: .*not with me"):
            interpreter.allocate_tensors()


def test_a_static_delegate_needs_the_kernel() -> None:
    with pytest.raises(DelegateError, match="not with me"):
        interpreter_with(Registration("DynamicCopy", refuse), DelegateFlags.NONE)
