"""ONE_HOT."""

import tracemalloc

import numpy as np
import pytest

from delegraph import Interpreter, Limits
from delegraph.errors import NodeError
from delegraph.schema.options import OneHotOptions
from delegraph.testing import constant, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize(("dtype", "on", "off"), [("f4", 2.5, -1), ("i1", 3, 0), ("?", 1, 0)])
def test_the_on_value_marks_the_index(dtype, on, off, axis, given):
    indices = np.array([[0, 2], [5, -1]], np.int32)
    values = [constant(np.array(value, dtype)) for value in (on, off)]
    inputs = [fed(indices), given(np.array(3, np.int32)), *values]
    (y,) = assert_agrees("ONE_HOT", inputs, [values[0].type.name], OneHotOptions(axis=axis))
    slow = np.full((2, 2, 3), off, dtype)
    slow[0, 0, 0] = slow[0, 1, 2] = on
    np.testing.assert_array_equal(y, np.moveaxis(slow, -1, axis))


def test_a_depth_beyond_the_limit_is_refused_before_memory_is_taken():
    values = [constant(np.array(value, np.float32)) for value in (1, 0)]
    inputs = [tensor((1,), "INT32"), constant(np.array(10**7, np.int32)), *values]
    model = one_op_model("ONE_HOT", inputs, [tensor((), "FLOAT32")], OneHotOptions(axis=-1))
    interpreter = Interpreter(model_content=model, limits=Limits(memory=1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(NodeError, match="needs 40000000 bytes, more than the limit of 1048576"):
            interpreter.allocate_tensors()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [0, 2])
def test_a_depth_is_one_element(count):
    values = [constant(np.array(value, np.float32)) for value in (1, 0)]
    inputs = [fed(np.zeros(2, np.int32)), constant(np.ones(count, np.int32)), *values]
    assert_both_refuse("ONE_HOT", inputs, ["FLOAT32"], OneHotOptions(), match="one element")
