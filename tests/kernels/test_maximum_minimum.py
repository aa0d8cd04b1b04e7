"""MAXIMUM and MINIMUM."""

import numpy as np
import pytest
from agreement import assert_agrees, assert_both_refuse, fed
from quantized_pairs import random_floats

TYPES = ["float32", "float16", "int64", "int32", "int16", "int8", "uint8"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("op", "function"), [("MAXIMUM", np.maximum), ("MINIMUM", np.minimum)])
def test_operands_broadcast(op, function, dtype):
    a = np.abs(random_floats(1, (3, 1, 5))).astype(dtype)
    b = np.abs(random_floats(2, (4, 5))).astype(dtype)
    (y,) = assert_agrees(op, [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, function(a, b))


def test_bools_are_refused():
    x = np.array([True])
    assert_both_refuse("MAXIMUM", [fed(x), fed(x)], ["BOOL"], match="has type BOOL")
