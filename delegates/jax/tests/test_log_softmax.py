"""LOG_SOFTMAX of 8 bits rounds each product before it adds, whatever XLA knows of its sign."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph.testing import one_op_model, tensor


def test_products_of_unsigned_integers_are_rounded() -> None:
    x = np.array([[46, 0, 87, 107]], np.uint8)
    given = tensor(x.shape, "UINT8", scale=0.017146063968539238)
    logs = tensor(x.shape, "UINT8", scale=1 / 16, zero_point=255)

    expected, found = results(one_op_model("LOG_SOFTMAX", [given], [logs]), [x])

    np.testing.assert_array_equal(found, expected)
