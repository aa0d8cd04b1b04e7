"""Custom operators in Python in both official APIs, which lack them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph import FailurePolicy
from delegraph.errors import NodeError, OperatorError, UnresolvedOpError
from delegraph.native import LiteRtInterpreter, compiled_model
from delegraph.operators import CustomOp, custom_op, unregister_custom_op
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing import graph_model, one_op_model, tensor
from support.running import result_of

TensorBuffer = pytest.importorskip("ai_edge_litert.compiled_model").TensorBuffer

X = np.float32([1, 2, 3, 4])


def scaled_twice() -> bytes:
    """Return a model that multiplies its input by 3 and then by 5, by two nodes of one operator."""
    nodes = [("Scale", "x", "a"), ("Scale", "a", "y")]
    model = read_model(np.frombuffer(graph_model(nodes, inputs="x", outputs="y"), np.uint8))
    (subgraph,) = model.subgraphs
    operators = tuple(
        operator.replace(
            custom_options=np.frombuffer(bytes(flexbuffers.Dumps({"factor": factor})), np.uint8)
        )
        for operator, factor in zip(subgraph.operators, (3, 5), strict=True)
    )
    return write_model(model.replace(subgraphs=(subgraph.replace(operators=operators),)))


def scale() -> CustomOp:
    op = CustomOp("Scale", lambda x, *, options: x * np.float32(options["factor"]))
    op.shape(lambda x, *, options: x.shape)
    return op


def in_compiled_model(content: bytes, x: Any, **arguments: Any) -> Any:
    with compiled_model(content, [], **arguments) as model:
        model.resize_input_tensor(0, x.shape, strict=False)
        (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
        source.write(x.view(np.uint8))  # which knows fewer types than models have
        model.run_by_index(0, [source], [target])
        return target.read(x.nbytes, np.uint8).view(x.dtype)


def in_interpreter(content: bytes, x: Any, **arguments: Any) -> Any:
    with LiteRtInterpreter(model_content=content, delegates=[], **arguments) as interpreter:
        interpreter.resize_tensor_input(0, x.shape)
        interpreter.allocate_tensors()
        return result_of(interpreter, x)


both_apis = pytest.mark.parametrize("run", [in_compiled_model, in_interpreter])


@both_apis
@pytest.mark.parametrize("x", [X, np.arange(6, dtype=np.float32)])
def test_each_node_has_its_own_options_and_shapes_follow_inputs(
    run: Callable[..., Any], x: Any
) -> None:
    assert np.array_equal(run(scaled_twice(), x, custom_ops={"Scale": scale()}), 15 * x)


@both_apis
def test_a_failure_names_the_node_as_in_delegraphs_runtime(run: Callable[..., Any]) -> None:
    def fail(x: Any, *, options: Any) -> Any:
        if options["factor"] == 5:
            raise OSError("device lost")
        return x

    op = CustomOp("Scale", fail)
    op.shape(lambda x, *, options: x.shape)
    with pytest.raises(NodeError, match=r"Node number 1 \(Scale\) failed to invoke: OSError: dev"):
        run(scaled_twice(), X, custom_ops={"Scale": op})


def test_nothing_falls_back_from_an_operator_that_fails() -> None:
    def fail(x: Any) -> Any:
        raise OSError("device lost")

    model = one_op_model("Fails", [tensor((4,))], [tensor((4,))])
    arguments = {"custom_ops": {"Fails": CustomOp("Fails", fail)}}
    with pytest.raises(NodeError, match=r"^Node number 0 \(Fails\) failed to invoke: OSError: dev"):
        in_compiled_model(model, X, failures=FailurePolicy("fallback"), **arguments)


@both_apis
def test_operators_of_the_process_are_known(run: Callable[..., Any]) -> None:
    custom_op("HostNegate")(lambda x: -x)
    try:
        found = run(one_op_model("HostNegate", [tensor((4,))], [tensor((4,))]), X)
    finally:
        unregister_custom_op("HostNegate")
    assert np.array_equal(found, -X)


@pytest.mark.parametrize("name", ["INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT16", "BOOL"])
def test_types(name: str) -> None:
    x = np.array([1, 0, 1, 1]).astype(name.lower())
    model = one_op_model("Same", [tensor((4,), name)], [tensor((4,), name)])
    op = CustomOp("Same", lambda x: x.copy())
    assert np.array_equal(in_compiled_model(model, x, custom_ops={"Same": op}), x)


def test_an_unknown_operator_is_named_with_the_remedy() -> None:
    model = one_op_model("Unknown", [tensor((4,))], [tensor((4,))])
    with pytest.raises(UnresolvedOpError, match=r"unresolved custom op: Unknown\.\n.*register_cus"):
        in_compiled_model(model, X)


def test_an_output_of_another_shape_than_declared_is_an_error() -> None:
    model = one_op_model("Cut", [tensor((4,))], [tensor((4,))])
    with pytest.raises(NodeError, match=r"cannot become \[2\] while invoking"):
        in_compiled_model(model, X, custom_ops={"Cut": CustomOp("Cut", lambda x: x[:2])})


def grown() -> CustomOp:
    op = CustomOp("Grown", lambda x: np.concatenate([x, x]))
    op.shape(lambda x: (2 * x.shape[0],))
    return op


def test_output_buffers_have_the_shape_that_the_operator_says() -> None:
    content = one_op_model("Grown", [tensor((4,))], [tensor((1,))])
    with compiled_model(content, [], custom_ops={"Grown": grown()}) as model:
        (source,), (target,) = model.create_input_buffers(0), model.create_output_buffers(0)
        source.write(X)
        model.run_by_index(0, [source], [target])
        assert target.read(8, np.float32).tolist() == [*X, *X]


def test_a_buffer_that_was_made_too_small_is_an_error() -> None:
    """LiteRT itself would let the kernel write beyond it."""
    content = one_op_model("Grown", [tensor((4,))], [tensor((1,))])
    with compiled_model(content, [], custom_ops={"Grown": grown()}) as model:
        (source,) = model.create_input_buffers(0)
        small = TensorBuffer.create_from_host_memory(np.zeros(1, np.float32))
        source.write(X)
        with pytest.raises(RuntimeError, match=r"takes 32 bytes, and its buffer was made for 4"):
            model.run_by_index(0, [source], [small])


def test_an_open_output_needs_a_shape_function() -> None:
    open_shape = tensor((4,), shape_signature=(-1,))
    model = one_op_model("Cut", [tensor((4,))], [open_shape])
    with pytest.raises((NodeError, OperatorError), match="shape function of a custom operator"):
        in_compiled_model(model, X, custom_ops={"Cut": CustomOp("Cut", lambda x: x[:2])})
