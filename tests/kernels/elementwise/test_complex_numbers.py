"""COMPLEX_ABS, REAL and IMAG."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse

X = np.array([[3 + 4j, -1j], [2, 0]], np.complex64)


@pytest.mark.parametrize(
    ("op", "expected"),
    [("COMPLEX_ABS", np.abs(X)), ("REAL", X.real), ("IMAG", X.imag)],
    ids=["abs", "real", "imag"],
)
def test_parts_of_complex64(op, expected):
    (y,) = assert_agrees(op, [fed(X)], ["FLOAT32"], tolerance=1e-6)
    np.testing.assert_allclose(y, expected)


@pytest.mark.parametrize("op", ["COMPLEX_ABS", "REAL", "IMAG"])
def test_real_numbers_are_refused(op):
    inputs = [fed(np.ones(2, np.float32))]
    assert_both_refuse(op, inputs, ["FLOAT32"], match="expected one of COMPLEX128, COMPLEX64")
