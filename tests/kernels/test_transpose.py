"""TRANSPOSE."""

import numpy as np
import pytest

from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import assert_agrees, model_and_arrays


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i2"])
@pytest.mark.parametrize("perm", [(3, 1, 0, 2), (0, 1, 2, 3), (1, 0, -1, 2)])
def test_axes_change_places(perm, dtype, given):
    x = fed(np.arange(120).reshape(2, 3, 4, 5).astype(dtype))
    inputs = [x, given(np.array(perm, np.int32))]
    (y,) = assert_agrees("TRANSPOSE", inputs, [x.definition.type.name], version=4)
    np.testing.assert_array_equal(y, x.array.transpose(perm))


def test_a_constant_is_transposed_while_preparing():
    inputs = [constant(np.ones((2, 3), np.float32)), constant(np.array([1, 0], np.int32))]
    assert_agrees("TRANSPOSE", inputs, ["FLOAT32"])


@pytest.mark.parametrize("perm", [(0, 0), (0, 2)])
def test_what_is_no_permutation_is_refused(perm):
    inputs = [fed(np.ones((2, 3), np.float32)), constant(np.array(perm, np.int32))]
    model, arrays = model_and_arrays("TRANSPOSE", inputs, ["FLOAT32"])
    with pytest.raises(RuntimeError, match="no permutation"):
        delegraph_outputs(model, arrays)
