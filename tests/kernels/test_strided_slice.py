"""STRIDED_SLICE against Python's slicing and the official interpreter."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.schema.options import StridedSliceOptions
from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays

X = np.arange(120, dtype=np.int32).reshape(4, 5, 6)


def inputs_of(x, begin, end, strides, given=constant):
    return [fed(x), *(given(np.array(v, np.int32)) for v in (begin, end, strides))]


SLICES = {
    "plain": ((0, 1, 2), (3, 4, 6), (1, 1, 2), {}, np.s_[0:3, 1:4, 2:6:2]),
    "negative": ((-1, -2, -1), (-5, -6, 0), (-1, -1, -2), {}, np.s_[::-1, 3::-1, -1:0:-2]),
    "begin mask": ((2, 2, 2), (3, 3, 3), (1, 1, 1), {"begin_mask": 0b101}, np.s_[:3, 2:3, :3]),
    "end mask": ((2, 2, 2), (3, 3, 3), (1, 1, -1), {"end_mask": 0b101}, np.s_[2:, 2:3, 2::-1]),
    "shrink": ((1, -1), (0, 0), (1, 1), {"shrink_axis_mask": 0b11}, np.s_[1, -1]),
    "all shrunk": ((1, 2, 3), (0, 0, 0), (1, 1, 1), {"shrink_axis_mask": 7}, np.s_[1, 2, 3]),
    "ellipsis": ((0, 1), (0, 3), (1, 1), {"ellipsis_mask": 0b01}, np.s_[..., 1:3]),
    "new axis": ((0, 1), (0, 3), (1, 1), {"new_axis_mask": 0b01}, np.s_[None, 1:3]),
    "new behind ellipsis": (
        (0, 0, 1), (0, 0, 3), (1, 1, 1), {"ellipsis_mask": 1, "new_axis_mask": 2},
        np.s_[..., None, 1:3],
    ),
    "offset": ((1, 2, 3), (2, 1, 3), (1, 1, 1), {"offset": True}, np.s_[1:3, 2:3, 3:6]),
}  # fmt: skip


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize("case", SLICES.values(), ids=SLICES)
def test_masks_mean_what_python_writes(case, given):
    begin, end, strides, options, index = case
    inputs = inputs_of(X, begin, end, strides, given)
    (y,) = assert_agrees("STRIDED_SLICE", inputs, ["INT32"], StridedSliceOptions(**options))
    np.testing.assert_array_equal(y, X[index])


@pytest.mark.parametrize("seed", range(60))
def test_random_slices_agree_with_the_official_interpreter(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 5, rng.integers(1, 5))
    count = int(rng.integers(1, len(shape) + 1))
    begin, end = rng.integers(-6, 7, (2, count))
    strides = rng.choice([1, 1, 2, 3, -1, -2], count)
    shrink = int(rng.integers(0, 2**count)) if rng.random() < 0.4 else 0
    for i in range(count):
        if shrink >> i & 1:  # anything else is undefined in the official kernel
            begin[i], strides[i] = 0, 1
    masks = {
        name: int(rng.integers(0, 2**count)) if rng.random() < 0.4 else 0
        for name in ("begin_mask", "end_mask", "new_axis_mask")
    }
    ellipsis = 1 << int(rng.integers(0, count)) if rng.random() < 0.3 else 0
    options = StridedSliceOptions(shrink_axis_mask=shrink, ellipsis_mask=ellipsis, **masks)
    x = rng.integers(0, 99, shape).astype(np.int32)
    assert_agrees("STRIDED_SLICE", inputs_of(x, begin, end, strides), ["INT32"], options)


def test_a_stride_of_zero_is_refused():
    inputs = inputs_of(X, (0,), (1,), (0,))
    assert_both_refuse("STRIDED_SLICE", inputs, ["INT32"], StridedSliceOptions(), match="stride 0")


def test_a_late_begin_with_offset_keeps_the_shape_static():
    options = StridedSliceOptions(offset=True)
    inputs = inputs_of(X[0], (0, 0), (2, 2), (1, 1))
    inputs[1] = fed(np.array([2, 3], np.int32))
    (y,) = assert_agrees("STRIDED_SLICE", inputs, ["INT32"], options, version=8)
    np.testing.assert_array_equal(y, X[0, 2:4, 3:5])


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize(
    ("begin", "length", "stride", "index"),
    [
        (1, 2, 1, np.s_[1:3]),
        (1, -1, 1, np.s_[1:1]),
        (-2, 2, 1, np.s_[3:]),
        (3, -2, -1, np.s_[3:1:-1]),
        (2, 1, -1, np.s_[2:2]),
    ],
)
def test_an_offset_counts_from_where_the_slice_begins(begin, length, stride, index, given):
    x = np.arange(5, dtype=np.int32)
    inputs = inputs_of(x, [begin], [length], [stride])
    inputs[1] = given(np.int32([begin]))
    options = StridedSliceOptions(offset=True)
    (y,) = assert_agrees("STRIDED_SLICE", inputs, ["INT32"], options, version=8)
    np.testing.assert_array_equal(y, x[index])


@pytest.mark.parametrize("given", [constant, fed])
def test_an_offset_may_reach_the_first_element_from_behind(given):
    x = np.arange(5, dtype=np.int32)
    inputs = inputs_of(x, [4], [-5], [-2])
    inputs[1] = given(np.int32([4]))
    model, arrays = model_and_arrays(
        "STRIDED_SLICE", inputs, ["INT32"], StridedSliceOptions(offset=True), version=8
    )
    (y,) = delegraph_outputs(model, arrays)
    np.testing.assert_array_equal(y, x[::-2])


def test_a_new_axis_beyond_the_indices_is_refused():
    inputs = inputs_of(X, [0], [4], [1])  # of which the official kernel gives [4, 1, 5]
    model, arrays = model_and_arrays(
        "STRIDED_SLICE", inputs, ["INT32"], StridedSliceOptions(new_axis_mask=0b10)
    )
    with pytest.raises(NodeError, match="new_axis_mask has bit 1, expected none beyond 1 indices"):
        delegraph_outputs(model, arrays)
    assert_agrees("STRIDED_SLICE", inputs, ["INT32"], StridedSliceOptions(new_axis_mask=0b1000))
