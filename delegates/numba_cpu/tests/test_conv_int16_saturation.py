"""Sums of int16 products that are scaled to more than 32 bits: the largest numbers, everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.arithmetic import quantize_multiplier
from delegraph.schema.options import (
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    TransposeConvOptions,
)
from delegraph.testing import constant, one_op_model, tensor

POWERS = (20, 30, 31, 33, 40, 44, 46)
FAR = (47, 48, 55, 62)
X = np.int16([3, -5])
W = np.int8([7, -3])


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
            op, [tensor((1, 2), **x), w, b], [tensor((1, count), **y)], FullyConnectedOptions()
        )
    image, result = tensor((1, 1, 1, 2), **x), tensor((1, 1, 1, count), **y)
    if op == "CONV_2D":
        w = constant(np.tile(W, (count, 1)).reshape(count, 1, 1, 2), **many)
        return one_op_model(op, [image, w, b], [result], Conv2DOptions(stride_w=1, stride_h=1))
    if op == "TRANSPOSE_CONV":
        w = constant(np.tile(W, (count, 1)).reshape(count, 1, 1, 2), **many)
        shape = constant(np.int32([1, 1, 1, count]))
        options = TransposeConvOptions(stride_w=1, stride_h=1)
        return one_op_model(op, [shape, w, image, b], [result], options, version=3)
    w = constant(np.tile(W[:1], (1, 1, 1, count)), **many, axis=3)
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=count)
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


@pytest.mark.parametrize("delegates", [[], ["numba_cpu"]], ids=["core", "numba_cpu"])
@pytest.mark.parametrize("scale", [0.007, 0.5])
@pytest.mark.parametrize("powers", [POWERS, FAR], ids=["exact", "far"])
@pytest.mark.parametrize(
    "op", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"]
)
def test_what_is_too_large_is_the_largest(
    op: str, powers: tuple[int, ...], scale: float, delegates: list[str]
) -> None:
    bias = biases(powers)
    interpreter = Interpreter(model_content=model(op, bias, scale), delegates=delegates)
    interpreter.allocate_tensors()
    (x,) = interpreter.get_input_details()
    interpreter.set_tensor(x["index"], X[: x["shape"][-1]].reshape(x["shape"]))
    interpreter.invoke()
    (y,) = interpreter.get_output_details()
    assert interpreter.get_tensor(y["index"]).ravel().tolist() == wanted(op, bias, scale)
