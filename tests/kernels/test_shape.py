"""SHAPE and RANK."""

import numpy as np
import pytest
from agreement import assert_agrees, fed

from delegraph.schema.enums import TensorType
from delegraph.schema.options import RankOptions, ShapeOptions


@pytest.mark.parametrize("type_", ["INT32", "INT64"])
def test_shape_returns_the_dimensions(type_):
    x = np.zeros((2, 3, 4), np.float32)
    (y,) = assert_agrees("SHAPE", [fed(x)], [type_], ShapeOptions(out_type=TensorType[type_]))
    assert y.tolist() == [2, 3, 4]


def test_rank_returns_the_number_of_dimensions():
    (y,) = assert_agrees("RANK", [fed(np.zeros((2, 3, 4), np.float32))], ["INT32"], RankOptions())
    assert y == 3
