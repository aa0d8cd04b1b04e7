"""LOCAL_RESPONSE_NORMALIZATION."""

import numpy as np
import pytest

from delegraph.schema.options import LocalResponseNormalizationOptions
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import random_floats

OP = "LOCAL_RESPONSE_NORMALIZATION"


@pytest.mark.parametrize("beta", [1.0, 0.5, 0.75])
@pytest.mark.parametrize("radius", [0, 2, 20])
def test_channels_are_divided_by_their_neighbourhood(radius, beta):
    x = random_floats(1, (2, 3, 4, 11))
    options = LocalResponseNormalizationOptions(radius=radius, bias=1.0, alpha=0.3, beta=beta)
    assert_agrees(OP, [fed(x)], ["FLOAT32"], options, tolerance=1e-5)


def test_other_than_four_dimensions_are_refused():
    options = LocalResponseNormalizationOptions(radius=1, bias=1.0, alpha=0.3, beta=1.0)
    inputs = [fed(np.ones((2, 3), np.float32))]
    assert_both_refuse(OP, inputs, ["FLOAT32"], options, match="expected 4 dimensions")
