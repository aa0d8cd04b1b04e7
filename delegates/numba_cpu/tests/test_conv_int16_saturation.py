"""Sums of int16 products that are scaled to more than 32 bits: the largest numbers, everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import LEVELS, delegate, levels
from delegraph.arithmetic import quantize_multiplier
from delegraph.schema import options as o
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor
from delegraph_numba_cpu.delegate import NumbaCpuDelegate

POWERS = (20, 30, 31, 33, 40, 44, 46)
FAR = (47, 48, 55, 62)
X = np.int16([3, -5])
W = np.int8([7, -3])


def delegates_of(level: str) -> list[NumbaCpuDelegate]:
    return [] if level == "core" else [delegate(level)]


def biases(powers: tuple[int, ...]) -> list[int]:
    found = [sign * (1 << power) + more for power in powers for sign in (1, -1) for more in (0, 7)]
    return found if powers is POWERS else [*found, -(2**63), 2**63 - 1]


def model(op: str, bias: list[int], scale: float) -> bytes:
    count = len(bias)
    b = constant(np.array(bias, np.int64))
    x = {"type": "INT16", "scale": 0.01}
    y = {"type": "INT16", "scale": 0.02}
    many = {"scale": [scale] * count, "zero_point": [0] * count}
    if op == "FULLY_CONNECTED":
        b = constant(np.array(bias, np.int64), scale=0.01 * scale)
        w = constant(np.tile(W, (count, 1)), scale=scale)
        return one_op_model(
            op, [tensor((1, 2), **x), w, b], [tensor((1, count), **y)], o.FullyConnectedOptions()
        )
    image, result = tensor((1, 1, 1, 2), **x), tensor((1, 1, 1, count), **y)
    if op == "CONV_2D":
        w = constant(np.tile(W, (count, 1)).reshape(count, 1, 1, 2), **many)
        return one_op_model(op, [image, w, b], [result], o.Conv2DOptions(stride_w=1, stride_h=1))
    if op == "TRANSPOSE_CONV":
        w = constant(np.tile(W, (count, 1)).reshape(count, 1, 1, 2), **many)
        shape = constant(np.int32([1, 1, 1, count]))
        options = o.TransposeConvOptions(stride_w=1, stride_h=1)
        return one_op_model(op, [shape, w, image, b], [result], options, version=3)
    w = constant(np.tile(W[:1], (1, 1, 1, count)), **many, axis=3)
    options = o.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=count)
    return one_op_model(op, [tensor((1, 1, 1, 1), **x), w, b], [result], options)


def wanted(op: str, bias: list[int], scale: float) -> list[int]:
    """Return the definition, in integers of any size."""
    products = (
        [int(X[0]) * int(W[0])] if op == "DEPTHWISE_CONV_2D" else (X.astype(int) * W).tolist()
    )
    real = float(np.float32(0.01)) * float(np.float32(scale)) / float(np.float32(0.02))
    mantissa, shift = quantize_multiplier(real)
    reduced = (mantissa + (1 << 15)) >> 16
    found = []
    for value in bias:
        acc = sum(products) + value
        if op == "FULLY_CONNECTED":
            q = round(acc * real)
        else:
            q = (acc * reduced + (1 << (14 - shift))) >> (15 - shift)
        found.append(max(-32768, min(q, 32767)))
    return found


@pytest.mark.parametrize("level", ["core", *LEVELS])
@pytest.mark.parametrize("scale", [0.007, 0.5])
@pytest.mark.parametrize("powers", [POWERS, FAR], ids=["exact", "far"])
@pytest.mark.parametrize(
    "op", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"]
)
def test_what_is_too_large_is_the_largest(
    op: str, powers: tuple[int, ...], scale: float, level: str
) -> None:
    bias = biases(powers)
    x = X[:1].reshape(1, 1, 1, 1) if op == "DEPTHWISE_CONV_2D" else X.reshape(1, 1, 1, 2)
    x = x.reshape(1, 2) if op == "FULLY_CONNECTED" else x
    (y,) = delegraph_outputs(model(op, bias, scale), [x], delegates=delegates_of(level))
    assert y.ravel().tolist() == wanted(op, bias, scale)


def wide_model(op: str, y_scale: float) -> tuple[bytes, NDArray[np.int16]]:
    """A product of the largest numbers without INT64 bias, and its input.

    Sums have 33 bits or more, but those of CONV_2D, which needs a bias: here one of INT32.
    """
    depth, signs = 500 if op == "CONV_2D" else 1100, np.int8([127, -127, 127])
    x, y = {"type": "INT16", "scale": 0.01}, {"type": "INT16", "scale": y_scale}
    if op == "BATCH_MATMUL":
        w = constant(np.tile(signs, (depth, 1)), scale=0.5)
        left, right = tensor((1, depth), **x), tensor((1, 3), **y)
        model = one_op_model(op, [left, w], [right], o.BatchMatMulOptions(), version=4)
        return model, np.full((1, depth), 32767, np.int16)
    many = {"scale": [0.5] * 3, "zero_point": [0] * 3}
    weight = np.tile(signs[:, None], (1, depth))
    if op == "FULLY_CONNECTED":
        w, result = constant(weight, scale=0.5), tensor((1, 3), **y)
        model = one_op_model(
            op, [tensor((1, depth), **x), w, None], [result], o.FullyConnectedOptions(), version=7
        )
        return model, np.full((1, depth), 32767, np.int16)
    image, result = tensor((1, 1, 1, depth), **x), tensor((1, 1, 1, 3), **y)
    w, shape = constant(weight.reshape(3, 1, 1, depth), **many), constant(np.int32([1, 1, 1, 3]))
    if op == "CONV_2D":
        conv = o.Conv2DOptions(stride_w=1, stride_h=1, quantized_bias_type=TensorType.INT32)
        bias = constant(np.zeros(3, np.int32), scale=[0.005] * 3)
        model = one_op_model(op, [image, w, bias], [result], conv, version=8)
        return model, np.full((1, 1, 1, depth), 32767, np.int16)
    options = o.TransposeConvOptions(stride_w=1, stride_h=1)
    model = one_op_model(op, [shape, w, image], [result], options, version=5)
    return model, np.full((1, 1, 1, depth), 32767, np.int16)


@levels
@pytest.mark.parametrize("y_scale", [1e-5, 100.0, 30000.0])
@pytest.mark.parametrize("op", ["CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL"])
def test_wide_sums_without_wide_bias_are_the_cores(op: str, y_scale: float, level: str) -> None:
    content, x = wide_model(op, y_scale)
    (right,) = delegraph_outputs(content, [x])
    (mine,) = delegraph_outputs(content, [x], delegates=delegates_of(level))
    np.testing.assert_array_equal(mine, right)
    if op != "BATCH_MATMUL":  # as the official one, which keeps the lower 32 bits
        assert np.sign(mine).ravel().tolist() == [1, -1, 1]
