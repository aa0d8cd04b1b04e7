"""Broadcast shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.arithmetic.broadcast import broadcast_shape
from delegraph.errors import OperatorError

shapes = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=5).map(tuple)


@given(shapes, shapes)
def test_the_shape_is_numpys(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(OperatorError):
            broadcast_shape(a, b)
    else:
        assert broadcast_shape(a, b) == expected


def test_a_mismatch_names_both_shapes():
    with pytest.raises(OperatorError, match=r"\(2, 3\) and \(4,\) do not broadcast"):
        broadcast_shape((2, 3), (4,))
