"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.schema.options import Pool2DOptions
from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

TYPES = {"FLOAT32": np.float32, "UINT8": np.uint8, "INT8": np.int8, "INT16": np.int16}
FLOAT_TOLERANCE = 1e-5


def options(window=(2, 2), stride=(1, 1), padding=Padding.SAME, act=Act.NONE):
    return Pool2DOptions(
        padding=padding,
        filter_height=window[0],
        filter_width=window[1],
        stride_h=stride[0],
        stride_w=stride[1],
        fused_activation_function=act,
    )


def assert_pool_agrees(op, type_, shape, **given):
    rng = np.random.default_rng(0)
    if type_ == "FLOAT32":
        x, y = fed(rng.standard_normal(shape).astype(np.float32)), "FLOAT32"
    else:
        info, zero = np.iinfo(TYPES[type_]), 0 if type_ == "INT16" else 17
        values = rng.integers(info.min, info.max, shape, endpoint=True).astype(TYPES[type_])
        x = fed(values, scale=0.05, zero_point=zero)
        y = tensor((), type_, scale=0.05, zero_point=zero)
    tolerance = FLOAT_TOLERANCE if type_ == "FLOAT32" else 0
    return assert_agrees(op, [x], [y], options(**given), version=3, tolerance=tolerance)[0]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
@pytest.mark.parametrize(
    ("window", "stride"), [((2, 2), (2, 2)), ((3, 5), (1, 2)), ((1, 1), (3, 3)), ((13, 12), (1, 1))]
)
def test_windows(op, type_, padding, window, stride):
    assert_pool_agrees(op, type_, (2, 13, 12, 5), window=window, stride=stride, padding=padding)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
@pytest.mark.parametrize("act", [Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
def test_fused_activation(op, type_, act):
    assert_pool_agrees(op, type_, (1, 9, 9, 4), act=act)


@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"])
@pytest.mark.parametrize("pixels", [[np.nan, 1, 2, 3], [np.inf, 1, 2, 3], [-np.inf] * 4], ids=str)
def test_nan_and_infinities(op, pixels):
    x = np.repeat(np.float32(pixels), 9).reshape(1, 2, 2, 9)
    assert_agrees(op, [fed(x)], ["FLOAT32"], options(padding=Padding.VALID))


def test_nan_counts_nothing_for_the_largest():
    x = np.float32([[np.nan, 1, np.nan], [2, np.nan, np.nan]]).reshape(1, 2, 3, 1)
    given = options(padding=Padding.VALID)
    (y,) = assert_agrees("MAX_POOL_2D", [fed(x)], ["FLOAT32"], given)
    assert y.ravel().tolist() == [2, 1]
    (y,) = assert_agrees("MAX_POOL_2D", [fed(x[:, :, 2:].repeat(2, 2))], ["FLOAT32"], given)
    assert y.item() == np.finfo(np.float32).min


@pytest.mark.parametrize("type_", ["UINT8", "INT8", "INT16"])
def test_averages_round_halves_away_from_zero(type_):
    values = np.array([[-3, -2], [3, 2]]) if type_ != "UINT8" else np.array([[2, 3], [4, 5]])
    x = fed(values.astype(TYPES[type_]).reshape(2, 1, 2, 1), scale=1.0)
    y = tensor((), type_, scale=1.0)
    (mean,) = assert_agrees("AVERAGE_POOL_2D", [x], [y], options((1, 2), (1, 2)), version=3)
    assert mean.ravel().tolist() == ([-3, 3] if type_ != "UINT8" else [3, 5])


def test_sums_of_large_windows_stay_exact():
    assert_pool_agrees("AVERAGE_POOL_2D", "INT16", (1, 64, 64, 3), window=(64, 64), stride=(64, 64))


@pytest.mark.parametrize("act", [Act.NONE, Act.RELU6])
def test_l2(act):
    rng = np.random.default_rng(0)
    x = fed(rng.standard_normal((2, 9, 8, 3)).astype(np.float32))
    given = options((3, 2), (2, 2), act=act)
    assert_agrees("L2_POOL_2D", [x], ["FLOAT32"], given, tolerance=FLOAT_TOLERANCE)


@pytest.mark.parametrize(("shape", "expected"), [((9, 4), (4, 0)), ((9, 3), (0, 0))], ids=str)
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"])
def test_windows_that_fit_nowhere(op, shape, expected):
    given = {"window": (3, 7), "stride": (2, 2), "padding": Padding.VALID}
    x = fed(np.zeros((1, *shape, 2), np.float32))
    (y,) = assert_agrees(op, [x], ["FLOAT32"], options(**given))
    assert y.shape == (1, *expected, 2)


def refusal(op="AVERAGE_POOL_2D", shape=(1, 4, 4, 1), dtype="f4", y="FLOAT32", **given):
    return (op, [fed(np.zeros(shape, dtype))], [y], options(**given))


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (refusal(shape=(4, 4, 1)), "4 dimensions"),
        (refusal(y="INT8"), "types"),
        (refusal(stride=(0, 1)), "stride is 0"),
        (refusal(dtype="i4", y="INT32"), "INT32"),
        (refusal(op="MAX_POOL_2D", dtype="i4", y="INT32"), "INT32"),
        (refusal(op="L2_POOL_2D", dtype="i1", y="INT8"), "INT8"),
    ],
)
def test_refused_by_both(case, match):
    assert_both_refuse(*case, match=match)
