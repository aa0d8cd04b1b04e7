"""Sums of int16 products that leave 32 bits beside Delegraph's kernels, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph.schema.options import BatchMatMulOptions, Conv2DOptions, FullyConnectedOptions
from delegraph.testing import constant, one_op_model, tensor

BIAS = np.array([7, 2**31, -(2**40), 2**46, 2**55, -(2**63), 2**63 - 1], np.int64)
WEIGHT = np.tile(np.int8([7, -3]), (BIAS.size, 1))
X = np.int16([[3, -5], [32767, -32768]])


@pytest.mark.parametrize("scale", [0.007, 0.5])
def test_sums_of_conv_2d_saturate(scale: float) -> None:
    channels = {"scale": [scale] * BIAS.size, "zero_point": [0] * BIAS.size}
    inputs = [
        tensor((2, 1, 1, 2), "INT16", scale=0.01),
        constant(WEIGHT.reshape(-1, 1, 1, 2), **channels),
        constant(BIAS),
    ]
    outputs = [tensor((2, 1, 1, BIAS.size), "INT16", scale=0.02)]
    model = one_op_model("CONV_2D", inputs, outputs, Conv2DOptions(stride_w=1, stride_h=1))
    expected, found = results(model, [X.reshape(2, 1, 1, 2)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("scale", [0.007, 0.5])
def test_sums_of_fully_connected_saturate(scale: float) -> None:
    inputs = [
        tensor((2, 2), "INT16", scale=0.01),
        constant(WEIGHT, scale=scale),
        constant(BIAS, scale=0.01 * scale),
    ]
    outputs = [tensor((2, BIAS.size), "INT16", scale=0.02)]
    expected, found = results(
        one_op_model("FULLY_CONNECTED", inputs, outputs, FullyConnectedOptions()), [X]
    )
    np.testing.assert_array_equal(found, expected)


def test_sums_of_batch_matmul_wrap() -> None:
    tensors = [tensor(shape, "INT16", scale=1) for shape in ((1, 8), (8, 2), (1, 2))]
    model = one_op_model("BATCH_MATMUL", tensors[:2], tensors[2:], BatchMatMulOptions(), version=4)
    columns = np.tile(np.int16([32767, -32768]), (8, 1))
    expected, found = results(model, [np.full((1, 8), 32767, np.int16), columns])
    np.testing.assert_array_equal(found, expected)
