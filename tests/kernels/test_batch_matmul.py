"""BATCH_MATMUL, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.options import BatchMatMulOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse

GENERATORS = {
    "f4": lambda rng, shape: rng.normal(0, 1, shape).astype(np.float32),
    "i1": lambda rng, shape: rng.integers(-128, 128, shape).astype(np.int8),
    "i2": lambda rng, shape: rng.integers(-32768, 32768, shape).astype(np.int16),
}
SHAPES = [
    ((3, 4), (4, 5), {}),
    ((2, 7, 3, 4), (7, 4, 5), {}),
    ((2, 1, 3, 4), (1, 7, 5, 4), {"adj_y": True}),
    ((2, 4, 3), (2, 4, 5), {"adj_x": True}),
    ((2, 300, 64), (1, 64, 33), {}),
    ((2, 3, 6, 4), (4, 5), {}),
    ((2, 3, 6, 4), (2, 1, 4, 5), {}),
    ((1, 2, 1, 3, 4), (3, 1, 2, 5, 4), {"adj_y": True}),
]
CONSTANT = pytest.mark.parametrize("is_constant", [False, True])
SHAPED = pytest.mark.parametrize(("x", "w", "adjoint"), SHAPES, ids=str)


def output_shape(x, w, adj_x=False, adj_y=False):
    rows, columns = x[-1 if adj_x else -2], w[-2 if adj_y else -1]
    return (*np.broadcast_shapes(x[:-2], w[:-2]), rows, columns)


def check(x, w, adjoint, kinds, scales, zero_points, output, *, is_constant, seed=0, **options):
    """Check a case; kinds, scales and zero points are those of the two inputs and the output."""
    rng = np.random.default_rng(seed)
    a, b = (GENERATORS[kind](rng, shape) for kind, shape in zip(kinds, (x, w), strict=True))
    quantized = [
        {} if scale is None else {"scale": scale, "zero_point": zero_point}
        for scale, zero_point in zip(scales, zero_points, strict=True)
    ]
    right = constant(b, **quantized[1]) if is_constant else fed(b, **quantized[1])
    y = tensor(output_shape(x, w, **adjoint), output, **quantized[2])
    tolerance = options.pop("tolerance", 0.0)
    return assert_agrees(
        "BATCH_MATMUL",
        [fed(a, **quantized[0]), right],
        [y],
        BatchMatMulOptions(**adjoint, **options),
        version=3,
        tolerance=tolerance,
    )


@SHAPED
@CONSTANT
def test_floats_agree_with_the_official_kernel(x, w, adjoint, is_constant):
    none = (None,) * 3
    check(
        x, w, adjoint, ("f4", "f4"), none, none, "FLOAT32", is_constant=is_constant, tolerance=2e-5
    )


def test_floats_are_numpys_product():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3, 4)).astype("f4"), rng.normal(size=(2, 5, 4)).astype("f4")
    inputs = [tensor(a.shape), tensor(b.shape)]
    options = BatchMatMulOptions(adj_y=True)
    model = one_op_model("BATCH_MATMUL", inputs, [tensor((2, 3, 5))], options)
    (y,) = delegraph_outputs(model, [a, b])
    np.testing.assert_allclose(y, np.einsum("nik,njk->nij", a, b), rtol=1e-5, atol=1e-6)


@SHAPED
@CONSTANT
def test_int8_is_bit_exact(x, w, adjoint, is_constant):
    scales, zero_points = (0.02, 0.03, 0.3), (3, -4, 5)
    check(x, w, adjoint, ("i1", "i1"), scales, zero_points, "INT8", is_constant=is_constant)


@SHAPED
def test_int8_may_give_sums_in_int32(x, w, adjoint):
    scales, zero_points = (0.02, 0.03, 0.3), (3, -4, 5)
    check(x, w, adjoint, ("i1", "i1"), scales, zero_points, "INT32", is_constant=False)


@SHAPED
@CONSTANT
def test_int16_is_bit_exact(x, w, adjoint, is_constant):
    scales = (0.02, 0.03, 0.7)
    check(x, w, adjoint, ("i2", "i2"), scales, (0, 0, 0), "INT16", is_constant=is_constant)


@pytest.mark.parametrize("scale", [3e-9, 1e-4])
def test_int16_is_bit_exact_where_sums_leave_32_bits(scale):
    scales = (2e-5, 4e-4, scale)
    check((40, 256), (256, 50), {}, ("i2", "i2"), scales, (0, 0, 0), "INT16", is_constant=True)


@pytest.mark.parametrize("scale", [1e-3, 1e-7, 1e-9])
def test_int8_is_bit_exact_where_sums_leave_32_bits(scale):
    scales = (0.02, 0.03, scale)
    check((40, 256), (256, 50), {}, ("i1", "i1"), scales, (3, -4, 5), "INT8", is_constant=True)


@SHAPED
def test_int16_by_int8_is_bit_exact(x, w, adjoint):
    scales = (0.002, 0.0003, 0.07)
    check(x, w, adjoint, ("i2", "i1"), scales, (0, 0, 0), "INT16", is_constant=True)


@pytest.mark.parametrize(("kind", "output"), [("i2", "INT16"), ("i1", "INT8")])
def test_per_channel_weights_of_integers_give_zeros_like_the_official_kernel(kind, output):
    rng = np.random.default_rng(0)
    x = fed(GENERATORS[kind](rng, (6, 40)), scale=0.01)
    w = constant(GENERATORS["i1"](rng, (40, 5)), scale=rng.uniform(0.01, 0.03, 5), axis=1)
    y = tensor((6, 5), output, scale=0.1)
    (zeros,) = assert_agrees("BATCH_MATMUL", [x, w], [y], BatchMatMulOptions(), version=3)
    assert not zeros.any()


@pytest.mark.parametrize(("x", "w", "adjoint"), SHAPES[:-1], ids=str)  # fewer than 5 dimensions
@pytest.mark.parametrize("asymmetric", [False, True])
def test_float_rows_by_int8_weights_agree(x, w, adjoint, asymmetric):
    check(
        x,
        w,
        adjoint,
        ("f4", "i1"),
        (None, 0.03, None),
        (None, 0, None),
        "FLOAT32",
        is_constant=True,
        asymmetric_quantize_inputs=asymmetric,
        tolerance=2e-5,
    )


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_float_rows_by_int8_weights_with_a_scale_a_column_agree(adj_y, asymmetric):
    rng = np.random.default_rng(0)
    shape, axis = ((5, 40), 0) if adj_y else ((40, 5), 1)
    x = fed(rng.normal(0, 1, (2, 6, 40)).astype(np.float32))
    w = constant(GENERATORS["i1"](rng, shape), scale=rng.uniform(0.01, 0.03, 5), axis=axis)
    options = BatchMatMulOptions(adj_y=adj_y, asymmetric_quantize_inputs=asymmetric)
    inputs = [x, w]
    assert_agrees("BATCH_MATMUL", inputs, ["FLOAT32"], options, version=3, tolerance=2e-5)


REFUSALS = [
    ((3, 4), (5, 6), r"shapes \[3, 4\] .* and \[5, 6\]"),
    ((2, 3, 4), (3, 4, 5), "cannot be multiplied"),
    ((1, 1, 1, 1, 3, 4), (4, 5), "2 to 5 dimensions"),
]


@pytest.mark.parametrize(("x", "w", "message"), REFUSALS)
def test_shapes_that_do_not_fit_are_refused(x, w, message):
    inputs = [fed(np.zeros(x, np.float32)), fed(np.zeros(w, np.float32))]
    assert_both_refuse("BATCH_MATMUL", inputs, ["FLOAT32"], BatchMatMulOptions(), match=message)


def test_int16_with_a_zero_point_is_refused():
    inputs = [fed(np.zeros((2, 2), np.int16), scale=1.0, zero_point=1) for _ in range(2)]
    y = tensor((2, 2), "INT16", scale=1.0)
    assert_both_refuse("BATCH_MATMUL", inputs, [y], BatchMatMulOptions(), match="zero point")


def test_types_that_do_not_go_together_are_refused():
    inputs = [fed(np.zeros((2, 2), np.int8), scale=1.0), fed(np.zeros((2, 2), np.float32))]
    y = tensor((2, 2), "INT8", scale=1.0)
    assert_both_refuse("BATCH_MATMUL", inputs, [y], BatchMatMulOptions(), match="types")


@pytest.mark.parametrize("kind", ["f4", "i1"])
def test_stacks_without_matrices_agree(kind):
    w = constant(GENERATORS[kind](np.random.default_rng(0), (4, 5)), scale=0.5)
    x = fed(np.zeros((3, 0, 2, 4), np.float32))
    (y,) = assert_agrees("BATCH_MATMUL", [x, w], ["FLOAT32"], BatchMatMulOptions(), version=4)
    assert y.shape == (3, 0, 2, 5)
