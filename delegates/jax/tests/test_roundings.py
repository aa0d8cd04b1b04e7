"""Values between integers: XLA must not merge what the official kernels round one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph.schema.options import AddOptions, DivOptions, MulOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor

EVERY = np.arange(-(2**15), 2**15).astype(np.int16)
SCALE = float(np.float32(1e-4))
FLOATS = tensor(EVERY.shape)
TENSORS: dict[str, Any] = {
    "x": tensor(EVERY.shape, "INT16", scale=SCALE),
    "y": tensor(EVERY.shape, "INT16", scale=2 * SCALE),  # every second result is a half
    "third": constant(np.float32(3)),
    "share": constant(np.float32(0.7)),
} | dict.fromkeys("abc", FLOATS)
BETWEEN: dict[str, list[tuple[Any, ...]]] = {
    "nothing": [("QUANTIZE", "a", "y")],
    "MUL": [("MUL", "a share", "b", MulOptions()), ("QUANTIZE", "b", "y")],
    "DIV": [("DIV", "a third", "b", DivOptions()), ("QUANTIZE", "b", "y")],
    "MUL and ADD": [
        ("MUL", "a share", "b", MulOptions()),
        ("ADD", "b share", "c", AddOptions()),
        ("QUANTIZE", "c", "y"),
    ],
}


@pytest.mark.parametrize("between", BETWEEN)
def test_integers_after_floats_are_those_of_the_kernels(between: str) -> None:
    nodes = [("DEQUANTIZE", "x", "a"), *BETWEEN[between]]
    model = graph_model(nodes, inputs="x", outputs="y", tensors=TENSORS)
    expected, found = results(model, [EVERY])
    np.testing.assert_array_equal(found, expected)


def test_products_of_unsigned_integers_are_rounded() -> None:
    x = np.array([[46, 0, 87, 107]], np.uint8)
    given = tensor(x.shape, "UINT8", scale=0.017146063968539238)
    logs = tensor(x.shape, "UINT8", scale=1 / 16, zero_point=255)

    expected, found = results(one_op_model("LOG_SOFTMAX", [given], [logs]), [x])

    np.testing.assert_array_equal(found, expected)
