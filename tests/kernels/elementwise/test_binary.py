"""ADD, SUB, MUL and DIV, plain and quantized; POW, SQUARED_DIFFERENCE and ATAN2; custom Atan2."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph.errors import NodeError
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import AddOptions, DivOptions, MulOptions, SubOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.quantized_pairs import every_pair, random_floats, random_integers

OPTIONS = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions, "DIV": DivOptions}
NUMPY = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}

SCALES = [(0.1, 0.2, 0.3), (0.05, 0.017, 0.09), (1.0, 0.5, 1.3), (0.003, 0.8, 0.7)]
ZERO_POINTS = [(0, 0, 0), (3, -7, 11), (-128, 127, -1)]
ACTIVATIONS = [Act.NONE, Act.RELU, Act.RELU_N1_TO_1, Act.RELU6]


def plain_options(op, activation=Act.NONE):
    return OPTIONS[op](fused_activation_function=activation)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_plain_operands_broadcast_and_are_clamped(op, dtype, activation):
    a = random_floats(1, (3, 1, 5)).astype(dtype)
    b = random_floats(2, (4, 5)).astype(dtype)
    inputs = [fed(a), fed(b)]
    assert_agrees(op, inputs, [dtype.upper()], plain_options(op, activation), tolerance=1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (5,), (3, 5), (1, 3, 5), (0,), (0, 1)])
@pytest.mark.parametrize("is_first", [False, True])
def test_constants_of_fewer_dimensions_broadcast(shape, is_first):
    """Those of one element, or of as many as the output has, are given its shape beforehand."""
    x = random_floats(1, (1, 3, 0 if 0 in shape else 5))
    if shape == (0, 1):
        x = random_floats(1, (1, 0, 1))
    c = random_floats(2, shape)
    inputs = [constant(c), fed(x)] if is_first else [fed(x), constant(c)]
    assert_agrees("SUB", inputs, ["FLOAT32"], plain_options("SUB", Act.RELU), tolerance=1e-6)


@pytest.mark.parametrize(("op", "version"), [("ADD", 6), ("MUL", 8)])
def test_float16(op, version):
    a, b = (random_floats(seed, (5, 7)).astype(np.float16) for seed in (1, 2))
    options = plain_options(op)
    inputs = [fed(a), fed(b)]
    assert_agrees(op, inputs, ["FLOAT16"], options, version=version, tolerance=2e-3)


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_integers_wrap_round(op):
    a, b = np.int32([2**31 - 1, -(2**31)]), np.int32([2, 3])
    with np.errstate(over="ignore"):
        expected = NUMPY[op](a, b)
    model = one_op_model(
        op, [tensor((2,), "INT32")] * 1 + [tensor((2,), "INT32")], [tensor((2,), "INT32")],
        plain_options(op),
    )  # fmt: skip
    np.testing.assert_array_equal(delegraph_outputs(model, [a, b])[0], expected)


def quantized_case(op, type, a, b, shape, scales, zero_points, activation):
    shift = 128 if type == "UINT8" else 0
    zeros = [0 if type == "INT16" else z + shift for z in zero_points]
    assert_agrees(
        op,
        [
            fed(a, scale=scales[0], zero_point=zeros[0]),
            fed(b, scale=scales[1], zero_point=zeros[1]),
        ],
        [tensor(shape, type, scale=scales[2], zero_point=zeros[2])],
        plain_options(op, activation),
        version=2,
    )


@pytest.mark.parametrize("activation", [Act.NONE, Act.RELU6])
@pytest.mark.parametrize("zero_points", ZERO_POINTS)
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_every_pair_of_8_bit_operands_is_exact(op, type, scales, zero_points, activation):
    a, b = every_pair(type)
    quantized_case(op, type, a, b, a.shape, scales, zero_points, activation)


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_int16_operands_are_exact(op, scales):
    a, b = (random_integers(seed, "INT16", (40, 1003)) for seed in (3, 4))
    quantized_case(op, "INT16", a, b, a.shape, scales, (0, 0, 0), Act.RELU)


BROADCASTS = [
    ((37,), (37,)),
    ((300, 41), (41,)),
    ((300, 41), (300, 1)),
    ((300, 1), (300, 41)),
    ((5, 37, 3), (5, 1, 3)),
    ((3, 1, 29), (3, 5, 29)),
    ((1, 7, 1, 19), (4, 1, 3, 1)),
    ((2, 1, 3, 1, 5), (1, 4, 1, 6, 5)),
    ((), (100,)),
]


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8", "INT16"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_what_the_vector_loops_leave_over_is_exact(op, type, shapes):
    a, b = (random_integers(seed, type, shape) for seed, shape in enumerate(shapes))
    shape = np.broadcast_shapes(*shapes)
    quantized_case(op, type, a, b, shape, (0.05, 0.017, 0.09), (3, -7, 11), Act.NONE)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_a_constant_of_one_element_is_exact(op, shape):
    a = random_integers(5, "INT8", (70, 41))
    b = constant(np.full(shape, 77, np.int8), scale=0.2, zero_point=-5)
    output = [tensor(a.shape, "INT8", scale=0.3, zero_point=1)]
    options = plain_options(op)
    assert_agrees(op, [fed(a, scale=0.1, zero_point=3), b], output, options, version=2)
    assert_agrees(op, [b, fed(a, scale=0.1, zero_point=3)], output, options, version=2)


OVERFLOWS = {"MUL": (0.5, 0.5, 0.0625), "ADD": (0.5, 0.4, 1 / 4096), "SUB": (0.5, 0.4, 1 / 4096)}


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_results_beyond_16_bits_overflow_alike(op, type, shapes):
    a, b = (random_integers(seed, type, shape) for seed, shape in enumerate(shapes))
    shape = np.broadcast_shapes(*shapes)
    quantized_case(op, type, a, b, shape, OVERFLOWS[op], (3, -7, 11), Act.NONE)


@settings(max_examples=25)
@given(
    op=st.sampled_from(["ADD", "SUB", "MUL"]),
    type=st.sampled_from(["UINT8", "INT8"]),
    scales=st.tuples(*[st.floats(1 / 128, 0.5, width=32)] * 3),
    zero_points=st.tuples(*[st.integers(-128, 127)] * 3),
    activation=st.sampled_from(ACTIVATIONS),
    seed=st.integers(0, 99),
)
def test_any_8_bit_quantization_is_exact(op, type, scales, zero_points, activation, seed):
    a, b = (random_integers(seed + i, type, (1, 999)) for i in range(2))
    quantized_case(op, type, a, b, a.shape, scales, zero_points, activation)


@pytest.mark.parametrize("exponents", [(-15, -15, -15), (-15, -13, -13), (-12, -15, -12)])
@pytest.mark.parametrize("op", ["ADD", "SUB"])
def test_int16_with_power_of_two_scales_is_exact(op, exponents):
    a, b = (random_integers(seed, "INT16", (500,)) for seed in (6, 7))
    inputs = [fed(x, scale=2.0**e) for x, e in zip((a, b), exponents, strict=False)]
    output = [tensor(a.shape, "INT16", scale=2.0 ** exponents[2])]
    assert_agrees(op, inputs, output, OPTIONS[op](pot_scale_int16=True))


@pytest.mark.parametrize("op", ["ADD", "SUB"])
def test_power_of_two_scales_must_suit_the_output(op):
    x = np.zeros(3, np.int16)
    inputs = [fed(x, scale=2.0**-12), fed(x, scale=2.0**-15)]
    output = [tensor((3,), "INT16", scale=2.0**-13)]
    options = OPTIONS[op](pot_scale_int16=True)
    assert_both_refuse(op, inputs, output, options, match="larger input scale")


@pytest.mark.parametrize("type", ["UINT8", "INT8"])
def test_mul_of_int16_into_8_bit_is_exact(type):
    a, b = (random_integers(seed, "INT16", (700,)) for seed in (8, 9))
    inputs = [fed(a, scale=2.0**-15), fed(b, scale=2.0**-15)]
    zero_point = 128 if type == "UINT8" else 0
    output = [tensor(a.shape, type, scale=2.0**-7, zero_point=zero_point)]
    assert_agrees("MUL", inputs, output, MulOptions(), version=3)


def test_mul_of_constants_is_a_constant():
    a, b = np.float32([1, 2]), np.float32([3, 4])
    assert_agrees("MUL", [constant(a), constant(b)], ["FLOAT32"], MulOptions())


@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT16"])
def test_mul_of_quantized_constants_is_a_constant(type):
    a, b = (random_integers(seed, type, shape) for seed, shape in enumerate([(5,), (7, 4, 5)]))
    inputs = [constant(a, scale=0.1), constant(b, scale=0.2)]
    assert_agrees("MUL", inputs, [tensor((), type, scale=0.9)], MulOptions(), version=2)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV"])
def test_infinite_results_become_the_largest_numbers(op, dtype):
    if dtype == "float16" and op not in ("ADD", "MUL"):
        pytest.skip("the official kernel lacks it")
    limit = np.finfo(dtype).max
    a = np.array([limit, -limit, np.inf, -np.inf, np.nan, 1], dtype)
    b = np.array([limit, 2, 0.25], dtype)[:, None]
    version = {"ADD": 6, "MUL": 8}.get(op, 1)
    for activation in (Act.NONE, Act.RELU, Act.RELU6):
        options = plain_options(op, activation)
        inputs = [fed(a), fed(b)]
        assert_agrees(op, inputs, [dtype.upper()], options, version=version, tolerance=1e-6)


def test_a_negative_bound_of_an_unsigned_type_wraps_round():
    a, b = np.uint32([0, 1, 7]), np.uint32([1, 1, 3])
    options = MulOptions(fused_activation_function=Act.RELU_N1_TO_1)
    (y,) = assert_agrees("MUL", [fed(a), fed(b)], ["UINT32"], options, version=6)
    assert y.tolist() == [1, 1, 1]


@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT16"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV"])
def test_quantized_scalars(op, type):
    inputs = [fed(np.array(q, type.lower()), scale=0.3) for q in (100, 7)]
    output = [tensor((), type, scale=0.25)]
    (y,) = assert_agrees(op, inputs, output, plain_options(op), version=2)
    assert y.shape == ()


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
def test_every_pair_of_8_bit_operands_divides_exactly(type, scales):
    a, b = every_pair(type)
    zero_point = 5
    b[b == zero_point] = 6
    inputs = [fed(a, scale=scales[0], zero_point=9), fed(b, scale=scales[1], zero_point=zero_point)]
    output = [tensor(a.shape, type, scale=scales[2], zero_point=20)]
    assert_agrees("DIV", inputs, output, DivOptions(), version=2)


def test_int16_sums_need_scales_where_the_output_has_one():
    x = tensor((2,), "INT16")
    model = one_op_model("ADD", [x, x], [tensor((2,), "INT16", scale=0.5)], AddOptions())
    with pytest.raises(NodeError, match=r"scale 0\.0, expected a positive one"):
        delegraph_outputs(model, [np.int16([5, 6])])


def test_int32_division_truncates_towards_zero():
    a, b = np.int32([7, -7, 7, -7]), np.int32([2, 2, -2, -2])
    (y,) = assert_agrees("DIV", [fed(a), fed(b)], ["INT32"], DivOptions())
    assert y.tolist() == [3, -3, -3, 3]


def test_float_division_by_zero_gives_the_largest_number():
    a, b = np.float32([1, -1, 6]), np.float32([0, 0, 3])
    (y,) = assert_agrees("DIV", [fed(a), fed(b)], ["FLOAT32"], DivOptions())
    assert y[0] == np.finfo(np.float32).max


@pytest.mark.parametrize("x", [np.zeros(2, np.int32), np.zeros(2, np.uint8)], ids=str)
def test_integer_division_by_zero_is_refused(x):
    scale = None if x.dtype == np.int32 else 0.1
    inputs = [fed(x, scale=scale), fed(x, scale=scale)]
    output = [tensor((2,), x.dtype.name.upper(), scale=scale)]
    assert_both_refuse("DIV", inputs, output, DivOptions(), match="division by zero")


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV"])
def test_shapes_that_do_not_broadcast_are_refused(op):
    inputs = [fed(np.ones(3, np.float32)), fed(np.ones(4, np.float32))]
    assert_both_refuse(op, inputs, ["FLOAT32"], plain_options(op), match="do not broadcast")


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV"])
def test_operands_of_two_types_are_refused(op):
    inputs = [fed(np.ones(3, np.float32)), fed(np.ones(3, np.int32))]
    assert_both_refuse(op, inputs, ["FLOAT32"], plain_options(op), match="expected the same")


@pytest.mark.parametrize("op", ["SUB", "MUL", "DIV"])
def test_bool_operands_are_refused(op):
    inputs = [fed(np.ones(3, bool)), fed(np.ones(3, bool))]
    assert_both_refuse(op, inputs, ["BOOL"], plain_options(op), match="has type BOOL")


@pytest.mark.parametrize("op", ["ADD", "MUL"])
def test_int16_zero_points_are_refused(op):
    x = np.zeros(3, np.int16)
    inputs = [fed(x, scale=0.1, zero_point=1), fed(x, scale=0.1)]
    output = [tensor((3,), "INT16", scale=0.1)]
    assert_both_refuse(op, inputs, output, plain_options(op), match="zero point 1, expected 0")


def test_the_output_takes_the_type_of_the_operands():
    x = np.uint8([1, 250])
    inputs = [fed(x, scale=0.1), fed(x, scale=0.1)]
    (y,) = assert_agrees("ADD", inputs, [tensor((2,), "FLOAT32", scale=0.2)], AddOptions())
    assert y.dtype == np.uint8


def test_pow_of_floats_broadcasts():
    a, b = np.abs(random_floats(1, (3, 1, 4))), random_floats(2, (4,))
    assert_agrees("POW", [fed(a), fed(b)], ["FLOAT32"], tolerance=1e-5)


def test_pow_of_integers():
    a, b = np.int32([-3, 0, 2, 7]), np.int32([3, 0, 10, 2])
    (y,) = assert_agrees("POW", [fed(a), fed(b)], ["INT32"])
    assert y.tolist() == [-27, 1, 1024, 49]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)], ids=str)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 33])
def test_one_exponent_for_all_wraps_around(exponent, shape):
    a, b = np.int32([46341, -3, 5, -70001]), np.full(shape, exponent, np.int32)
    assert_agrees("POW", [fed(a), fed(b)], ["INT32"])


def test_powers_of_many_exponents_that_overflow_are_the_least_integer():
    a, b = np.int32([46341, -3, 5]), np.int32([2, 33, 14])
    (y,) = assert_agrees("POW", [fed(a), fed(b)], ["INT32"])
    assert y.tolist() == [-(2**31)] * 3


def test_pow_refuses_negative_integer_exponents():
    inputs = [fed(np.int32([2])), fed(np.int32([-1]))]
    assert_both_refuse("POW", inputs, ["INT32"], match="negative values")


def test_atan2_knows_the_quadrant():
    a, b = np.float32([1, 1, -1, -1, 0]), np.float32([1, -1, 1, -1, -1])
    assert_agrees("ATAN2", [fed(a), fed(b)], ["FLOAT32"], tolerance=1e-6)


def test_atan2_of_two_ranks_is_refused():
    inputs = [fed(np.ones((2, 3), np.float32)), fed(np.ones(3, np.float32))]
    assert_both_refuse("ATAN2", inputs, ["FLOAT32"], match=r"shape \[3\], expected \[2, 3\]")


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_squared_difference_broadcasts(dtype):
    a, b = random_floats(3, (3, 1, 5)).astype(dtype), random_floats(4, (4, 5)).astype(dtype)
    (y,) = assert_agrees("SQUARED_DIFFERENCE", [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, (a - b) ** 2)


@pytest.mark.parametrize("scales", [(0.1, 0.2, 0.3), (0.05, 0.017, 0.09), (0.01, 0.5, 0.3)])
def test_every_int8_pair_of_squared_difference_is_exact(scales):
    a, b = every_pair("INT8")
    inputs = [fed(a, scale=scales[0], zero_point=9), fed(b, scale=scales[1], zero_point=-20)]
    output = [tensor(a.shape, "INT8", scale=scales[2], zero_point=-100)]
    assert_agrees("SQUARED_DIFFERENCE", inputs, output, version=2)


@pytest.mark.parametrize("op", ["POW", "SQUARED_DIFFERENCE"])
def test_other_types_are_refused(op):
    x = np.int64([1])
    assert_both_refuse(op, [fed(x), fed(x)], ["INT64"], match="has type INT64")


def custom_atan2(a, b):  # the official Python package does not register it
    model, arrays = model_and_arrays("Atan2", [fed(a), fed(b)], [a.dtype.name.upper()])
    return delegraph_outputs(model, arrays)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_custom_atan2_are_those_of_the_c_library(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 3, 5)).astype(dtype)
    expected = [math.atan2(y, x) for y, x in zip(a.flat, b.flat, strict=True)]
    np.testing.assert_allclose(custom_atan2(a, b).reshape(-1), expected, rtol=1e-6)


def test_custom_atan2_refuses_other_shapes():
    with pytest.raises(RuntimeError, match=r"shape \[1\], expected \[2\]"):
        custom_atan2(np.zeros(2, np.float32), np.zeros(1, np.float32))
