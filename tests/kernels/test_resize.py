"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: every integer output bit for bit."""

import numpy as np
import pytest

from delegraph.arithmetic.resize_bilinear import fixed_taps, float_taps, row_blocks
from delegraph.schema.options import ResizeBilinearOptions, ResizeNearestNeighborOptions
from delegraph.testing import constant, delegraph_outputs, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.official import official_outputs

OPS = {
    "RESIZE_BILINEAR": ResizeBilinearOptions,
    "RESIZE_NEAREST_NEIGHBOR": ResizeNearestNeighborOptions,
}
MODES = {"legacy": {}, "corners": {"align_corners": True}, "centers": {"half_pixel_centers": True}}
SIZES = [
    ((1, 3, 4, 2), (6, 8)),  # twice
    ((1, 2, 2, 8), (16, 16)),  # eight times, the official kernel's own case
    ((2, 5, 7, 3), (3, 4)),
    ((1, 5, 7, 1), (11, 29)),
    ((1, 1, 1, 3), (4, 5)),
    ((1, 9, 6, 2), (1, 1)),
    ((1, 3, 64, 40), (5, 128)),  # rows that come alone
    ((1, 3, 2, 4), (700, 5)),  # and by the hundred
]


def sample(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    if dtype == "f4":
        return fed(rng.standard_normal(shape).astype(dtype)), "FLOAT32"
    info = np.iinfo(dtype)
    x = fed(rng.integers(info.min, info.max, shape, dtype, endpoint=True), scale=0.5)
    return x, tensor((), x.definition.type.name, scale=0.5)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i2"])
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_images_are_resized_as_officially(shape, size, dtype, mode, op):
    x, y = sample(shape, dtype)
    inputs = [x, constant(np.array(size, np.int32))]
    tolerance = 1e-6 if dtype == "f4" and op == "RESIZE_BILINEAR" else 0.0
    assert_agrees(op, inputs, [y], OPS[op](**MODES[mode]), version=4, tolerance=tolerance)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_a_size_that_comes_with_the_invoke_is_taken(dtype, op):
    x, y = sample((1, 3, 4, 2), dtype)
    inputs = [x, fed(np.array([5, 9], np.int32))]
    assert_agrees(op, inputs, [y], OPS[op](), version=4, tolerance=1e-6)


BOTH = {"align_corners": True, "half_pixel_centers": True}


@pytest.mark.parametrize(("op", "given"), [(op, fed) for op in OPS] + [(list(OPS)[1], constant)])
@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i2"])
def test_both_options_agree(dtype, op, given):
    x, y = sample((1, 5, 4, 2), dtype)
    inputs = [x, given(np.array([7, 3], np.int32))]
    assert_agrees(op, inputs, [y], OPS[op](**BOTH), version=4, tolerance=1e-6)


def test_both_options_are_refused_of_a_known_bilinear_size():
    x, y = sample((1, 5, 4, 2), "f4")
    inputs, options = [x, constant(np.array([7, 3], np.int32))], ResizeBilinearOptions(**BOTH)
    assert_both_refuse("RESIZE_BILINEAR", inputs, [y], options, match="both set")


@pytest.mark.parametrize("op", OPS)
def test_numbers_of_8_bytes_are_refused(op):
    x, y = sample((1, 3, 4, 2), "i8")
    inputs = [x, constant(np.array([7, 3], np.int32))]
    assert_both_refuse(op, inputs, [y], OPS[op](), match="has type INT64")


@pytest.mark.parametrize("dtype", ["f2", "?", "u2", "i4", "u4"])
def test_nearest_moves_any_number_of_up_to_4_bytes(dtype):
    x = fed(np.arange(24).reshape(1, 3, 4, 2).astype(dtype))
    inputs = [x, constant(np.array([7, 3], np.int32))]
    options = ResizeNearestNeighborOptions()
    assert_agrees("RESIZE_NEAREST_NEIGHBOR", inputs, [x.definition.type.name], options, version=4)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("size", [(0, 3), (3, -1)])
def test_a_size_below_one_is_refused(size, op):
    x, y = sample((1, 3, 4, 2), "f4")
    inputs = [x, constant(np.array(size, np.int32))]
    if op == "RESIZE_BILINEAR":
        assert_both_refuse(op, inputs, [y], OPS[op](), match="cannot resize")


def slow_bilinear(x, size):
    """Return the mean of the four neighbours, weighted by distance, in float64."""
    (h, w), (oh, ow) = x.shape, size
    y = np.zeros(size)
    for i in range(oh):
        for j in range(ow):
            fy, fx = i * h / oh, j * w / ow
            for row, wy in ((int(fy), 1 - fy % 1), (min(int(fy) + 1, h - 1), fy % 1)):
                for column, wx in ((int(fx), 1 - fx % 1), (min(int(fx) + 1, w - 1), fx % 1)):
                    y[i, j] += wy * wx * x[row, column]
    return y


def test_bilinear_is_the_weighted_mean_of_four():
    x = np.random.default_rng(0).standard_normal((1, 5, 7, 1)).astype(np.float32)
    inputs = [fed(x), constant(np.array([9, 4], np.int32))]
    options = ResizeBilinearOptions()
    (y,) = assert_agrees("RESIZE_BILINEAR", inputs, ["FLOAT32"], options, tolerance=1e-6)
    np.testing.assert_allclose(y[0, :, :, 0], slow_bilinear(x[0, :, :, 0], (9, 4)), atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_taps_lie_inside(mode):
    flags = [MODES[mode].get(name, False) for name in ("align_corners", "half_pixel_centers")]
    for old in range(1, 12):
        for new in range(1, 40):
            for taps in (float_taps(old, new, *flags), fixed_taps(old, new, *flags)):
                assert 0 <= taps.low.min() <= taps.high.max() < old


@pytest.mark.parametrize("op", OPS)
def test_a_side_beyond_what_float32_counts_is_refused(op):
    inputs = [fed(np.zeros((1, 2, 2, 1), np.float32)), constant(np.array([1, 2**24 + 1], np.int32))]
    model, arrays = model_and_arrays(op, inputs, ["FLOAT32"], OPS[op]())
    with pytest.raises(RuntimeError, match="beyond 16777216 a side"):
        delegraph_outputs(model, arrays)


def test_a_picture_that_is_all_height_takes_few_steps():
    height = 1 << 20
    blocks = row_blocks(float_taps(2, height, False, False), 1)
    assert len(blocks) < 1000
    assert np.unique(np.concatenate([np.r_[block.place] for block in blocks])).size == height


@pytest.mark.parametrize("op", OPS)
def test_no_images_are_resized_to_none(op):
    x, size = fed(np.zeros((0, 0, 3, 2), np.float32)), constant(np.int32([4, 5]))
    model, arrays = model_and_arrays(op, [x, size], ["FLOAT32"], OPS[op]())
    assert delegraph_outputs(model, arrays)[0].shape == (0, 4, 5, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_reference_floats_are_summed_in_the_official_order(shape, size, mode):
    """Bit for bit: who cuts the sums to whole numbers sees the last bit."""
    x = fed(np.random.default_rng(2).integers(0, 256, shape).astype(np.float32))
    inputs, options = [x, constant(np.array(size, np.int32))], ResizeBilinearOptions(**MODES[mode])
    model, arrays = model_and_arrays("RESIZE_BILINEAR", inputs, ["FLOAT32"], options, version=4)
    (mine,) = delegraph_outputs(model, arrays, numerics="reference")
    (official,) = official_outputs(model, arrays, reference=True)
    np.testing.assert_array_equal(mine, official)
