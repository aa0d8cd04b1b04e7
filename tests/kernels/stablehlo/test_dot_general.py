"""STABLEHLO_DOT_GENERAL, against the specification."""

import ml_dtypes
import numpy as np
import pytest

from delegraph.schema.options import StablehloDotGeneralOptions
from delegraph.testing import tensor
from support.stablehlo import assert_refused, assert_result


def dims(batch=((), ()), contract=((), ())):
    return StablehloDotGeneralOptions(
        lhs_batching_dimensions=batch[0],
        rhs_batching_dimensions=batch[1],
        lhs_contracting_dimensions=contract[0],
        rhs_contracting_dimensions=contract[1],
    )


# shapes, options, and the same in Einstein's notation
CASES = [
    ((3, 4), (4, 5), dims(contract=((1,), (0,))), "ij,jk->ik"),
    ((4, 3), (5, 4), dims(contract=((0,), (1,))), "ji,kj->ik"),
    ((2, 3, 4), (4, 2, 5), dims(((0,), (1,)), ((2,), (0,))), "bij,jbk->bik"),
    ((2, 3, 4, 5), (5, 3, 6, 2), dims(((1, 0), (1, 3)), ((3,), (0,))), "abij,jbka->baik"),
    ((2, 3, 4), (4, 3, 5), dims(contract=((2, 1), (0, 1))), "ijk,kjl->il"),
    ((2, 3), (4,), dims(), "ij,k->ijk"),
    ((4,), (4,), dims(contract=((0,), (0,))), "i,i->"),
    ((3, 0), (0, 5), dims(contract=((1,), (0,))), "ij,jk->ik"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "complex64"])
@pytest.mark.parametrize(("left", "right", "options", "formula"), CASES)
def test_products_are_summed_over_contracting_dimensions(left, right, options, formula, dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(dtype) for shape in (left, right))
    expected = np.einsum(formula, a, b).astype(dtype)
    assert_result("DOT_GENERAL", [a, b], expected, options)


def test_sums_may_be_of_a_wider_type():
    a = np.full((1, 300), 127, np.int8)
    expected = np.int32([[300 * 127 * 127]])
    assert_result("DOT_GENERAL", [a, a.T], expected, dims(contract=((1,), (0,))))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("output", [np.int8, np.int32, np.int64])
def test_integer_sums_wrap(dtype, output):
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max, (9, 9), dtype, endpoint=True) for _ in range(2))
    expected = (a.astype(object) @ b.astype(object)) & 0xFFFFFFFFFFFFFFFF
    wrapped = expected.astype(np.uint64).astype(output)
    assert_result("DOT_GENERAL", [a, b], wrapped, dims(contract=((1,), (0,))))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_are_summed_as_float32(dtype):
    a = np.full((1, 4096), 1, dtype)  # a sum in bfloat16 stops at 256
    assert_result("DOT_GENERAL", [a, a.T], np.array([[4096]], dtype), dims(contract=((1,), (0,))))


def test_contracting_dimensions_of_other_lengths_are_refused():
    inputs, options = [np.zeros((2, 3), np.float32)] * 2, dims(contract=((1,), (0,)))
    message = r"contracting dimensions have lengths \[3\] and \[2\]"
    assert_refused("DOT_GENERAL", inputs, tensor((2, 3)), options, match=message)


def test_a_dimension_that_is_batching_and_contracting_is_refused():
    inputs, options = [np.zeros((2, 2), np.float32)] * 2, dims(((0,), (0,)), ((0,), (0,)))
    assert_refused("DOT_GENERAL", inputs, tensor((2, 2)), options, match=r"axes \[0\] are both")
