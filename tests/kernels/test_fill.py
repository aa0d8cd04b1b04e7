"""FILL and ZEROS_LIKE."""

import numpy as np
import pytest

from delegraph.testing import constant, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

DIMS = [fed(np.int32([2, 3])), constant(np.int32([2, 3])), fed(np.int64([2, 3]))]


@pytest.mark.parametrize("dims", DIMS, ids=["fed", "constant", "int64"])
@pytest.mark.parametrize(
    "dtype", ["float32", "int64", "int32", "int16", "int8", "bool", "uint16", "uint64", "complex64"]
)
def test_fill_repeats_the_value(dtype, dims):
    value = np.array(3).astype(dtype)
    (y,) = assert_agrees("FILL", [dims, fed(value)], [dtype.upper()])
    np.testing.assert_array_equal(y, np.full((2, 3), value))


@pytest.mark.parametrize(
    ("dims", "value", "match"),
    [
        (np.int32([2]), np.float32([1]), "a vector and a scalar"),
        (np.int32(2), np.float32(1), "a vector and a scalar"),
        (np.int32([-2]), np.float32(1), "expected none below 0"),
    ],
    ids=["value", "dimensions", "negative"],
)
def test_fill_refuses(dims, value, match):
    assert_both_refuse("FILL", [fed(dims), fed(value)], ["FLOAT32"], match=match)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_zeros_like(dtype):
    (y,) = assert_agrees("ZEROS_LIKE", [fed(np.ones((2, 3), dtype))], [dtype.upper()])
    assert not y.any()


def test_fill_refuses_other_scales():
    inputs = [constant(np.int32([2])), fed(np.int8(1), scale=0.5)]
    output = [tensor((), "INT8", scale=0.25)]
    assert_both_refuse("FILL", inputs, output, match="expected the same", version=4)
