"""What tensors and working memory may take together, and which shapes there can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Limits, Registration
from delegraph.errors import NodeError, OperatorError, ResizeError
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.operators.tensor import Tensor
from delegraph.runtime.subgraph_memory import SubgraphMemory, checked_shape
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, graph_model, tensor

LIMIT = MemoryLimit(96, is_default=False)


def made(kind: str = "FLOAT32", shape: tuple[int, ...] = (1,)) -> Tensor:
    return Tensor(0, TensorType[kind], shape)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("FLOAT32", (2, 12)), ("INT8", (96,)), ("INT4", (191,)), ("STRING", (12,)), ("INT8", ())],
)
def test_a_shape_may_take_as_much_as_the_limit(kind: str, shape: tuple[int, ...]) -> None:
    assert checked_shape(made(kind), np.array(shape, np.int32), LIMIT) == shape


@pytest.mark.parametrize(
    ("kind", "shape", "size"),
    [("FLOAT32", (5, 5), 100), ("INT8", (97,), 97), ("INT4", (193,), 97), ("STRING", (13,), 104)],
)
def test_a_shape_that_takes_more_is_refused_with_its_bytes(
    kind: str, shape: tuple[int, ...], size: int
) -> None:
    with pytest.raises(OperatorError, match=rf"needs {size} bytes, more than the limit of 96 byt"):
        checked_shape(made(kind), shape, LIMIT)


@pytest.mark.parametrize("shape", [(-1,), (2, -1), (0, 1 << 31), (1 << 40,), (0, 1 << 30, 1 << 30)])
def test_a_shape_that_no_array_has_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(OperatorError, match="cannot have shape"):
        checked_shape(made(), shape, LIMIT)


def test_a_shape_without_elements_may_have_large_dimensions() -> None:
    assert checked_shape(made(), (0, (1 << 31) - 1, 4), LIMIT) == (0, (1 << 31) - 1, 4)


def test_shapes_known_only_while_invoking_are_limited_one_by_one() -> None:
    memory = SubgraphMemory(preserve_all_tensors=False, limit=LIMIT)
    assert memory.arena_bytes == (0, 0)
    for kind, shape, array in [("FLOAT32", (24,), (24,)), ("INT4", (5,), (3,))]:
        dynamic = made(kind, shape)
        memory.allocate_dynamic(dynamic)
        assert dynamic.data.shape == array
    with pytest.raises(OperatorError, match="100 bytes of tensors exceed the limit of 96 bytes"):
        memory.allocate_dynamic(made("FLOAT32", (25,)))


def interpreter_that_works_with(
    scratch: int, limit: int, used: list[np.ndarray] | None = None
) -> Interpreter:
    """Two nodes that copy 64 bytes, each with *scratch* bytes of working memory, kept in *used*."""

    def prepare(context: Any, node: Any) -> Any:
        work = context.scratch((scratch,), np.uint8)
        x, y = (context.tensors[i] for i in (*node.inputs, *node.outputs))

        def step() -> None:
            work.data[:] = 1
            if used is not None:
                used.append(work.data)
            np.copyto(y.data, x.data)

        return step

    sizes = dict.fromkeys("xty", tensor((16,)))
    nodes = [("Copy", "x", "t"), ("Copy", "t", "y")]
    model = graph_model(nodes, inputs="x", outputs="y", tensors=sizes)
    return Interpreter(
        model_content=model,
        custom_ops={"Copy": Registration("Copy", prepare)},
        limits=Limits(memory=limit),
    )


def test_nodes_share_working_memory_which_counts_and_is_there_when_they_run() -> None:
    with pytest.raises(NodeError, match=r"bytes of tensors exceed the limit of 5000 bytes"):
        interpreter_that_works_with(4900, 5000).allocate_tensors()
    used: list[np.ndarray] = []
    fitting = interpreter_that_works_with(4000, 5000, used)
    fitting.allocate_tensors()
    fitting.set_tensor(0, np.full(16, 7, np.float32))
    fitting.invoke()
    assert fitting.get_tensor(2).tolist() == [7.0] * 16
    assert np.shares_memory(*used)


def test_a_constant_is_not_resized() -> None:
    tensors = {"c": constant(np.ones(4, np.float32))}
    model = graph_model(
        [("ADD", "x c", "y", AddOptions())], inputs="x", outputs="y", tensors=tensors
    )
    interpreter = Interpreter(model_content=model)
    interpreter.resize_tensor_input(1, [4])  # which it has
    with pytest.raises(ResizeError, match="resize a fixed-size tensor"):
        interpreter.resize_tensor_input(1, [5])


def test_tensors_of_one_place_type_and_shape_have_one_array() -> None:
    nodes = [("ADD", pair, result, AddOptions()) for pair, result in (("x c", "s"), ("s c", "t"))]
    nodes.append(("ADD", "t c", "y", AddOptions()))
    tensors = dict.fromkeys("xsty", tensor((4,))) | {"c": constant(np.float32([1, 2, 3, 4]))}
    model = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    by_name = {tensor.name: tensor for tensor in interpreter.subgraph().tensors}
    assert by_name["s"].data is by_name["t"].data  # the second ADD works in place
    interpreter.set_tensor(by_name["x"].index, np.ones(4, np.float32))
    interpreter.invoke()
    assert by_name["y"].data.tolist() == [4.0, 7.0, 10.0, 13.0]
