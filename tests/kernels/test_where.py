"""WHERE."""

import numpy as np
import pytest

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

X = np.array([[[0, 1], [2, 0]], [[0, 0], [0, 3]]])


@pytest.mark.parametrize("dtype", ["bool", "float32", "int8", "int32", "int64", "uint8", "uint32"])
def test_indices_of_what_is_not_zero(dtype):
    (y,) = assert_agrees("WHERE", [fed(X.astype(dtype))], ["INT64"])
    np.testing.assert_array_equal(y, np.argwhere(X))


def test_a_constants_indices_have_a_known_shape():
    (y,) = assert_agrees("WHERE", [constant(X.astype(bool))], ["INT64"])
    assert y.shape == (3, 3)


def test_scalars_are_refused():
    assert_both_refuse("WHERE", [fed(np.array(True))], ["INT64"], match="a scalar")


def test_other_types_are_refused():
    assert_both_refuse("WHERE", [fed(np.int16([1]))], ["INT64"], match="has type INT16")
