"""Sums, differences and products of int16 beside Delegraph's kernels, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph.schema.options import BatchMatMulOptions, Conv2DOptions, FullyConnectedOptions
from delegraph.testing import constant, one_op_model, tensor

SCALES = [(0.5, 0.3, 0.7), (0.5, 0.3, 3e-5), (1e-4, 2e-3, 1e-5), (2**-15, 2**-14, 2**-14)]


@pytest.mark.parametrize("shape", [(4, 2501), (4, 1)], ids=["same shape", "broadcast"])
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_result_is_that_of_the_kernel(
    name: str, scales: tuple[float, float, float], shape: tuple[int, ...]
) -> None:
    """Operands nearly cancel out: the vector loop of ADD rounds them otherwise than the rest."""
    generator = np.random.default_rng(0)
    shapes = (4, 2501), shape, (4, 2501)
    b = generator.integers(-32768, 32768, shape)
    a = -np.rint(np.broadcast_to(b, shapes[0]) * scales[1] / scales[0])
    operands = [each.clip(-32768, 32767).astype(np.int16) for each in (a, b)]
    tensors = [
        tensor(each, "INT16", scale=scale) for each, scale in zip(shapes, scales, strict=True)
    ]

    expected, found = results(one_op_model(name, tensors[:2], tensors[2:]), operands)

    np.testing.assert_array_equal(found, expected)


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
