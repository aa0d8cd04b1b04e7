"""UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN."""

import functools

import numpy as np
import pytest

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

JOINS = {"SUM": np.add, "PROD": np.multiply, "MAX": np.maximum, "MIN": np.minimum}


def inputs_of(x, ids, count, given):
    return [fed(x), *(given(np.array(v, np.int32)) for v in (ids, count))]


@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize(
    ("ids", "count", "shape"),
    [([0, 2, 0], 3, (3, 2)), ([1, -1, 1], 2, (3, 2)), ([[0, 1], [1, 3]], 4, (2, 2, 3))],
)
def test_parts_of_one_segment_are_joined(ids, count, shape, join, dtype, given):
    x = fed((np.random.default_rng(0).standard_normal(shape) * 5).astype(dtype))
    inputs = inputs_of(x.array, ids, count, given)
    kind = x.definition.type.name
    (y,) = assert_agrees(f"UNSORTED_SEGMENT_{join}", inputs, [kind], tolerance=1e-6)
    for segment in range(count):
        parts = x.array[np.array(ids) == segment]
        if len(parts):
            np.testing.assert_allclose(y[segment], functools.reduce(JOINS[join], parts), rtol=1e-6)


@pytest.mark.parametrize("join", JOINS)
def test_parts_that_are_no_numbers(join):
    x = np.float32([np.nan, 1, -1, np.nan, np.nan, 2])
    ids, count = (constant(np.int32(v)) for v in ([0, 0, 1, 1, 2, 3], 4))
    assert_agrees(f"UNSORTED_SEGMENT_{join}", [fed(x), ids, count], ["FLOAT32"])


@pytest.mark.parametrize(("ids", "count"), [([5, 0, 0], 3), ([-1, -1, -1], -1)])
def test_ids_beyond_the_segments_are_refused(ids, count, given):
    inputs = inputs_of(np.zeros(3, np.float32), ids, count, given)
    assert_both_refuse("UNSORTED_SEGMENT_SUM", inputs, ["FLOAT32"], match="segments")
