"""RANGE."""

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.testing import constant, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse

CASES = [(0, 10, 3), (10, 0, -3), (-3, 7, 2), (1, 2, 1)]


@pytest.mark.parametrize("make", [fed, constant], ids=["fed", "constant"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_steps_stop_before_the_limit(dtype, case, make):
    inputs = [make(np.array(value, dtype)) for value in case]
    (y,) = assert_agrees("RANGE", inputs, [dtype.upper()])
    np.testing.assert_array_equal(y, np.arange(*case))


def test_fractions_of_one():
    inputs = [fed(np.float32(value)) for value in (0, 1, 0.1)]
    assert_agrees("RANGE", inputs, ["FLOAT32"], tolerance=1e-6)


@pytest.mark.parametrize("case", [(0, 10, -1), (0, 10, 0), (10, 0, 1)], ids=str)
def test_what_never_ends_is_refused(case):
    inputs = [fed(np.int32(value)) for value in case]
    assert_both_refuse("RANGE", inputs, ["INT32"], match="never ends")


def test_float_steps_are_counted_in_float32():
    inputs = [constant(np.float32(x)) for x in (0, 1, 0.1)]
    (y,) = assert_agrees("RANGE", inputs, ["FLOAT32"])
    assert y.shape == (10,)


@pytest.mark.parametrize("case", [(np.nan, 1, 1), (0, np.nan, -1), (0, 1, np.nan)], ids=str)
def test_nan_is_refused(case):
    inputs = [constant(np.float32(x)) for x in case]
    assert_both_refuse("RANGE", inputs, ["FLOAT32"], match="never ends")


@pytest.mark.parametrize("limit", [np.inf, -np.inf])
def test_what_has_no_end_is_refused(limit):
    model = one_op_model("RANGE", [tensor((), "FLOAT32") for _ in range(3)], [tensor((1,))])
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    for index, value in enumerate((0, limit, np.sign(limit))):
        interpreter.set_tensor(index, np.float32(value))
    with pytest.raises(NodeError, match="has no end"):
        interpreter.invoke()
