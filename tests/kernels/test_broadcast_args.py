"""BROADCAST_ARGS."""

import numpy as np
import pytest
from agreement import assert_agrees, fed, model_and_arrays
from one_op import constant, delegraph_outputs

GIVEN = [constant, fed]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("a", "b"), [((2, 1, 3), (4, 1)), ((5,), (5,)), ((1,), (2, 7))])
def test_shapes_are_broadcast(a, b, dtype, given):
    inputs = [given(np.array(a, dtype)), given(np.array(b, dtype))]
    kind = {np.int32: "INT32", np.int64: "INT64"}[dtype]
    (y,) = assert_agrees("BROADCAST_ARGS", inputs, [kind])
    assert tuple(y) == np.broadcast_shapes(a, b)


@pytest.mark.parametrize("given", GIVEN)
def test_shapes_that_do_not_fit_are_refused(given):
    inputs = [given(np.array(shape, np.int32)) for shape in ((2,), (3,))]
    model, arrays = model_and_arrays("BROADCAST_ARGS", inputs, ["INT32"])
    with pytest.raises(RuntimeError, match="do not broadcast"):  # the official kernel aborts
        delegraph_outputs(model, arrays)
