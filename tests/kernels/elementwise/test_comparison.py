"""EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER and GREATER_EQUAL."""

import numpy as np
import pytest

from delegraph.testing import delegraph_outputs
from delegraph.testing.operator_case import fed, operator_case, texts
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import every_pair, random_integers

OPS = ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
@pytest.mark.parametrize("op", OPS)
def test_values_broadcast(op, dtype):
    a = (np.arange(30).reshape(5, 1, 6) % 4).astype(dtype)
    b = (np.arange(24).reshape(4, 6) % 3).astype(dtype)
    (y,) = assert_agrees(op, [fed(a), fed(b)], ["BOOL"])
    assert y.shape == (5, 4, 6)


@pytest.mark.parametrize("op", OPS)
def test_nan_is_only_unequal(op):
    a = np.float32([np.nan, 1, np.nan])
    assert_agrees(op, [fed(a), fed(np.float32([1, np.nan, np.nan]))], ["BOOL"])


@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.05, 0.09), (0.4, 0.011), (1e-4, 2e-5)], ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
@pytest.mark.parametrize("op", OPS)
def test_8_bit_operands_compare_by_value(op, type, scales):
    a, b = every_pair(type)
    inputs = [fed(a, scale=scales[0], zero_point=7), fed(b, scale=scales[1], zero_point=20)]
    assert_agrees(op, inputs, ["BOOL"], version=2)


@pytest.mark.parametrize("op", OPS)
def test_int16_operands_with_scales(op):
    a, b = (random_integers(seed, "INT16", (100, 100)) // 100 for seed in (1, 2))
    inputs = [fed(a, scale=0.01), fed(b, scale=0.013)]
    assert_agrees(op, inputs, ["BOOL"], version=2)


@pytest.mark.parametrize("op", ["EQUAL", "NOT_EQUAL"])
def test_bools_and_strings_are_equal_or_not(op):
    bools = np.array([True, False]), np.array([True, True])
    assert_agrees(op, [fed(x) for x in bools], ["BOOL"])
    strings = texts(b"a", b"bc", b""), texts(b"a", b"b", b"c")
    assert_agrees(op, [fed(x, "STRING") for x in strings], ["BOOL"], version=2)


@pytest.mark.parametrize("op", OPS[2:])
def test_bools_have_no_order(op):
    x = np.array([True, False])
    assert_both_refuse(op, [fed(x), fed(x)], ["BOOL"], match="has type BOOL")


@pytest.mark.parametrize("scales", [(1.8, 0.125), (1.35, 2.0), (17.0, 5.3), (1e-12, 3.0)], ids=str)
@pytest.mark.parametrize("op", OPS)
def test_scales_above_1_compare_as_oddly(op, scales):
    a, b = every_pair("INT8")
    inputs = [
        fed(x, scale=s, zero_point=z) for x, s, z in zip((a, b), scales, (3, -7), strict=True)
    ]
    assert_agrees(op, inputs, ["BOOL"], version=2)


@pytest.mark.parametrize("type", ["UINT8", "INT8"])
@pytest.mark.parametrize("scale", [1.0, None])
@pytest.mark.parametrize("op", OPS)
def test_a_scale_of_1_or_none_compares_the_integers(op, scale, type):
    # The official kernels end the process.
    a, b = every_pair(type)
    case = operator_case(op, [fed(x, scale=scale) for x in (a, b)], ["BOOL"], version=2)
    (y,) = delegraph_outputs(case.model(), [a, b])
    assert (y == getattr(np, op.lower())(a, b)).all()
