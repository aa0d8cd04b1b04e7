"""LOGISTIC and TANH on int16."""

import numpy as np
import pytest

from delegraph.testing import tensor
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import every_value

INT16_SCALES = [2.0**e for e in range(-15, -7)] + [1e-5, 3e-4, 0.003, 0.1]


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
