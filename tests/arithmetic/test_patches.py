"""Patches against windows that are cut out one by one."""

import numpy as np
import pytest

from delegraph.arithmetic import patches as module
from delegraph.arithmetic.padding import window
from delegraph.arithmetic.patches import Patches
from delegraph.schema.enums import Padding
from support.kernel_context import Memory


def windows_one_by_one(image, windows, pad_value):
    borders = [(w.before, w.after) for w in windows]
    padded = np.pad(image, [*borders, (0, 0)], constant_values=pad_value)
    rows = []
    for place in np.ndindex(*(w.output for w in windows)):
        taps = [
            slice(p * w.stride, p * w.stride + w.span, w.dilation)
            for p, w in zip(place, windows, strict=True)
        ]
        rows.append(padded[tuple(taps)].ravel())
    return np.array(rows)


@pytest.mark.parametrize("padding", Padding)
@pytest.mark.parametrize("limit", [1, 5, 64, 1 << 18])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "dilation"),
    [
        ((7, 8, 3), (3, 2), (1, 1), (1, 1)),
        ((7, 8, 3), (3, 2), (2, 3), (1, 1)),
        ((9, 8, 3), (2, 3), (1, 2), (3, 2)),
        ((7, 8, 3), (1, 1), (1, 1), (1, 1)),
        ((1, 30, 2), (1, 5), (1, 2), (1, 1)),
        ((4, 5, 6, 2), (2, 3, 2), (1, 1, 2), (1, 2, 1)),
    ],
)
def test_tiles_hold_every_window_in_order(
    monkeypatch, shape, kernel, stride, dilation, padding, limit
):
    monkeypatch.setattr(module, "TILE_VALUES", limit * 18)
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    image = np.random.default_rng(0).integers(-100, 100, shape).astype(np.int8)
    axes = zip(shape[:-1], kernel, stride, dilation, strict=True)
    windows = tuple(window(padding, *axis) for axis in axes)
    patches = Patches(Memory(), windows, shape[-1], 1, np.int8, np.float32, 4)
    tiles, places = [], []
    for place, (tile,) in patches.tiles(image, 9):
        assert len(tile) == place.stop - place.start <= patches.tile_rows
        tiles.append(tile.copy())
        places.extend(range(place.start, place.stop))
    assert places == list(range(patches.rows))
    np.testing.assert_array_equal(np.concatenate(tiles), windows_one_by_one(image, windows, 9))


def test_each_group_has_the_windows_of_its_channels():
    image = np.random.default_rng(0).integers(-100, 100, (5, 6, 6)).astype(np.int8)
    windows = tuple(window(Padding.SAME, size, 3, 1) for size in (5, 6))
    patches = Patches(Memory(), windows, 6, 3, np.int8, np.float32, 4)
    ((_, parts),) = patches.tiles(image, 0)
    for i, part in enumerate(parts):
        alone = windows_one_by_one(image[..., 2 * i : 2 * i + 2], windows, 0)
        np.testing.assert_array_equal(part, alone)


def test_pointwise_windows_of_the_right_dtype_are_the_image_itself():
    image = np.zeros((4, 5, 3), np.float32)
    windows = tuple(window(Padding.SAME, size, 1, 1) for size in (4, 5))
    patches = Patches(Memory(), windows, 3, 1, np.float32, np.float32, 4)
    ((_, (tile,)),) = patches.tiles(image)
    assert np.shares_memory(tile, image)
