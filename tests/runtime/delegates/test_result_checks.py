"""What counts as a wrong result of a delegate."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from delegraph.delegation.tolerance import Tolerance
from delegraph.graph.dtypes import pack
from delegraph.graph.model import Quantization
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.runtime.delegates.result_checks import (
    allowed_range,
    difference,
    has_special_values,
    outside,
    wrong_array,
    wrong_bools,
    wrong_shape,
    wrong_special_values,
)
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions, BucketizeOptions, SVDFOptions


def tensor(
    data: Any, type: TensorType = TensorType.FLOAT32, shape: tuple[int, ...] | None = None
) -> Tensor:
    array = np.asarray(data)
    return Tensor(0, type, array.shape if shape is None else shape, name="y", data=array)


# -- arrays --------------------------------------------------------------------------------------


def test_an_array_of_the_tensors_dtype_and_shape_is_right() -> None:
    assert wrong_array(tensor(np.zeros((2, 3), np.float32))) is None
    packed = tensor(np.zeros(2, np.uint8), TensorType.INT4, (3,))
    assert wrong_array(packed) is None


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        (np.zeros(3, np.float64), r"was given an array of float64\[3\], expected float32\[3\]"),
        (np.zeros((3, 1), np.float32), r"float32\[3, 1\], expected float32\[3\]"),
        ([1.0, 2.0, 3.0], r"holds a list, expected an array"),
        (None, r"holds a NoneType"),
    ],
)
def test_other_arrays_are_wrong(data: Any, finding: str) -> None:
    y = tensor(np.zeros(3, np.float32))
    y.data = data
    found = wrong_array(y)
    assert found is not None
    assert re.search(finding, found)


def test_a_shape_is_compared_whole() -> None:
    y = tensor(np.zeros((1, 3), np.float32))
    assert wrong_shape(y, [1, 3]) is None
    assert wrong_shape(y, (3,)) == "Tensor(0, 'y', FLOAT32[1, 3]) has a wrong shape, expected [3]"


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_nan_and_infinity_are_found_in_every_float_type(dtype: Any) -> None:
    for special in (np.nan, np.inf, -np.inf):
        data = np.ones(9, dtype)
        assert not has_special_values(data)
        data[7] = special
        assert has_special_values(data)
    assert not has_special_values(np.full(100, ml_dtypes.finfo(dtype).max, dtype))  # overflows
    assert not has_special_values(np.empty(0, dtype))


def test_opposite_infinities_are_found() -> None:
    assert has_special_values(np.array([np.inf, -np.inf], np.float32))
    assert has_special_values(np.array([1 + 1j * np.nan], np.complex64))


@pytest.mark.parametrize("data", [np.array([True]), np.array([3]), np.array([b"x"], object)])
def test_other_types_have_no_special_values(data: Any) -> None:
    assert not has_special_values(data)


def test_special_values_are_wrong_only_where_a_number_is_due() -> None:
    y = tensor(np.array([np.inf, 1.0], np.float32))
    assert wrong_special_values(y, np.array([np.nan, np.nan], np.float32)) is None
    finding = wrong_special_values(y, np.array([2.0, np.nan], np.float32))
    assert finding is not None
    assert "is NaN or infinite where it should be a number" in finding


def test_bools_have_the_bytes_0_and_1() -> None:
    assert wrong_bools(tensor(np.array([True, False]), TensorType.BOOL)) is None
    assert wrong_bools(tensor(np.zeros(0, bool), TensorType.BOOL)) is None
    odd = tensor(np.array([0, 2], np.uint8).view(bool), TensorType.BOOL)
    assert wrong_bools(odd) == "Tensor(0, 'y', BOOL[2]) has bytes other than 0 and 1"
    assert wrong_bools(tensor(np.array([0, 2], np.uint8), TensorType.UINT8)) is None


def test_bounds_belong_to_a_range() -> None:
    y = tensor(np.array([-3, 5], np.int8), TensorType.INT8)
    assert outside(y, (-3, 5)) is None
    assert outside(y, (-2, 5)) == "Tensor(0, 'y', INT8[2]) has values outside [-2, 5]"
    assert outside(y, (-3, 4)) is not None


# -- ranges --------------------------------------------------------------------------------------


def range_of(
    op: str, *tensors: Tensor, inputs: int, output: int = 0, options: Any = None
) -> tuple[int, int] | None:
    node = Node(0, tuple(range(inputs)), tuple(range(inputs, len(tensors))), options=options)
    registration = Registration(op, lambda context, node: lambda: None)
    return allowed_range(node, registration, inputs + output, tensors.__getitem__)


def of_shape(*shape: int, type: TensorType = TensorType.FLOAT32) -> Tensor:
    return Tensor(0, type, shape)


def quantised(type: TensorType) -> Tensor:
    y = of_shape(4, type=type)
    y.quantization = Quantization(np.array([0.05], np.float32), np.array([-10]), 0)
    return y


INDICES = of_shape(2, type=TensorType.INT32)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        (Act.NONE, None),
        (Act.RELU, (-10, 127)),
        (Act.RELU6, (-10, 110)),
        (Act.RELU_N1_TO_1, (-30, 10)),
    ],
)
def test_fused_activations_bound_quantised_results(activation: Act, expected: Any) -> None:
    options = AddOptions(fused_activation_function=activation)
    tensors = (quantised(TensorType.INT8),) * 3
    assert range_of("ADD", *tensors, inputs=2, options=options) == expected


def test_activation_operators_bound_quantised_results() -> None:
    assert range_of("RELU6", *(quantised(TensorType.INT8),) * 2, inputs=1) == (-10, 110)
    assert range_of("RELU6", of_shape(2), of_shape(2), inputs=1) is None
    assert range_of("RELU6", *(quantised(TensorType.INT32),) * 2, inputs=1) is None


def test_activations_inside_a_recurrent_operator_bound_nothing() -> None:
    options = SVDFOptions(fused_activation_function=Act.RELU)
    tensors = (quantised(TensorType.INT8),) * 3
    assert range_of("SVDF", *tensors, inputs=2, options=options) is None


@pytest.mark.parametrize(
    ("axis", "expected"), [(0, (0, 1)), (1, (0, 6)), (-1, (0, 2)), (None, (0, 6))]
)
def test_positions_of_extrema_are_on_the_axis(axis: int | None, expected: Any) -> None:
    data = None if axis is None else np.array([axis], np.int32)
    axes = Tensor(1, TensorType.INT32, (1,), data=data)
    assert range_of("ARG_MAX", of_shape(2, 7, 3), axes, INDICES, inputs=2) == expected


@pytest.mark.parametrize(
    ("op", "output", "expected"),
    [
        ("TOPK_V2", 0, None),
        ("TOPK_V2", 1, (0, 2)),
        ("UNIQUE", 1, (0, 41)),
        ("UNIQUE", 0, None),
        ("NON_MAX_SUPPRESSION_V4", 0, (0, 1)),
        ("NON_MAX_SUPPRESSION_V5", 1, None),
        ("WHERE", 0, (0, 6)),
        ("SIN", 0, None),
    ],
)
def test_indices_have_the_range_of_what_they_point_into(
    op: str, output: int, expected: Any
) -> None:
    x = of_shape(2, 7, 3)
    assert range_of(op, x, INDICES, INDICES, inputs=1, output=output) == expected


def test_buckets_are_one_more_than_boundaries() -> None:
    options = BucketizeOptions(boundaries=np.array([1, 2, 3], np.float32))
    assert range_of("BUCKETIZE", of_shape(4), INDICES, inputs=1, options=options) == (0, 3)
    assert range_of("BUCKETIZE", of_shape(4), INDICES, inputs=1) == (0, 0)


# -- differences ---------------------------------------------------------------------------------


def differs(
    found: Any,
    expected: Any,
    type: TensorType = TensorType.FLOAT32,
    tolerance: Tolerance | None = None,
    dtype: Any = None,
) -> str | None:
    a, b = np.array(found, dtype), np.array(expected, dtype)
    other = difference(tensor(a, type), a, b, tolerance or Tolerance())
    return None if other is None else str(other)


def test_a_difference_may_be_as_large_as_the_tolerance() -> None:
    tolerance = Tolerance(relative=0.25, absolute=0.5)
    assert differs([1.5, 5.5, -5.5], [1.0, 4.0, -4.0], tolerance=tolerance, dtype="f4") is None
    assert differs([2.5], [1.0], tolerance=tolerance, dtype="f4") is not None


def test_the_largest_difference_is_reported_with_its_place() -> None:
    found = differs([[1.0, 2.0], [9.0, 4.0]], [[1.0, 2.5], [3.0, 4.0]], dtype="f4")
    assert found == "9.0 instead of 3.0 at [1, 0], the largest of 2 differences in 4 elements"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_special_value_equals_only_its_like(value: float) -> None:
    loose = Tolerance(relative=10, absolute=10)
    assert differs([value], [value], tolerance=loose, dtype="f4") is None
    assert differs([value], [1.0], tolerance=loose, dtype="f4") is not None
    assert differs([1.0], [value], tolerance=loose, dtype="f4") is not None


def test_infinities_of_other_sign_differ() -> None:
    assert differs([np.inf], [-np.inf], tolerance=Tolerance(9, 9), dtype="f4") is not None


def test_integers_are_exact_without_a_tolerance() -> None:
    assert differs([255, 0], [255, 0], TensorType.UINT8, dtype="u1") is None
    assert "0 instead of 255" in str(differs([0, 1], [255, 0], TensorType.UINT8, dtype="u1"))
    one = Tolerance(absolute=1)
    assert differs([254, 1], [255, 0], TensorType.UINT8, one, "u1") is None
    assert differs([253, 1], [255, 0], TensorType.UINT8, one, "u1") is not None


def test_large_integers_that_are_one_apart_differ() -> None:
    pair = [2**62 + 1], [2**62]
    assert differs(*pair, TensorType.INT64, dtype="i8") is not None
    assert differs(*pair, TensorType.INT64, Tolerance(absolute=1), "i8") is None


def test_strings_and_bools_are_exact_whatever_the_tolerance() -> None:
    loose = Tolerance(9, 9)
    assert differs([True, False], [True, True], TensorType.BOOL, loose) is not None
    assert differs([b"a", b"b"], [b"a", b"b"], TensorType.STRING, loose, object) is None
    found = differs([b"a", b"x"], [b"a", b"b"], TensorType.STRING, loose, object)
    assert found == "b'x' instead of b'b' at [1], the largest of 1 differences in 2 elements"


def test_packed_integers_are_compared_by_element() -> None:
    a, b = np.array([1, -8, 3], np.int8), np.array([1, 7, 3], np.int8)
    y = tensor(pack(a, TensorType.INT4), TensorType.INT4, (3,))
    other = difference(y, y.data, pack(b, TensorType.INT4), Tolerance())
    assert str(other).startswith("-8 instead of 7 at [1]")
    assert difference(y, y.data, pack(b, TensorType.INT4), Tolerance(absolute=15)) is None


def test_empty_and_scalar_results_are_compared() -> None:
    assert differs([], [], dtype="f4") is None
    assert differs(1.0, 1.0, dtype="f4") is None
    assert str(differs(2.0, 1.0, dtype="f4")).startswith("2.0 instead of 1.0 at []")
