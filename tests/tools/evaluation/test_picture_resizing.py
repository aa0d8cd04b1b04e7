from __future__ import annotations

import numpy as np
import pytest

from delegraph.schema.options import ResizeBilinearOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.tools.evaluation.picture_resizing import FILTERS, Filter, resized
from support.official import official_outputs

SIZES = [((9, 7), (4, 6)), ((328, 328), (224, 224)), ((5, 3), (16, 16)), ((50, 50), (10, 10))]


@pytest.mark.parametrize("how", ["tflite", "half-pixel"])
@pytest.mark.parametrize(("old", "new"), SIZES)
def test_pixels_are_those_of_the_official_reference_kernel(
    old: tuple[int, int], new: tuple[int, int], how: Filter
) -> None:
    """Bit for bit: cutting to whole numbers makes a last bit a whole step."""
    pixels = np.random.default_rng(1).integers(0, 256, (*old, 3), np.uint8)
    pixels[: old[0] // 2] = 200  # where sums of shares may miss a whole number
    options = ResizeBilinearOptions(half_pixel_centers=how == "half-pixel")
    kinds = [tensor((1, *old, 3)), constant(np.int32(new))]
    model = one_op_model("RESIZE_BILINEAR", kinds, [tensor((1, *new, 3))], options, version=3)
    (official,) = official_outputs(model, [pixels[None].astype(np.float32)], reference=True)
    np.testing.assert_array_equal(resized(pixels, new, how), official[0])


@pytest.mark.parametrize("how", FILTERS)
def test_every_filter_leaves_one_colour_as_it_is(how: Filter) -> None:
    made = resized(np.full((20, 30, 3), 117, np.uint8), (7, 11), how)
    assert made.shape == (7, 11, 3)
    np.testing.assert_allclose(made, 117, atol=1e-4)


def test_filters_without_smoothing_skip_pixels() -> None:
    """Every second column is bright: a filter that averages makes grey of it."""
    pixels = np.zeros((1, 8, 3), np.uint8)
    pixels[:, ::2] = 200
    assert (resized(pixels, (1, 4), "tflite") == 200).all()
    assert (abs(resized(pixels, (1, 4), "box") - 100.0) <= 1).all()
