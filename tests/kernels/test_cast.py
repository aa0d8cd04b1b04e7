"""CAST."""

import numpy as np
import pytest

from delegraph.schema.enums import TensorType
from delegraph.schema.options import CastOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import random_integers

INTEGERS = ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64"]
FLOATS = ["FLOAT32", "FLOAT16", "FLOAT64", "COMPLEX64"]
REALS = [0, 1.5, -1.5, 2.5, 300, -300, 4e4, -4e4, 3e9, -3e9, 1e19, -1e19, 255.9, -128.9]
SPECIAL = [np.nan, np.inf, -np.inf]


def values_of(type):
    if type == "BOOL":
        return np.array([True, False])
    if type in INTEGERS:
        return random_integers(1, type, (50,))
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(REALS + SPECIAL).astype(type.lower())
    return values


@pytest.mark.parametrize("result", ["BOOL", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("type", ["BOOL", *INTEGERS, *FLOATS])
def test_values(type, result):
    options = CastOptions(in_data_type=TensorType[type], out_data_type=TensorType[result])
    assert_agrees("CAST", [fed(values_of(type))], [result], options, version=5)


def test_floats_saturate_and_nan_is_the_largest():
    x = np.float32([1e10, -1e10, np.nan])
    (y,) = assert_agrees("CAST", [fed(x)], ["INT32"], version=5)
    assert y.tolist() == [2**31 - 1, -(2**31), 2**31 - 1]


@pytest.mark.parametrize(("type", "largest"), [("INT2", 1), ("INT4", 7), ("UINT4", 15)])
def test_nan_is_the_largest_packed_integer_too(type, largest):
    x = np.float32([np.nan, 1, np.inf, -np.inf, 1e30, np.nan])
    (y,) = assert_agrees("CAST", [fed(x)], [type], version=6)
    assert y[[0, 5]].tolist() == [largest] * 2


@pytest.mark.parametrize("integer", INTEGERS)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_the_largest_float_that_fits_is_kept_and_the_next_one_saturates(real, integer):
    limit = np.iinfo(integer.lower()).max
    fits = real(limit)
    if int(fits) > limit:
        fits = np.nextafter(fits, real(0))
    x = np.array([fits, np.nextafter(fits, real(np.inf))])
    (y,) = assert_agrees("CAST", [fed(x)], [integer], version=5)
    assert y.tolist() == [int(fits), limit]


@pytest.mark.parametrize(("type", "low", "high"), [("INT4", -8, 7), ("UINT4", 0, 15)])
def test_packed_constants_become_floats(type, low, high):
    x = np.arange(low, high + 1)[:15].reshape(3, 5).astype(np.int8)
    (y,) = assert_agrees("CAST", [constant(x, type)], ["FLOAT32"], version=6)
    np.testing.assert_array_equal(y, x)


def test_packed_integers_only_meet_float32():
    x = constant(np.int8([1, 2]), "INT4")
    assert_both_refuse("CAST", [x], ["INT32"], match="CAST from INT4 to INT32", version=6)
