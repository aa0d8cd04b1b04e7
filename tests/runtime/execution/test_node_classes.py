"""Nodes of one class are prepared once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Node, Registration
from delegraph.errors import OperatorError
from delegraph.operators.registration import Eval, TensorEval
from delegraph.operators.tensor import Tensor
from delegraph.runtime.execution.node_classes import NodeClasses
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions
from delegraph.testing import constant, graph_model, tensor

FLOAT = TensorType.FLOAT32


def copying(x: Tensor, y: Tensor) -> Eval:
    return lambda: np.copyto(y.data, x.data)


class Kernel:
    """A kernel of COPY that counts its preparations."""

    def __init__(self) -> None:
        self.prepared: list[int] = []
        self.registration = Registration("COPY", lambda *_: self.fail())

    def fail(self) -> Eval:
        raise OperatorError("asked in another way")

    def prepare(self, tensors: list[Tensor], node: Node) -> Eval:
        self.prepared.append(node.index)
        x, y = tensors[node.inputs[0]], tensors[node.outputs[0]]
        y.shape = x.shape
        return TensorEval(lambda x, y: copying(x, y), copying(x, y))


def prepared_of(tensors: list[Tensor], nodes: list[Node]) -> list[int]:
    """Return the nodes that are prepared, all evaluations having been run."""
    kernel, classes = Kernel(), NodeClasses(tensors)
    for node in nodes:
        run = classes.prepared(
            node, kernel.registration, lambda node, _: kernel.prepare(tensors, node)
        )
        for each in tensors:
            each.data = np.full(each.shape, each.index, np.float32)
        run()
        x, y = tensors[node.inputs[0]], tensors[node.outputs[0]]
        np.testing.assert_array_equal(y.data, x.data, strict=True)
    return kernel.prepared


def chain(*shapes: tuple[int, ...], **changes: Any) -> tuple[list[Tensor], list[Node]]:
    tensors = [Tensor(i, FLOAT, shape) for i, shape in enumerate(shapes)]
    return tensors, [Node(i, (i,), (i + 1,), **changes) for i in range(len(shapes) - 1)]


def test_the_third_node_of_a_class_is_not_prepared() -> None:
    assert prepared_of(*chain(*[(2, 3)] * 6)) == [0, 1]


def test_nodes_that_resize_their_output_are_prepared_each() -> None:
    assert prepared_of(*chain((2, 3), *[(1,)] * 4)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, nodes: setattr(tensors[4], "shape", (3, 2)),
        lambda tensors, nodes: setattr(tensors[4], "delegate", "another"),
        lambda tensors, nodes: setattr(nodes[3], "version", 2),
        lambda tensors, nodes: setattr(nodes[3], "custom_options", b"x"),
        lambda tensors, nodes: setattr(nodes[3], "options", AddOptions(pot_scale_int16=False)),
    ],
    ids=["shape", "delegate", "version", "custom options", "options"],
)
def test_a_node_of_another_class_is_prepared(change: Any) -> None:
    tensors, nodes = chain(*[(2, 3)] * 6)
    change(tensors, nodes)
    assert 3 in prepared_of(tensors, nodes)


def test_a_class_ends_with_the_preparation_of_all_nodes() -> None:
    """After a resize, nothing of the old shapes is left."""
    names = " ".join(f"t{i}" for i in range(5))
    model = graph_model(
        [("ADD", f"t{i} c", f"t{i + 1}") for i in range(4)],
        inputs="t0",
        outputs="t4",
        tensors={**{n: tensor((1, 2)) for n in names.split()}, "c": constant(np.ones((1, 1), "f"))},
    )
    interpreter = Interpreter(model_content=model, delegates=[])
    for rows in (1, 3, 2):
        interpreter.resize_tensor_input(0, (rows, 2))
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.full((rows, 2), rows, np.float32))
        interpreter.invoke()
        (output,) = interpreter.get_output_details()
        np.testing.assert_array_equal(
            interpreter.get_tensor(output["index"]), np.full((rows, 2), rows + 4, np.float32)
        )


@pytest.mark.parametrize(("declared", "lengths"), [(4, (4, 1, 4)), (1, (1, 5, 2))])
def test_nodes_after_a_dynamic_shape_are_prepared_for_each_shape(
    declared: int, lengths: tuple[int, ...]
) -> None:
    names = [f"y{i}" for i in range(4)]
    model = graph_model(
        [("FILL", "dims v", "d"), *((("MUL", "d k", name)) for name in names)],
        inputs="dims",
        outputs=" ".join(names),
        tensors={
            "dims": tensor((1,), "INT32"),
            "v": constant(np.float32(3)),
            "k": constant(np.float32([2])),
            "d": tensor((declared,)),
            **{name: tensor((declared,)) for name in names},
        },
    )
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    for length in lengths:
        interpreter.set_tensor(0, np.int32([length]))
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            assert interpreter.get_tensor(detail["index"]).tolist() == [6.0] * length
