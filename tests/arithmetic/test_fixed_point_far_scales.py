"""Scales whose multiplier is 2**31 or more: as in the official kernels, or refused with all scales.

Such an output was 0 for all calibration data, which made its scale a number near zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.schema import options as o
from delegraph.testing import constant, delegraph_outputs, fed, tensor
from support.agreement import model_and_arrays
from support.official import official_outputs
from support.quantized_pairs import random_integers

MULTIPLIERS = [1.7 * 2.0**31, 2.0**41 / 1.1, 3e30]

Case = tuple[bytes, list[np.ndarray]]


def pair(op: str, options: Any, type: str, y_scale: float, shape: tuple[int, ...] = (37,)) -> Case:
    a, b = random_integers(1, type, (3, 37)), random_integers(2, type, shape)
    b[b == 0] = 1  # a divisor
    inputs = [fed(a, scale=1.0), fed(b, scale=1.0)]
    version = 1 if op == "PRELU" else 2
    return model_and_arrays(op, inputs, [tensor((), type, scale=y_scale)], options, version=version)


def single(op: str, options: Any, type: str, y_scale: float, zero_point: int = 0) -> Case:
    x = fed(random_integers(1, type, (3, 37)), scale=1.0)
    y = tensor((), type, scale=y_scale, zero_point=zero_point)
    version = 1 if op == "RELU_N1_TO_1" else 2
    return model_and_arrays(op, [x], [y], options, version=version)


def reduced(op: str, type: str, y_scale: float, *, keep_dims: bool) -> Case:
    inputs = [fed(random_integers(1, type, (1, 4, 5, 19)), scale=1.0), constant(np.int32([1, 2]))]
    options = o.ReducerOptions(keep_dims=keep_dims)
    return model_and_arrays(op, inputs, [tensor((), type, scale=y_scale)], options, version=2)


def product(op: str, y_scale: float) -> Case:
    x = fed(random_integers(1, "INT8", (1, 4, 4, 3)), scale=1.0)
    shape, options = {
        "CONV_2D": ((4, 2, 2, 3), o.Conv2DOptions(stride_h=1, stride_w=1)),
        "FULLY_CONNECTED": ((4, 48), o.FullyConnectedOptions()),
    }[op]
    w = constant(random_integers(2, "INT8", shape), scale=1.0)
    bias, y = constant(np.zeros(4, np.int32), scale=1.0), tensor((), "INT8", scale=y_scale)
    return model_and_arrays(op, [x, w, bias], [y], options, version=3)


COMPUTED: dict[str, Callable[[float], Case]] = {
    "mul int8": lambda s: pair("MUL", o.MulOptions(), "INT8", s),
    "mul uint8": lambda s: pair("MUL", o.MulOptions(), "UINT8", s),
    "mul by a scalar": lambda s: pair("MUL", o.MulOptions(), "INT8", s, (1,)),
    "mul int16": lambda s: pair("MUL", o.MulOptions(), "INT16", s),
    "div": lambda s: pair("DIV", o.DivOptions(), "INT8", s),
    "relu": lambda s: single("RELU", None, "INT8", s),
    "relu6": lambda s: single("RELU6", None, "INT8", s),
    "leaky relu": lambda s: single("LEAKY_RELU", o.LeakyReluOptions(alpha=0.3), "INT16", s),
    "abs": lambda s: single("ABS", None, "INT8", s),
    "requantize int8": lambda s: single("QUANTIZE", o.QuantizeOptions(), "INT8", s),
    "requantize int16": lambda s: single("QUANTIZE", o.QuantizeOptions(), "INT16", s),
    "prelu": lambda s: pair("PRELU", None, "INT8", s),
    "mean": lambda s: reduced("MEAN", "INT8", s, keep_dims=False),
    "mean of images": lambda s: reduced("MEAN", "UINT8", s, keep_dims=True),
}


@pytest.mark.parametrize("reference", [False, True], ids=["builtin", "reference"])
@pytest.mark.parametrize("real", MULTIPLIERS)
@pytest.mark.parametrize("name", COMPUTED)
def test_results_are_the_official_ones(name: str, real: float, reference: bool) -> None:
    model, arrays = COMPUTED[name](1 / real)
    ours = delegraph_outputs(model, arrays, numerics="reference" if reference else "builtin")
    official = official_outputs(model, arrays, reference=reference)
    np.testing.assert_array_equal(ours[0], official[0])


@pytest.mark.parametrize("zero_point", [-4, 0, 5])
@pytest.mark.parametrize("op", ["RELU6", "RELU_N1_TO_1"])
def test_a_bound_beyond_int32_is_the_least_integer(op: str, zero_point: int) -> None:
    """With an output scale below 6 / 2**31; the multiplier is still below 2**31."""
    model, arrays = single(op, None, "INT8", 2.0**-29, zero_point)
    np.testing.assert_array_equal(
        delegraph_outputs(model, arrays)[0], official_outputs(model, arrays)[0]
    )


REFUSED: dict[str, Callable[[float], Case]] = {
    "add": lambda s: pair("ADD", o.AddOptions(), "INT8", s),
    "sub": lambda s: pair("SUB", o.SubOptions(), "INT16", s),
    "squared difference": lambda s: pair("SQUARED_DIFFERENCE", None, "INT8", s),
    "batch matmul": lambda s: pair("BATCH_MATMUL", o.BatchMatMulOptions(), "INT8", s, (37, 4)),
    "conv": lambda s: product("CONV_2D", s),
    "fully connected": lambda s: product("FULLY_CONNECTED", s),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused_with_the_three_scales(name: str) -> None:
    model, arrays = REFUSED[name](1e-30)
    text = (
        r"scales 1 \('.*'\) and 1 \('.*'\) into 1e-30 \('.*'\) give the multiplier .*, expected "
        r"less than 2\*\*31; calibrate the model again"
    )
    with pytest.raises(NodeError, match=text):
        delegraph_outputs(model, arrays)


def test_reference_sums_are_refused_too() -> None:
    model, arrays = reduced("SUM", "INT8", 1e-30, keep_dims=True)
    with pytest.raises(
        NodeError, match=r"scales 1 \('.*'\) into 1e-30 \('.*'\) give the multiplier"
    ):
        delegraph_outputs(model, arrays, numerics="reference")
