"""QUANTIZE and DEQUANTIZE, against Delegraph's own kernels."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest

from delegated import LEVELS, levels, results
from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.schema import options as o
from delegraph.testing import TensorDef, fed, one_op_model, operator_case, tensor
from delegraph.testing.operator_case import Fed
from test_elementwise import Watched, check, floats

SHAPE = (5, 7, 33)


@levels
@pytest.mark.parametrize("count", [3, 8, 100, 4099])
def test_floats_are_quantised_as_by_the_official_loops(count: int, level: str) -> None:
    special = np.float32([np.nan, np.inf, -np.inf, 3e38, -3e38, 70, -70])
    halves = np.arange(-9, 9, dtype=np.float32) * 0.25
    x = np.concatenate([special, floats(count), halves])
    for type, zero in (("INT8", 9), ("INT8", -9), ("UINT8", 9), ("INT16", 0)):
        output = tensor((), type, scale=0.5, zero_point=zero)
        check(operator_case("QUANTIZE", [fed(x)], [output], o.QuantizeOptions()), level)


@levels
def test_half_precision_is_widened_exactly(level: str) -> None:
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    case = operator_case("DEQUANTIZE", [fed(halves)], ["FLOAT32"], o.DequantizeOptions(), version=3)
    with np.errstate(invalid="ignore"):  # ARM tells of the NaN among them
        widened = halves.astype(np.float32)
    found, is_taken = results(case, Watched(level))
    assert is_taken
    np.testing.assert_array_equal(found[0], widened)


@levels
@pytest.mark.parametrize("ratio", [1.0, 0.3, 65536.0, 2.0**30, 2.0**-31, 1e-30])
def test_int16_becomes_int32(ratio: float, level: str) -> None:
    x = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
    output = tensor((), "INT32", scale=0.5 / ratio)
    x_fed = fed(x, scale=0.5, zero_point=3)
    check(operator_case("QUANTIZE", [x_fed], [output], o.QuantizeOptions(), version=3), level)


@levels
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
@pytest.mark.parametrize("ratio", [0.5, 1.5, 0.3137, 0.0731, 1.0 / 3, 700.0])
def test_bytes_get_another_scale(ratio: float, type: str, level: str) -> None:
    every = np.arange(256).astype(np.uint8).view(type.lower())
    x = fed(np.concatenate([every, every[100:105]]), scale=0.5, zero_point=7)
    output = tensor((), type, scale=0.5 / ratio, zero_point=11)
    check(operator_case("QUANTIZE", [x], [output], o.QuantizeOptions()), level)


def scales_along(axis: int) -> list[float]:
    scales: list[float] = np.random.default_rng(axis).uniform(0.003, 0.2, SHAPE[axis]).tolist()
    return scales


@levels
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT16"])
def test_floats_are_quantised_channel_by_channel(axis: int, type: str, level: str) -> None:
    x = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    x.reshape(-1)[:8] = [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0, -0.0]
    output = tensor(SHAPE, type, scale=scales_along(axis), zero_point=9, axis=axis)
    check(operator_case("QUANTIZE", [fed(x)], [output], o.QuantizeOptions()), level)


@levels
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("type", ["INT8", "UINT8"])
@pytest.mark.parametrize("are_moved", [False, True])
def test_integers_have_a_scale_for_each_channel(
    axis: int, type: str, are_moved: bool, level: str
) -> None:
    q = np.random.default_rng(4).integers(0, 256, SHAPE).astype(np.uint8).view(type.lower())
    zero_point = list(range(SHAPE[axis])) if are_moved else 0
    x = Fed(q, tensor(SHAPE, type, scale=scales_along(axis), zero_point=zero_point, axis=axis))
    check(operator_case("DEQUANTIZE", [x], ["FLOAT32"], o.DequantizeOptions()), level)


def test_channels_with_different_zero_points_stay_with_the_core() -> None:
    output = tensor(SHAPE, "INT8", scale=[0.1] * 5, zero_point=[0, 0, 1, 0, 0], axis=0)
    x = fed(np.zeros(SHAPE, np.float32))
    case = operator_case("QUANTIZE", [x], [output], o.QuantizeOptions())
    _, is_taken = results(case, Watched(LEVELS[0]))
    assert not is_taken


NOT_POSITIVE = [None, 0.0, -0.5, math.nan, math.inf]
NOT_ALL_POSITIVE = [*NOT_POSITIVE, *([0.5, scale] for scale in NOT_POSITIVE[1:])]


def is_claimed(op: str, given: TensorDef, result: TensorDef, options: Any) -> bool:
    """Whether the delegate claims a node; the core may refuse to compute it."""
    interpreter = Interpreter(
        model_content=one_op_model(op, [given], [result], options), delegates=["numba_cpu"]
    )
    with contextlib.suppress(DelegraphError):
        interpreter.allocate_tensors()
    return interpreter.placement.nodes[0].delegate == "numba_cpu"


@pytest.mark.parametrize("scale", NOT_ALL_POSITIVE)
@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT16"])
def test_floats_are_quantised_only_with_positive_scales(type: str, scale: Any) -> None:
    result = tensor((2, 9), type, scale=scale)
    assert not is_claimed("QUANTIZE", tensor((2, 9)), result, o.QuantizeOptions())


@pytest.mark.parametrize("scale", NOT_POSITIVE)
@pytest.mark.parametrize("which", [0, 1])
def test_int16_becomes_int32_only_with_positive_scales(which: int, scale: Any) -> None:
    scales = [0.5, 0.5]
    scales[which] = scale
    given, result = (
        tensor((9,), type, scale=each)
        for type, each in zip(("INT16", "INT32"), scales, strict=True)
    )
    assert not is_claimed("QUANTIZE", given, result, o.QuantizeOptions())


def test_int16_becomes_int32_only_with_a_multiplier_below_2_to_the_31() -> None:
    given, result = tensor((9,), "INT16", scale=1.0), tensor((9,), "INT32", scale=3e-31)
    assert not is_claimed("QUANTIZE", given, result, o.QuantizeOptions())


@pytest.mark.parametrize("scale", NOT_ALL_POSITIVE)
@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT16"])
def test_integers_are_dequantised_only_with_positive_scales(type: str, scale: Any) -> None:
    given = tensor((2, 9), type, scale=scale)
    assert not is_claimed("DEQUANTIZE", given, tensor((2, 9)), o.DequantizeOptions())
