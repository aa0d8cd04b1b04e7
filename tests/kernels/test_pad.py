"""PAD, PADV2 and MIRROR_PAD."""

import numpy as np
import pytest

from delegraph.schema.enums import MirrorPadMode
from delegraph.schema.options import MirrorPadOptions
from delegraph.testing import constant, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

X = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
PADS = [[[0, 0], [1, 2], [2, 1], [0, 0]], [[1, 0], [0, 1], [1, 1], [2, 2]], [[0, 0]] * 4]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("pads", PADS)
def test_pad_puts_zeros_around(pads, dtype, given):
    inputs = [fed(X), given(np.array(pads, dtype))]
    (y,) = assert_agrees("PAD", inputs, ["FLOAT32"], version=5)
    np.testing.assert_array_equal(y, np.pad(X, pads))


@pytest.mark.parametrize(("dtype", "zero"), [("u1", 5), ("i1", -7), ("i2", 0)])
def test_pad_of_quantized_values_is_the_zero_point(dtype, zero):
    x = fed(np.ones((2, 3), dtype), scale=0.5, zero_point=zero)
    y = tensor((3, 6), x.definition.type.name, scale=0.5, zero_point=zero)
    inputs = [x, constant(np.array([[1, 0], [2, 1]], np.int32))]
    (padded,) = assert_agrees("PAD", inputs, [y], version=5)
    assert padded[0, 0] == zero


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "?", "f2", "i1", "u1"])
def test_padv2_puts_a_value_around(dtype):
    x = fed(np.zeros((2, 2), dtype))
    inputs = [x, constant(np.array([[1, 0], [2, 1]], np.int32)), constant(np.array([1], dtype))]
    assert_agrees("PADV2", inputs, [x.definition.type.name], version=4)


def test_padv2_takes_a_value_that_comes_with_the_invoke():
    inputs = [fed(X[0, 0]), constant(np.array([[1, 0], [2, 1]], np.int32)), fed(np.float32(2.5))]
    assert_agrees("PADV2", inputs, ["FLOAT32"])


def test_negative_paddings_are_refused(given):
    inputs = [fed(X), given(np.array([[0, 0], [-1, 0], [0, 0], [0, 0]], np.int32))]
    assert_both_refuse("PAD", inputs, ["FLOAT32"], match="negative")


MODES = {MirrorPadMode.REFLECT: "reflect", MirrorPadMode.SYMMETRIC: "symmetric"}
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pads", [[[1, 1], [2, 1]], [[2, 0], [0, 3]], [[0, 0], [0, 0]]])
def test_mirror_pad_mirrors_the_rows_and_columns(pads, mode, given):
    inputs = [fed(ROWS), given(np.array(pads, np.int32))]
    (y,) = assert_agrees("MIRROR_PAD", inputs, ["FLOAT32"], MirrorPadOptions(mode=mode))
    np.testing.assert_array_equal(y, np.pad(ROWS, pads, MODES[mode]))


def test_mirror_pad_refuses_more_than_there_is_to_mirror(given):
    inputs = [fed(ROWS), given(np.array([[3, 0], [0, 0]], np.int32))]
    options = MirrorPadOptions(mode=MirrorPadMode.REFLECT)
    assert_both_refuse("MIRROR_PAD", inputs, ["FLOAT32"], options, match="longer than")


def test_mirror_pad_of_int16_with_a_zero_point_is_refused():
    inputs = [fed(np.int16([1, 2]), scale=0.5, zero_point=3), constant(np.int32([[1, 0]]))]
    y = tensor((), "INT16", scale=0.5, zero_point=3)
    assert_both_refuse("MIRROR_PAD", inputs, [y], MirrorPadOptions(), match="zero point 3")
