"""What kernels check of a node: through operators that do so."""

from types import SimpleNamespace

import numpy as np
import pytest

from delegraph import Interpreter, TensorType
from delegraph.errors import NodeError, OperatorError
from delegraph.operators.checks import require_rank, require_shape, tensors_of
from delegraph.operators.registration import Node
from delegraph.operators.tensor import Tensor
from delegraph.schema.options import ArgMaxOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from delegraph.testing.operator_cases.quantizing import sparse_rows
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays


def test_number_of_inputs():
    inputs = [fed(np.float32([1])), fed(np.float32([2]))]
    assert_both_refuse("ABS", inputs, ["FLOAT32"], match="2 inputs and 1 outputs, expected 1 and 1")


@pytest.mark.parametrize(
    ("inputs", "outputs", "problem"),
    [((-1,), (1,), "input 0 is required and absent"), ((0,), (-1,), "output 0 is required")],
)
def test_operands_are_all_present(inputs, outputs, problem):
    context = SimpleNamespace(tensors=["x", "y"])
    assert tensors_of(context, Node(0, (0,), (1,)), 1) == ["x", "y"]
    with pytest.raises(OperatorError, match=problem):
        tensors_of(context, Node(0, inputs, outputs), 1)


def test_same_type():
    inputs = [fed(np.float32([1])), fed(np.int32([1]))]
    assert_both_refuse("MAXIMUM", inputs, ["FLOAT32"], match="types FLOAT32 and INT32")


def test_type():
    assert_both_refuse("FLOOR", [fed(np.int32([1]))], ["INT32"], match="has type INT32, expected")


def test_scale():
    output = [tensor((1,), "INT8", scale=0.1)]
    assert_both_refuse("LOG", [fed(np.int8([1]))], output, match="scale", version=2)


@pytest.fixture
def matrix():
    return Tensor(0, TensorType.FLOAT32, (2, 3), name="m")


def test_shape(matrix):
    require_shape(matrix, (2, 3))
    with pytest.raises(OperatorError, match=r"'m' has shape \[2, 3\], expected \[3, 2\]"):
        require_shape(matrix, (3, 2))


def test_rank(matrix):
    require_rank(matrix, 2)
    with pytest.raises(OperatorError, match=r"'m' has shape \[2, 3\], expected 4 dimensions"):
        require_rank(matrix, 4)


def test_numbers_that_stand_for_no_type() -> None:
    x, axis = fed(np.zeros((2, 3), np.float32)), fed(np.array(1, np.int32))
    options = ArgMaxOptions(output_type=-8)
    with pytest.raises(NodeError, match="option output_type is -8, expected the number of"):
        assert_agrees("ARG_MAX", [x, axis], ["INT32"], options)


def test_a_fully_connected_layer_needs_no_options() -> None:
    x, weight = np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_agrees("FULLY_CONNECTED", [fed(x), constant(weight), None], ["FLOAT32"])


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D"])
def test_windows_without_options_have_no_stride(op: str) -> None:
    x = fed(np.ones((1, 4, 4, 1), np.float32))
    weight, bias = constant(np.ones((1, 2, 2, 1), np.float32)), constant(np.ones(1, np.float32))
    inputs = [x] if op == "MAX_POOL_2D" else [x, weight, bias]
    model, arrays = model_and_arrays(op, inputs, ["FLOAT32"])
    with pytest.raises(NodeError, match=r"stride|filter"):
        delegraph_outputs(model, arrays)


@pytest.mark.parametrize("op", ["NEG", "STABLEHLO_LOGISTIC", "READ_VARIABLE"])
def test_a_sparse_constant_is_refused_where_a_dense_one_is_read(op):
    x = sparse_rows("FLOAT32", np.eye(4, dtype=bool), np.ones(4, np.float32))
    model = one_op_model(op, [x], [tensor((4, 4))])
    with pytest.raises(NodeError, match=r"input 0, .*, is a sparse constant, expected a dense one"):
        Interpreter(model_content=model).allocate_tensors()
