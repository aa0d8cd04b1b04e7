"""BUCKETIZE, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.options import BucketizeOptions
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse


def buckets(*boundaries):
    return BucketizeOptions(boundaries=np.array(boundaries, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_boundaries_belong_to_the_bucket_above(dtype):
    x = np.array([[-3, 0, 1, 2], [3, 99, 100, 101]], dtype)
    (y,) = assert_agrees("BUCKETIZE", [fed(x)], ["INT32"], buckets(0, 2, 2, 100))
    assert y.tolist() == [[0, 1, 1, 3], [3, 3, 4, 4]]


def test_integers_are_rounded_as_floats_are():
    x = np.array([(1 << 24) + 1, (1 << 24) + 3, (1 << 40) + 1], np.int64)
    assert_agrees("BUCKETIZE", [fed(x)], ["INT32"], buckets((1 << 24) + 2, 1 << 40))


def test_what_is_no_number_is_beyond_all_boundaries():
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert_agrees("BUCKETIZE", [fed(x)], ["INT32"], buckets(0, 1))


def test_no_boundaries_make_one_bucket():
    x = np.array([1.5, -2], np.float32)
    assert_agrees("BUCKETIZE", [fed(x)], ["INT32"], buckets())


def test_unsorted_boundaries_are_refused():
    x = fed(np.zeros(3, np.float32))
    assert_both_refuse("BUCKETIZE", [x], ["INT32"], buckets(1, 0), match="expected them sorted")


def test_bytes_are_refused():
    x = fed(np.zeros(3, np.int8))
    assert_both_refuse("BUCKETIZE", [x], ["INT32"], buckets(1), match="type INT8")
