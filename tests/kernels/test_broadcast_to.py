"""BROADCAST_TO and BROADCAST_ARGS."""

import numpy as np
import pytest

from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays


@pytest.mark.parametrize("dtype", ["float32", "int64", "int16", "uint8", "bool"])
@pytest.mark.parametrize("make", [fed, constant], ids=["fed", "constant"])
def test_broadcast_to_repeats(dtype, make):
    x = np.arange(3).reshape(3, 1).astype(dtype)
    dims = make(np.int32([2, 3, 4]))
    (y,) = assert_agrees("BROADCAST_TO", [fed(x), dims], [dtype.upper()], version=2)
    np.testing.assert_array_equal(y, np.broadcast_to(x, (2, 3, 4)))


def test_broadcast_to_refuses_another_length():
    inputs = [fed(np.ones((3, 2), np.float32)), fed(np.int32([2, 3, 4]))]
    match = "does not broadcast|do not broadcast"
    assert_both_refuse("BROADCAST_TO", inputs, ["FLOAT32"], match=match, version=2)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("a", "b"), [((2, 1, 3), (4, 1)), ((5,), (5,)), ((1,), (2, 7))])
def test_shapes_are_broadcast(a, b, dtype, given):
    inputs = [given(np.array(a, dtype)), given(np.array(b, dtype))]
    kind = {np.int32: "INT32", np.int64: "INT64"}[dtype]
    (y,) = assert_agrees("BROADCAST_ARGS", inputs, [kind])
    assert tuple(y) == np.broadcast_shapes(a, b)


def test_shapes_that_do_not_fit_are_refused(given):
    inputs = [given(np.array(shape, np.int32)) for shape in ((2,), (3,))]
    model, arrays = model_and_arrays("BROADCAST_ARGS", inputs, ["INT32"])
    with pytest.raises(RuntimeError, match="do not broadcast"):  # the official kernel aborts
        delegraph_outputs(model, arrays)


def test_shapes_of_other_types_are_refused():
    inputs = [fed(np.array([2], np.int16)) for _ in range(2)]
    assert_both_refuse("BROADCAST_ARGS", inputs, ["INT16"], match="has type INT16")


def test_of_shapes_in_int64_the_lower_32_bits_count():
    inputs = [fed(np.int64([-(2**63) + 1, 2])), fed(np.int64([3, 2**33 + 2]))]
    (y,) = assert_agrees("BROADCAST_ARGS", inputs, ["INT64"])
    assert y.tolist() == [3, 2]
