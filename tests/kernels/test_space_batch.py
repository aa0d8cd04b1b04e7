"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

import numpy as np
import pytest

from delegraph.testing import constant, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

DTYPES = [("f4", None, 0), ("u1", 0.5, 7), ("i1", 0.5, -3)]


def case(shape, dtype, scale, zero, block, pairs, given):
    x = fed((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype), scale=scale,
            zero_point=zero)  # fmt: skip
    y = tensor((), x.definition.type.name, scale=scale, zero_point=zero)
    return [x, given(np.array(block, np.int32)), given(np.array(pairs, np.int32))], [y]


@pytest.mark.parametrize(("dtype", "scale", "zero"), DTYPES)
@pytest.mark.parametrize(
    ("shape", "block", "pads"),
    [
        ((1, 4, 4, 2), (2, 2), [[0, 0], [0, 0]]),
        ((2, 4, 4, 2), (2, 3), [[1, 1], [2, 0]]),
        ((1, 4, 3), (2,), [[2, 0]]),
    ],
)
def test_space_to_batch_deals_padded_pixels_out(shape, block, pads, dtype, scale, zero, given):
    inputs, outputs = case(shape, dtype, scale, zero, block, pads, given)
    (y,) = assert_agrees("SPACE_TO_BATCH_ND", inputs, outputs, version=3)
    padded = np.pad(inputs[0].array, [[0, 0], *pads, [0, 0]], constant_values=zero)
    last = tuple(slice(b - 1, None, b) for b in block)
    np.testing.assert_array_equal(y[-shape[0] :], padded[(slice(None), *last)])


@pytest.mark.parametrize(("dtype", "scale", "zero"), DTYPES)
@pytest.mark.parametrize(
    ("shape", "block", "crops"),
    [
        ((8, 2, 2, 2), (2, 2), [[0, 0], [0, 0]]),
        ((6, 2, 2, 2), (2, 3), [[1, 0], [2, 1]]),
        ((4, 3, 2), (2,), [[1, 0]]),
    ],
)
def test_batch_to_space_collects_and_crops(shape, block, crops, dtype, scale, zero, given):
    inputs, outputs = case(shape, dtype, scale, zero, block, crops, given)
    (y,) = assert_agrees("BATCH_TO_SPACE_ND", inputs, outputs, version=3)
    assert y.size < inputs[0].array.size or not np.any(crops)


def test_what_does_not_divide_is_refused(given):
    pairs = [[0, 0], [0, 1]]
    inputs, outputs = case((1, 4, 4, 2), "f4", None, 0, (2, 2), pairs, given)
    assert_both_refuse("SPACE_TO_BATCH_ND", inputs, outputs, match="whole blocks")
    inputs, outputs = case((6, 2, 2, 2), "f4", None, 0, (2, 2), pairs, given)
    assert_both_refuse("BATCH_TO_SPACE_ND", inputs, outputs, match="multiple of the blocks")


def test_padding_of_floats_is_zero_whatever_their_zero_point():
    inputs, outputs = case((1, 3, 1), "f4", 0.5, 7, [2], [[1, 0]], constant)
    assert_agrees("SPACE_TO_BATCH_ND", inputs, outputs)


def test_zero_points_of_int16_are_refused():
    both = case((2, 4, 1), "i2", 0.5, 7, [2], [[0, 0]], constant)
    for op in ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
        assert_both_refuse(op, *both, match="zero point 7")
