"""MATRIX_DIAG and MATRIX_SET_DIAG."""

import numpy as np
import pytest

from delegraph.schema.options import MatrixDiagOptions, MatrixSetDiagOptions
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_matrix_diag_puts_vectors_on_diagonals(shape):
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    (y,) = assert_agrees("MATRIX_DIAG", [fed(x)], ["FLOAT32"], MatrixDiagOptions())
    np.testing.assert_array_equal(y, x[..., None] * np.eye(3, dtype=np.float32))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 4)])
def test_matrix_set_diag_replaces_the_diagonals(shape):
    x = np.ones(shape, np.float32)
    diagonal = np.full((*shape[:-2], min(shape[-2:])), 7, np.float32)
    options = MatrixSetDiagOptions()
    (y,) = assert_agrees("MATRIX_SET_DIAG", [fed(x), fed(diagonal)], ["FLOAT32"], options)
    assert (y == 7).sum() == diagonal.size


def test_matrix_set_diag_refuses_a_vector():
    inputs = [fed(np.ones(3, np.float32)), fed(np.ones(3, np.float32))]
    options = MatrixSetDiagOptions()
    assert_both_refuse("MATRIX_SET_DIAG", inputs, ["FLOAT32"], options, match="does not fit")
