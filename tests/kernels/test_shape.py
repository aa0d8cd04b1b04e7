"""SHAPE and RANK."""

import numpy as np
import pytest

from delegraph import Interpreter, TensorType
from delegraph.schema.options import ConcatenationOptions, ShapeOptions
from delegraph.testing import constant, fed, tensor
from delegraph.testing.subgraphs import Graph, Op, model_of
from support.agreement import assert_agrees

ONE = np.array([1], np.int32)


@pytest.mark.parametrize("type_", ["INT32", "INT64"])
def test_shape_returns_the_dimensions(type_):
    x = np.zeros((2, 3, 4), np.float32)
    (y,) = assert_agrees("SHAPE", [fed(x)], [type_], ShapeOptions(out_type=TensorType[type_]))
    assert y.tolist() == [2, 3, 4]


def test_rank_returns_the_number_of_dimensions():
    (y,) = assert_agrees("RANK", [fed(np.zeros((2, 3, 4), np.float32))], ["INT32"])
    assert y == 3


def test_shape_of_a_tensor_whose_shape_comes_with_the_invoke():
    x, pads, y = tensor((3,)), tensor((1, 2), "INT32"), tensor((3,))
    size, wanted, z = tensor((1,), "INT32"), tensor((2,), "INT32"), tensor((1, 1))
    model = model_of(
        Graph(
            [x, pads],
            [size, z],
            [
                Op("PAD", [x, pads], [y]),
                Op("SHAPE", [y], [size], ShapeOptions(out_type=TensorType.INT32)),
                Op("CONCATENATION", [constant(ONE), size], [wanted], ConcatenationOptions(axis=0)),
                Op("RESHAPE", [y, wanted], [z]),
            ],
        )
    )
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for count in (1, 2, 1):
        interpreter.set_tensor(0, np.ones(3, np.float32))
        interpreter.set_tensor(1, np.array([[0, count]], np.int32))
        interpreter.invoke()
        sizes, rows = (interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details())
        assert sizes.tolist() == [3 + count]
        assert rows.tolist() == [[1] * 3 + [0] * count]
