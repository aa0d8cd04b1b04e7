"""ABS, NEG, EXP, LOG, SIN, COS, SQRT, RSQRT, SQUARE, FLOOR, CEIL, ROUND and SIGN; custom Sign."""

import numpy as np
import pytest

from delegraph.testing import delegraph_outputs, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.quantized_pairs import every_value, random_floats

FLOAT_OPS = ["ABS", "NEG", "EXP", "LOG", "SIN", "COS", "SQRT", "RSQRT", "SQUARE"]
FLOAT_OPS += ["FLOOR", "CEIL", "ROUND", "SIGN"]
EDGES = np.float32([0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, np.inf, -np.inf, np.nan, 1e-30, 1e30])
ROOTS = {"SQRT", "RSQRT"}  # refuse negative values
SCALES = [(0.1, 0.1), (0.05, 0.09), (0.0321, 0.5), (0.4, 0.011), (1.0, 0.01)]


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_floats(op):
    x = np.concatenate([random_floats(1, (500,)), EDGES])
    assert_agrees(op, [fed(x)], ["FLOAT32"], tolerance=2e-6)


@pytest.mark.parametrize(("op", "version"), [("NEG", 1), ("SIN", 2), ("COS", 2), ("FLOOR", 1)])
def test_float16(op, version):
    x = random_floats(2, (500,)).astype(np.float16)
    assert_agrees(op, [fed(x)], ["FLOAT16"], version=version, tolerance=2e-3)


def test_round_takes_halves_to_even():
    (y,) = assert_agrees("ROUND", [fed(np.float32([0.5, 1.5, -2.5]))], ["FLOAT32"])
    assert y.tolist() == [0, 2, -2]


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        ("ABS", "int16"), ("ABS", "int32"), ("SIGN", "int32"),
        ("NEG", "int8"), ("NEG", "int16"), ("NEG", "int32"), ("NEG", "int64"),
    ],
)  # fmt: skip
def test_integers_as_stored(op, dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, -3, 0, 4, info.max], dtype)
    assert_agrees(op, [fed(x)], [dtype.upper()])


@pytest.mark.parametrize("zero_points", [(0, 0), (-100, 50), (30, -128)], ids=str)
@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("op", ["ABS", "EXP", "LOG", "RSQRT", "SQRT"])
def test_every_int8_is_exact(op, scales, zero_points):
    x = every_value("INT8")
    x = np.tile(x[x >= zero_points[0]] if op in ROOTS else x, 20)  # long enough for each path
    inputs = [fed(x, scale=scales[0], zero_point=zero_points[0])]
    output = [tensor(x.shape, "INT8", scale=scales[1], zero_point=zero_points[1])]
    assert_agrees(op, inputs, output, version=2)


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("op", ["ABS", "EXP", "LOG", "RSQRT", "SQRT"])
def test_every_int16_is_exact(op, scales):
    x = every_value("INT16")
    x = x[x >= 0] if op in ROOTS else x
    output = [tensor(x.shape, "INT16", scale=scales[1] / 100)]
    assert_agrees(op, [fed(x, scale=scales[0] / 100)], output, version=2)


@pytest.mark.parametrize("op", sorted(ROOTS))
@pytest.mark.parametrize("type", ["INT8", "INT16"])
def test_roots_refuse_negative_values_while_invoking(op, type):
    x = np.array([1, -1], type.lower())
    output = [tensor((2,), type, scale=0.1)]
    assert_both_refuse(op, [fed(x, scale=0.1)], output, match="negative", version=2)


@pytest.mark.parametrize("op", ["ABS", "LOG", "RSQRT", "SQRT"])
def test_int8_without_scale_is_refused(op):
    inputs = [fed(np.int8([1]))]
    assert_both_refuse(op, inputs, ["INT8"], match=r"has scale 0\.0", version=2)


@pytest.mark.parametrize("op", ["ABS", "LOG"])
def test_int16_with_zero_point_is_refused(op):
    inputs = [fed(np.int16([1]), scale=0.1, zero_point=1)]
    output = [tensor((1,), "INT16", scale=0.1)]
    assert_both_refuse(op, inputs, output, match="zero point 1, expected 0", version=2)


@pytest.mark.parametrize("op", FLOAT_OPS)
def test_bools_are_refused(op):
    assert_both_refuse(op, [fed(np.array([True]))], ["BOOL"], match="has type BOOL")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_custom_sign_of_what_is_no_number_is_zero(dtype):
    x = np.array([3, -0.5, 0, -0.0, np.inf, -np.inf, np.nan], dtype)
    model, arrays = model_and_arrays("Sign", [fed(x)], [x.dtype.name.upper()])
    (y,) = delegraph_outputs(model, arrays)  # the official Python package does not register it
    assert y.tolist() == [1, -1, 0, 0, 1, -1, 0]
