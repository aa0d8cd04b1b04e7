"""CUMSUM."""

import numpy as np
import pytest

from delegraph.schema.options import CumsumOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

X = np.arange(60).reshape(3, 4, 5) - 20


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_sums_run_along_the_axis(dtype, axis, exclusive, reverse):
    options = CumsumOptions(exclusive=exclusive, reverse=reverse)
    inputs = [fed(X.astype(dtype)), constant(np.int32(axis))]
    assert_agrees("CUMSUM", inputs, [dtype.upper()], options)


def test_an_axis_outside_is_refused():
    inputs = [fed(X), constant(np.int32(3))]
    assert_both_refuse("CUMSUM", inputs, ["INT64"], CumsumOptions(), match="axis 3 is outside")
