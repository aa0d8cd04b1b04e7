"""Graph inputs that have a value in the file: what is set replaces it, as in LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import Interpreter
from delegraph.errors import ArgumentError, NodeError
from delegraph.schema.options import AddOptions, FullyConnectedOptions, TransposeOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import ByName

X = np.arange(6, dtype=np.float32).reshape(2, 3)
C = np.float32([[1, 2, 3], [4, 5, 6]])
W = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])

ADD = graph_model(
    [("ADD", "x c", "y", AddOptions())],
    inputs="x c",
    outputs="y",
    tensors={"x": tensor((2, 3)), "c": constant(C), "y": tensor((2, 3))},
)
LAYER = graph_model(
    [("FULLY_CONNECTED", "x w", "y", FullyConnectedOptions())],
    inputs="x w",
    outputs="y",
    tensors={"x": tensor((2, 3)), "w": constant(W), "y": tensor((2, 4))},
)
FOLDED = graph_model(
    [("ADD", "b c", "s", AddOptions()), ("ADD", "x s", "y", AddOptions())],
    inputs="x c",
    outputs="y",
    tensors={"x": tensor((2, 3)), "b": constant(C), "c": constant(C), "s": tensor((2, 3)),
             "y": tensor((2, 3))},
)  # fmt: skip
TURNED = graph_model(
    [("TRANSPOSE", "x p", "y", TransposeOptions())],
    inputs="x p",
    outputs="y",
    tensors={"x": tensor((2, 3)), "p": constant(np.int32([1, 0])), "y": tensor((3, 2))},
)


def official(model: bytes) -> Any:
    from ai_edge_litert import interpreter as litert

    kernels = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    content = bytes(bytearray(model))  # of its own: values are set in place
    return litert.Interpreter(model_content=content, experimental_op_resolver_type=kernels)


def answers(interpreter: Any, value: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the output with the file's value, with another and with the file's again."""
    interpreter.allocate_tensors()
    x, other = (detail["index"] for detail in interpreter.get_input_details())
    (output,) = (detail["index"] for detail in interpreter.get_output_details())
    first = interpreter.get_tensor(other)
    interpreter.set_tensor(x, X)
    found = []
    for given in (None, value, first):
        if given is not None:
            interpreter.set_tensor(other, given)
            np.testing.assert_array_equal(interpreter.get_tensor(other), given)
        interpreter.invoke()
        found.append(interpreter.get_tensor(output))
    return found


@pytest.mark.parametrize("delegates", [[], [ByName("ADD")]], ids=["core", "own"])
@pytest.mark.parametrize(("model", "value"), [(ADD, C + 1), (LAYER, W * 2)], ids=["ADD", "FC"])
def test_another_value_counts_as_in_litert(
    model: bytes, value: NDArray[Any], delegates: list[Any]
) -> None:
    wanted = answers(official(model), value)
    found = answers(Interpreter(model_content=model, delegates=delegates), value)
    np.testing.assert_array_equal(found, wanted)


def test_what_nodes_have_folded_follows() -> None:
    found = answers(Interpreter(model_content=FOLDED, delegates=[]), C * 10)
    np.testing.assert_array_equal(found, [X + C + C, X + C + C * 10, X + C + C])


def test_shapes_follow() -> None:
    found = answers(Interpreter(model_content=TURNED, delegates=[]), np.int32([0, 1]))
    assert [y.tolist() for y in found] == [X.T.tolist(), X.tolist(), X.T.tolist()]


def test_a_value_that_a_node_refuses_changes_nothing() -> None:
    interpreter = Interpreter(model_content=TURNED, delegates=[])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    with pytest.raises(NodeError, match="TRANSPOSE"):
        interpreter.set_tensor(1, np.int32([7, 9]))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), X.T)


def test_the_others_keep_what_was_set_and_the_file_its_value() -> None:
    interpreter = Interpreter(model_content=ADD, delegates=[])
    interpreter.set_tensor(1, C * 3)  # before anything is allocated: the file gives it memory
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.set_tensor(1, C * 2)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), X + C * 2)
    other = Interpreter(model_content=ADD, delegates=[])
    np.testing.assert_array_equal(other.get_tensor(1), C)


def test_shape_and_type_stay() -> None:
    interpreter = Interpreter(model_content=ADD, delegates=[])
    interpreter.allocate_tensors()
    with pytest.raises(ArgumentError, match="Dimension mismatch"):
        interpreter.set_tensor(1, C[:1])
    with pytest.raises(ArgumentError, match="FLOAT64"):
        interpreter.set_tensor(1, C.astype(np.float64))
    np.testing.assert_array_equal(interpreter.get_tensor(1), C)
