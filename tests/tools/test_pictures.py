from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.pictures import picture_as_input

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3


@pytest.fixture
def picture(tmp_path: Path) -> str:
    """4 rows, 6 columns, colour."""
    path = tmp_path / "picture.png"
    Image.fromarray(PIXELS).save(path)
    return str(path)


def details(dtype: type, *shape: int) -> dict[str, Any]:
    array = np.array(shape, np.int32)
    return {"name": "x", "dtype": dtype, "shape": abs(array), "shape_signature": array}


def test_a_uint8_input_gets_the_bytes(picture: str) -> None:
    values = picture_as_input(picture, details(np.uint8, 1, 4, 6, 3))
    np.testing.assert_array_equal(values, PIXELS[None])


def test_an_int8_input_gets_the_bytes_minus_128(picture: str) -> None:
    values = picture_as_input(picture, details(np.int8, 1, 4, 6, 3))
    assert values.dtype == np.int8
    np.testing.assert_array_equal(values.astype(int), PIXELS[None].astype(int) - 128)


def test_a_float_input_gets_values_between_minus_1_and_1(picture: str) -> None:
    values = picture_as_input(picture, details(np.float32, 1, 4, 6, 3))
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, ((PIXELS[None] - np.float32(127.5)) / 127.5))


def test_the_picture_is_resized_to_height_and_width(picture: str) -> None:
    values = picture_as_input(picture, details(np.uint8, 1, 8, 3, 3))
    resized = Image.open(picture).resize((3, 8), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(values[0], np.asarray(resized))


def test_open_dimensions_take_the_pictures_own_size(picture: str) -> None:
    assert picture_as_input(picture, details(np.uint8, -1, -1, -1, 3)).shape == (1, 4, 6, 3)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_colours_follow_the_channels(picture: str, channels: int) -> None:
    values = picture_as_input(picture, details(np.uint8, 4, 6, channels))
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
    expected = np.asarray(Image.open(picture).convert(mode)).reshape(4, 6, channels)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (details(np.uint8, 1, 10), r"input 'x' has shape \[1, 10\] and takes no picture"),
        (details(np.uint8, 1, 4, 6, 2), "takes no picture, which needs"),
        (details(np.uint8, 2, 4, 6, 3), "takes 2 pictures at once"),
        (details(np.int32, 1, 4, 6, 3), "is int32; a picture can be given as uint8, int8 or float"),
    ],
)
def test_an_input_that_takes_no_picture_is_named(
    picture: str, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        picture_as_input(picture, entry)


def test_a_file_that_is_no_picture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"nothing")
    with pytest.raises(ArgumentError, match=r"x\.png' cannot be read"):
        picture_as_input(str(tmp_path / "x.png"), details(np.uint8, 1, 4, 6, 3))
