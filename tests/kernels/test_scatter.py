"""SCATTER_ND."""

import numpy as np
import pytest

from delegraph.testing import fed
from support.agreement import assert_agrees, assert_both_refuse

CASES = [([[0], [2], [0]], (4,)), ([[0, 1], [1, 1]], (2, 3)), ([[1], [1]], (3, 2))]


@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i8"])
@pytest.mark.parametrize(("indices", "shape"), CASES)
def test_updates_are_added_where_the_tuples_point(indices, shape, dtype, given):
    indices = np.array(indices, np.int32)
    updates = fed(np.arange(1, 5)[: np.prod(indices.shape[:1])].astype(dtype))
    if len(shape) > indices.shape[-1]:
        updates = fed(np.arange(1, 5).reshape(2, 2).astype(dtype))
    inputs = [fed(indices), updates, given(np.array(shape, np.int32))]
    kind = updates.definition.type.name
    (y,) = assert_agrees("SCATTER_ND", inputs, [kind])
    slow = np.zeros(shape, dtype)
    for place, update in zip(indices, updates.array, strict=True):
        slow[tuple(place)] += update
    np.testing.assert_array_equal(y, slow)


@pytest.mark.parametrize(
    ("place", "shape", "updates", "match"),
    [(5, (3,), (1,), "position 5"), (0, (3, 2), (1, 3), "updates are")],
)
def test_what_does_not_fit_is_refused(place, shape, updates, match, given):
    inputs = [
        fed(np.array([[place]], np.int32)),
        fed(np.ones(updates, np.float32)),
        given(np.array(shape, np.int32)),
    ]
    assert_both_refuse("SCATTER_ND", inputs, ["FLOAT32"], match=match)


def test_other_types_are_refused():
    inputs = [fed(np.int32([[1]])), fed(np.int16([5])), fed(np.int32([3]))]
    assert_both_refuse("SCATTER_ND", inputs, ["INT16"], match="has type INT16")
