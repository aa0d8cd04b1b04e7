"""MATRIX_DIAG and MATRIX_SET_DIAG."""

import ml_dtypes
import numpy as np
import pytest

from delegraph.testing import delegraph_outputs, fed, operator_case
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_matrix_diag_puts_vectors_on_diagonals(shape):
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    (y,) = assert_agrees("MATRIX_DIAG", [fed(x)], ["FLOAT32"])
    np.testing.assert_array_equal(y, x[..., None] * np.eye(3, dtype=np.float32))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 4)])
def test_matrix_set_diag_replaces_the_diagonals(shape):
    x = np.ones(shape, np.float32)
    diagonal = np.full((*shape[:-2], min(shape[-2:])), 7, np.float32)
    (y,) = assert_agrees("MATRIX_SET_DIAG", [fed(x), fed(diagonal)], ["FLOAT32"])
    assert (y == 7).sum() == diagonal.size


OTHER_TYPES = [np.bool_, np.float16, ml_dtypes.bfloat16, np.uint16, np.uint64, np.complex64]


@pytest.mark.parametrize("dtype", OTHER_TYPES)
def test_types_that_the_official_kernel_takes_for_float32(dtype):
    values = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    case = operator_case("MATRIX_DIAG", [fed(values)], [fed(values).definition.type.name])
    (y,) = delegraph_outputs(case.model(), [values])
    expected = np.stack([np.diag(row) for row in values])
    np.testing.assert_array_equal(y, expected)
    full = np.ones((2, 3, 3), dtype)
    inputs = [fed(full), fed(values)]
    case = operator_case("MATRIX_SET_DIAG", inputs, [fed(full).definition.type.name])
    (y,) = delegraph_outputs(case.model(), [full, values])
    np.testing.assert_array_equal(y, np.where(np.eye(3, dtype=bool), expected, full))


def test_matrix_set_diag_refuses_a_vector():
    inputs = [fed(np.ones(3, np.float32)), fed(np.ones(3, np.float32))]
    assert_both_refuse("MATRIX_SET_DIAG", inputs, ["FLOAT32"], match="does not fit")
