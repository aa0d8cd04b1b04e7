"""SEGMENT_SUM."""

import numpy as np
import pytest

from delegraph.testing import delegraph_outputs, fed
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays

X = np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize("ids", [(0, 0, 1), (0, 1, 2), (0, 0, 0)])
def test_rows_of_one_segment_are_added(ids, given):
    inputs = [fed(X), given(np.array(ids, np.int32))]
    (y,) = assert_agrees("SEGMENT_SUM", inputs, ["FLOAT32"])
    slow = [X[np.array(ids) == i].sum(0) for i in range(max(ids) + 1)]
    np.testing.assert_array_equal(y, slow)


@pytest.mark.parametrize("ids", [(1, 1, 2), (0, 2, 2), (1, 0, 0), (-1, 0, 0)])
def test_ids_with_gaps_are_refused(ids, given):
    inputs = [fed(X), given(np.array(ids, np.int32))]
    assert_both_refuse("SEGMENT_SUM", inputs, ["FLOAT32"], match="without gaps")


def test_other_types_are_refused():
    inputs = [fed(X.astype(np.int64)), fed(np.int32([0, 0, 1]))]
    assert_both_refuse("SEGMENT_SUM", inputs, ["INT64"], match="has type INT64")


def test_no_rows_have_no_sums(given):
    inputs = [fed(X[:0]), given(np.array([], np.int32))]
    model, arrays = model_and_arrays("SEGMENT_SUM", inputs, ["FLOAT32"])
    assert delegraph_outputs(model, arrays)[0].shape == (0, 2)
