"""Weights of quantized products: kept in a second form, or made anew at each invoke."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.operators import memory_limit
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions, FullyConnectedOptions
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor

SIZE = 512


def product(op: str, x_shape: tuple[int, ...], *, dtype: str = "INT8") -> bytes:
    """Return a model of one product with SIZE * SIZE weights."""
    rng = np.random.default_rng(2)
    weight = rng.integers(-127, 128, (SIZE, *([1, 1] if op == "CONV_2D" else []), SIZE), np.int8)
    zero_point = 0
    if dtype == "UINT8":
        weight, zero_point = (weight + np.int16(128)).astype(np.uint8), 131
    options = (
        FullyConnectedOptions()
        if op == "FULLY_CONNECTED"
        else Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
    )
    bias = constant(rng.integers(-99, 99, SIZE).astype(np.int32), scale=0.01)
    weights = constant(weight, scale=0.1, zero_point=zero_point)
    x = tensor(x_shape, dtype, scale=0.1, zero_point=3)
    y = tensor((*x_shape[:-1], SIZE), dtype, scale=9.0, zero_point=5)
    return one_op_model(op, [x, weights, bias], [y], options)


def workspace(model: bytes) -> int:
    """Return the bytes that the nodes of an allocated model share."""
    interpreter = Interpreter(model_content=model, delegates=[])
    interpreter.allocate_tensors()
    return interpreter.session.subgraphs[0].memory.workspace.size


@pytest.mark.parametrize(
    ("op", "x_shape"), [("CONV_2D", (1, 2, 3, SIZE)), ("FULLY_CONNECTED", (2, SIZE))]
)
@pytest.mark.parametrize("dtype", ["INT8", "UINT8"])
def test_a_large_model_computes_the_same_with_weights_made_anew(
    monkeypatch: pytest.MonkeyPatch, op: str, x_shape: tuple[int, ...], dtype: str
) -> None:
    model = product(op, x_shape, dtype=dtype)
    x = np.random.default_rng(3).integers(0, 100, x_shape).astype(dtype.lower())
    (kept,) = delegraph_outputs(model, [x])
    monkeypatch.setattr(memory_limit, "LARGE_MODEL", 0)
    (anew,) = delegraph_outputs(model, [x])
    np.testing.assert_array_equal(anew, kept)
    assert len(np.unique(kept)) > 20


def test_a_large_model_keeps_no_weights_as_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    model = product("FULLY_CONNECTED", (1, SIZE))
    assert workspace(model) < 4 * SIZE * SIZE
    monkeypatch.setattr(memory_limit, "LARGE_MODEL", 0)
    assert workspace(model) > 4 * SIZE * SIZE


def test_products_of_many_rows_make_large_weights_anew() -> None:
    few, many = (workspace(product("FULLY_CONNECTED", (rows, SIZE))) for rows in (31, 32))
    assert few < 4 * SIZE * SIZE < many
