"""What integer operators are made of, beside slow definitions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

import jax
import jax.numpy as jnp

from beside_kernels import results
from delegraph.arithmetic import quantize_rows
from delegraph.schema.options import FullyConnectedOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph_jax.compiling import compile_safely
from delegraph_jax.operators.hybrid import quantized_rows
from delegraph_jax.operators.quantized_products import exact_sums, product
from delegraph_jax.operators.quantized_softmax import sums_in_order
from delegraph_jax.operators.rounding import rounded


@pytest.mark.parametrize("x_type", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("w_type", [np.int8, np.uint8])
def test_sums_of_products_are_exact(x_type: type, w_type: type) -> None:
    generator = np.random.default_rng(0)
    limits = [np.iinfo(each) for each in (x_type, w_type)]
    x = generator.integers(limits[0].min, limits[0].max, (5, 300), x_type, endpoint=True)
    w = generator.integers(limits[1].min, limits[1].max, (300, 7), w_type, endpoint=True)
    x_zero, w_zero = (0 if x_type is np.int16 else 3), 5

    with jax.enable_x64(True):
        sums = exact_sums(jnp.asarray(x), x_zero, w, w_zero, product)

    expected = (x.astype(np.int64) - x_zero) @ (w.astype(np.int64) - w_zero)
    np.testing.assert_array_equal(sums, expected)


def test_products_are_rounded_before_they_are_added() -> None:
    """Without it XLA rounds product and sum together."""
    generator = np.random.default_rng(0)
    x, y, z = (generator.standard_normal(10_000, np.float32) for _ in range(3))

    def function(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
        return rounded(x * y) + z

    compiled = compile_safely(jax.jit(function).lower(x, y, z), "cpu")

    np.testing.assert_array_equal(compiled(x, y, z), x * y + z)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_rows_are_quantized_as_the_core_does(asymmetric: bool) -> None:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((50, 64)).astype(np.float32)
    rows[0] = 0
    rows[1] = np.abs(rows[1])

    with jax.enable_x64(True):
        found = jax.jit(quantized_rows, static_argnums=1)(rows, asymmetric)

    for ours, core in zip(found, quantize_rows(rows, asymmetric=asymmetric), strict=True):
        np.testing.assert_array_equal(ours, core)


@pytest.mark.parametrize("length", [1, 31, 32, 1001])
def test_rows_are_added_in_order(length: int) -> None:
    x = np.random.default_rng(0).random((4, length), np.float32)

    found = jax.jit(sums_in_order)(x)

    np.testing.assert_array_equal(found, np.add.accumulate(x, -1)[..., -1:])


@pytest.mark.parametrize("kind", ["FLOAT32", "INT8", "hybrid"])
def test_elements_that_fill_no_row_are_left_out(kind: str) -> None:
    """FULLY_CONNECTED of 10 elements by weights of 4 columns has two rows, as in LiteRT."""
    type_ = "INT8" if kind == "INT8" else "FLOAT32"
    scale = {"scale": 0.5} if kind == "INT8" else {}
    stored = np.arange(12).reshape(3, 4)
    weights = (
        constant(stored.astype(np.float32))
        if kind == "FLOAT32"
        else constant(stored.astype(np.int8), scale=0.25)
    )
    inputs = [tensor((2, 5), type_, **scale), weights, None]
    outputs = [tensor((2, 3), type_, **scale)]
    model = one_op_model("FULLY_CONNECTED", inputs, outputs, FullyConnectedOptions())
    x = np.arange(10).reshape(2, 5).astype(type_.lower())
    expected, found = results(model, [x])
    np.testing.assert_array_equal(found, expected, strict=True)
