"""Delegates that fail in the official interpreter, and Delegraph's kernels in their place."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateParams,
    FailurePolicy,
    Interpreter,
    Node,
    OpResolverType,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError, OperatorError
from delegraph.native import LiteRtInterpreter, litert_delegate
from delegraph.native.litert import thunks
from delegraph.operators.tensor import Tensor
from delegraph.testing import constant, graph_model, tensor
from support.by_name import sines
from support.faulty_delegate import Faulty
from support.policy_models import MODELS, assert_same, counting, floats, stepped

litert = pytest.importorskip("ai_edge_litert.interpreter")

ALONE = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES

OPEN = "eval of open shapes"


class Failing(Faulty):
    """Takes every operator, or those named; fails in one phase, after it has spoilt what it can."""

    def __init__(self, phase: str, *ops: str) -> None:
        super().__init__(*ops, dynamic=True, name="failing")
        self.phase = phase

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return FailingKernel(self)

    def fail(self, phase: str) -> None:
        if phase == self.phase:
            raise OSError("device lost")


class FailingKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Failing) -> None:
        self.delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.delegate.fail("init")

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self.delegate.fail("prepare")
        read = [context.tensors[i] for i in node.inputs if i >= 0]
        sized = next(tensor for tensor in read if not tensor.is_constant)
        for index in node.outputs:
            if self.delegate.phase == OPEN:
                context.set_dynamic(context.tensors[index])
            else:
                context.resize_tensor(context.tensors[index], sized.shape)

    def eval(self, context: DelegateContext, node: Node) -> None:
        for i in (*node.outputs, *(i for i in node.inputs if i >= 0)):
            spoil(context.tensors[i], is_output=i in node.outputs)
        raise OSError("device lost")


def spoil(changed: Tensor, *, is_output: bool) -> None:
    if changed.data is not None and (is_output or changed.is_variable):
        changed.data[...] = b"?" if changed.data.dtype == object else 99
        changed.data = None if is_output else changed.data


def failing(delegate: Any, content: bytes, **arguments: Any) -> LiteRtInterpreter:
    fallback = FailurePolicy(on_failure="fallback")
    arguments = {"failures": fallback, "experimental_op_resolver_type": ALONE, **arguments}
    return LiteRtInterpreter(model_content=content, delegates=[delegate], **arguments)


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        *itertools.product(["chain", "resized", "variable"], ["prepare", "eval", OPEN]),
        ("dynamic", "prepare"),
        ("dynamic", OPEN),
    ],
)
def test_the_kernels_compute_what_the_delegate_does_not(name: str, phase: str) -> None:
    model, steps = MODELS[name]
    steps = [
        x for x in steps if name != "dynamic" or (x > 0).any()
    ]  # the runtime gives no empty ones
    interpreter: Any = failing(Failing(phase), model)
    expected = stepped(Interpreter(model_content=model, delegates=[]), steps)
    assert_same(stepped(interpreter, steps), expected)
    incident, *_ = interpreter.incidents
    assert (incident.delegate, incident.phase) == ("failing", phase.split(maxsplit=1)[0])
    assert incident.error == "OSError: device lost"
    assert incident.nodes == interpreter.placement.partitions[0].nodes
    if phase == "eval":
        assert incident.count == len(steps)


def test_strings() -> None:
    tensors = {"x": tensor((2,), "STRING"), "y": tensor((2, 1), "STRING")}
    shape = constant(np.array([2, 1], np.int32))
    model = graph_model(
        [("RESHAPE", "x shape", "y")], inputs="x", outputs="y", tensors={**tensors, "shape": shape}
    )
    interpreter: Any = failing(Failing(OPEN), model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([b"one", b"three"], object))
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert found.tolist() == [[b"one"], [b"three"]]


def test_a_partition_that_cannot_be_taken_stays_with_the_runtime() -> None:
    interpreter: Any = failing(Failing("init"), sines())
    plain = LiteRtInterpreter(model_content=sines(), experimental_op_resolver_type=ALONE)
    assert_same(stepped(interpreter, floats(2)), stepped(plain, floats(2)))
    assert [incident.phase for incident in interpreter.incidents] == ["init"]
    for node in interpreter.placement.nodes:
        assert node.delegate is None
        assert node.rejections["failing"].constraint == "init-failed"


def test_a_custom_operator_of_it_may_have_no_other_kernel() -> None:
    model = graph_model([("Mine", "x", "y")], inputs="x", outputs="y")
    with pytest.raises(DelegateError, match=r"its kernel for nodes .* device lost"):
        failing(Failing("init"), model)
    interpreter: Any = failing(Failing("eval"), model)
    interpreter.allocate_tensors()
    with pytest.raises(OperatorError, match=r"device lost; Delegraph's kernels cannot .* Mine"):
        interpreter.invoke()
    assert interpreter.incidents == ()


def test_what_the_runtime_keeps_cannot_be_computed_elsewhere() -> None:
    interpreter: Any = failing(Failing("eval", "READ_VARIABLE"), counting())
    interpreter.allocate_tensors()
    with pytest.raises(OperatorError, match=r"device lost; .* is a resource, and those"):
        interpreter.invoke()


def test_what_calls_a_subgraph_stays_with_the_runtimes_state() -> None:
    class Acquiring(Failing):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            return AcquiringKernel(self)

    class AcquiringKernel(FailingKernel):
        def init(self, context: DelegateContext, params: DelegateParams) -> None:
            params.partition_model()

    interpreter: Any = failing(Acquiring("eval", "WHILE"), MODELS["loop"][0])
    interpreter.allocate_tensors()
    with pytest.raises(OperatorError, match=r"device lost; .* calls a subgraph, whose state"):
        interpreter.invoke()


def test_what_is_in_a_buffer_of_the_delegate_cannot_either() -> None:
    class Buffering(Failing):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            return BufferingKernel(self)

    class BufferingKernel(FailingKernel):
        def init(self, context: DelegateContext, params: DelegateParams) -> None:
            output = context.tensors[params.output_tensors[0]]
            context.set_buffer_handle(output, 1, params.delegate)  # type: ignore[arg-type]  # it has one

    interpreter: Any = failing(Buffering("eval"), sines())
    interpreter.allocate_tensors()
    with pytest.raises(OperatorError, match=r"device lost; .* is in a buffer of"):
        interpreter.invoke()


def test_the_error_comes_out_unless_users_want_otherwise() -> None:
    for on_failure in ("raise", None):
        interpreter: Any = failing(
            Failing("eval"), sines(), failures=FailurePolicy(on_failure=on_failure)
        )
        interpreter.allocate_tensors()
        with pytest.raises(OSError, match="device lost"):
            interpreter.invoke()
        assert interpreter.incidents == ()


def test_in_the_official_class_the_delegate_has_the_incidents() -> None:
    delegate = litert_delegate(Failing("eval"), model=sines(), on_failure="fallback")
    interpreter: Any = litert.Interpreter(model_content=sines(), experimental_delegates=[delegate])
    expected = stepped(Interpreter(model_content=sines(), delegates=[]), floats(3))
    assert_same(stepped(interpreter, floats(3)), expected)
    (incident,) = delegate.incidents
    assert incident.count == 3
    assert delegate.last_exception is None


def test_kernels_that_stepped_in_go_with_the_interpreter() -> None:
    gc.collect()
    before = thunks.living()
    interpreter: Any = failing(Failing("eval"), sines())
    stepped(interpreter, floats(2))
    interpreter.close()
    del interpreter
    gc.collect()
    assert thunks.living() == before
