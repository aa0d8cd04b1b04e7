"""16-bit floats: each operator is computed in float32 and rounded once, as the kernels do."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

import ml_dtypes

from beside_kernels import results
from chain_model import chain
from delegraph.testing import one_op_model, tensor

_DTYPES = {"FLOAT16": np.dtype(np.float16), "BFLOAT16": np.dtype(ml_dtypes.bfloat16)}


def _every_number(dtype: np.dtype) -> np.ndarray:
    """Return all finite numbers of *dtype* that are not denormal in float32."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = bits.view(dtype).astype(np.float32)
    kept = np.isfinite(wide) & ((wide == 0) | (np.abs(wide) >= np.finfo(np.float32).tiny))
    return bits[kept].view(dtype)


@pytest.mark.parametrize("name", ["FLOOR", "NEG", "ROUND", "TANH"])
@pytest.mark.parametrize("type_name", _DTYPES)
def test_every_number_has_the_result_of_the_kernel(name: str, type_name: str) -> None:
    x = _every_number(_DTYPES[type_name])
    model = one_op_model(name, [tensor(x.shape, type_name)], [tensor(x.shape, type_name)])

    expected, found = results(model, [x])

    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_sums_and_products_are_those_of_the_kernel(name: str) -> None:
    generator = np.random.default_rng(0)
    numbers = _every_number(_DTYPES["FLOAT16"])
    a, b = generator.permutation(numbers), generator.permutation(numbers)
    first, second, total = (tensor(a.shape, "FLOAT16") for _ in range(3))

    expected, found = results(one_op_model(name, [first, second], [total]), [a, b])

    np.testing.assert_array_equal(found, expected)


def test_results_between_operators_are_rounded() -> None:
    """XLA may keep intermediate results in float32; the kernels round them."""
    x = _every_number(_DTYPES["FLOAT16"])[:20_000]

    expected, found = results(chain("SIN", "COS", "TANH", size=len(x), type="FLOAT16"), [x])

    np.testing.assert_array_equal(found, expected)
