"""Sign and Atan2, which the official Python package does not register, against definitions."""

import math

import numpy as np
import pytest
from one_op import delegraph_outputs, one_op_model, tensor
from stablehlo import tensor_like


def result(op, *arrays):
    inputs = [tensor_like(array) for array in arrays]
    model = one_op_model(op, inputs, [tensor((), inputs[0].type.name)])
    return delegraph_outputs(model, arrays)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sign_of_what_is_no_number_is_zero(dtype):
    x = np.array([3, -0.5, 0, -0.0, np.inf, -np.inf, np.nan], dtype)
    assert result("Sign", x).tolist() == [1, -1, 0, 0, 1, -1, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_are_those_of_the_c_library(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 5)).astype(dtype)
    expected = [math.atan2(y, x) for y, x in zip(a.flat, b.flat, strict=True)]
    np.testing.assert_allclose(result("Atan2", a, b).reshape(-1), expected, rtol=1e-6)


def test_angles_of_other_shapes_are_refused():
    with pytest.raises(RuntimeError, match=r"shape \[1\], expected \[2\]"):
        result("Atan2", np.zeros(2, np.float32), np.zeros(1, np.float32))
