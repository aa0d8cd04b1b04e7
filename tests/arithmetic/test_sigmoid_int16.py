"""LOGISTIC and TANH on int16."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.testing import delegraph_outputs, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.quantized_pairs import every_value

INT16_SCALES = [2.0**e for e in range(-15, -7)] + [1e-5, 3e-4, 0.003, 0.1, 5.33]


@pytest.mark.parametrize("scale", INT16_SCALES)
@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_every_int16_is_exact(op, scale):
    x = every_value("INT16")
    output = [tensor(x.shape, "INT16", scale=2.0**-15)]
    assert_agrees(op, [fed(x, scale=scale)], output, version=3)


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_an_int16_output_of_another_scale_is_refused(op):
    inputs = [fed(np.int16([1]), scale=0.1)]
    output = [tensor((1,), "INT16", scale=0.01)]
    assert_both_refuse(op, inputs, output, match="expected 1/32768", version=3)


@pytest.mark.parametrize("scale", [0, 1e-45, 1e-14, 5.34, 1e6, 1e20, 3e38])
@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_an_int16_input_of_a_scale_beyond_the_arithmetic_is_refused(op, scale):
    inputs = [fed(np.int16([1]), scale=scale)]
    model, arrays = model_and_arrays(op, inputs, [tensor((1,), "INT16", scale=2.0**-15)], version=3)
    with pytest.raises(NodeError, match=r"expected one from 4e-14 to 5\.3"):
        delegraph_outputs(model, arrays)
