"""ARG_MAX and ARG_MIN."""

import numpy as np
import pytest

from delegraph.schema.enums import TensorType
from delegraph.schema.options import ArgMaxOptions, ArgMinOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

OPTIONS = {"ARG_MAX": ArgMaxOptions, "ARG_MIN": ArgMinOptions}
X = np.random.default_rng(1).integers(0, 5, (3, 4, 21))


@pytest.mark.parametrize("result", ["INT32", "INT64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8", "int32", "bool"])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_the_first_of_equal_elements_wins(op, dtype, axis, result):
    inputs = [fed(X.astype(dtype)), constant(np.int32(axis))]
    assert_agrees(op, inputs, [result], OPTIONS[op](output_type=TensorType[result]))


def test_the_axis_may_come_while_invoking():
    options = ArgMaxOptions(output_type=TensorType.INT32)
    inputs = [fed(X.astype(np.float32)), fed(np.int64([1]))]
    (y,) = assert_agrees("ARG_MAX", inputs, ["INT32"], options)
    assert y.shape == (3, 21)


@pytest.mark.parametrize(
    ("x", "axis", "match"),
    [
        (np.ones((2, 3), np.float32), np.int32(2), "axis 2 is outside"),
        (np.ones((2, 3), np.float32), np.int32([0, 1]), "one element in the second"),
        (np.ones((2, 3), np.int64), np.int32(0), "has type INT64"),
    ],
    ids=["outside", "two axes", "int64"],
)
def test_bad_nodes_are_refused(x, axis, match):
    options = ArgMaxOptions(output_type=TensorType.INT32)
    assert_both_refuse("ARG_MAX", [fed(x), constant(axis)], ["INT32"], options, match=match)


@pytest.mark.parametrize("shape", [(2048, 21), (50, 99, 2), (9001, 32), (3000, 33)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8", "int32"])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_many_short_rows(op, dtype, shape):
    x = np.random.default_rng(2).integers(0, 100, shape).astype(dtype)
    inputs = [fed(x), constant(np.int32(-1))]
    assert_agrees(op, inputs, ["INT32"], OPTIONS[op](output_type=TensorType.INT32))


ONE_NAN = [[1, np.nan, 2], [np.nan, -5, -5], [3, 2, np.nan], [np.nan, -np.inf, -np.inf]]


@pytest.mark.parametrize("copies", [1, 700])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_nan_never_wins(op, copies):
    inputs = [fed(np.float32(ONE_NAN * copies)), constant(np.int32(-1))]
    assert_agrees(op, inputs, ["INT32"], OPTIONS[op](output_type=TensorType.INT32))


@pytest.mark.parametrize("shape", [(3,), (2, 40), (3000, 4)], ids=str)
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_rows_of_nothing_but_nan_give_0(op, shape):
    x = np.full(shape, np.nan, np.float32)
    inputs = [fed(x), constant(np.int32(-1))]
    (y,) = assert_agrees(op, inputs, ["INT32"], OPTIONS[op](output_type=TensorType.INT32))
    assert not y.any()
