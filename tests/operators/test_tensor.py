"""Quantization that makes no sense is refused by whoever computes with it."""

import numpy as np
import pytest

from delegraph import Tensor, TensorType
from delegraph.errors import OperatorError
from delegraph.graph.model import Quantization


def quantized(scale: float = 1, zero_point: int = 0, kind: str = "INT8") -> Tensor:
    found = Quantization(np.float32([scale]), np.int32([zero_point]))
    return Tensor(0, TensorType[kind], (1,), name="x", quantization=found)


@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf, -np.inf])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(OperatorError, match=rf"'x' has scale {scale}, expected a positive one"):
        _ = quantized(scale).scale


@pytest.mark.parametrize(
    ("kind", "zero_point"),
    [("INT8", 128), ("INT8", -129), ("UINT8", -1), ("UINT8", 256), ("INT16", 40_000)],
)
def test_a_zero_point_out_of_the_types_range_is_refused(kind: str, zero_point: int) -> None:
    with pytest.raises(OperatorError, match=f"zero point {zero_point}, expected a value of {kind}"):
        _ = quantized(1, zero_point, kind).zero_point


@pytest.mark.parametrize(
    ("kind", "zero_point"), [("INT8", -128), ("UINT8", 255), ("INT32", 1 << 30), ("FLOAT32", 300)]
)
def test_other_zero_points_are_read_as_they_are(kind: str, zero_point: int) -> None:
    assert quantized(1, zero_point, kind).zero_point == zero_point


def test_an_int8_variable_begins_with_the_low_byte_of_its_zero_point() -> None:
    assert quantized(1, 300).initial_value == 44
    assert quantized(1, 300, "INT16").initial_value == 0
    assert Tensor(0, TensorType.INT8, (1,)).initial_value == 0
