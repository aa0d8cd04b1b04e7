"""What kernels check of a node: through operators that do so."""

import numpy as np
import pytest

from delegraph.errors import OperatorError
from delegraph.operators.checks import require_rank, require_shape
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType
from delegraph.testing import tensor
from delegraph.testing.operator_case import fed
from support.agreement import assert_both_refuse


def test_number_of_inputs():
    inputs = [fed(np.float32([1])), fed(np.float32([2]))]
    assert_both_refuse("ABS", inputs, ["FLOAT32"], match="2 inputs and 1 outputs, expected 1 and 1")


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
