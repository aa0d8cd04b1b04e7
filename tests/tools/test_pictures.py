from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import TensorMetadata
from delegraph.tools.pictures import PictureOptions, picture_as_input
from support.tensor_details import details

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3


@pytest.fixture
def picture(tmp_path: Path) -> str:
    """4 rows, 6 columns, colour."""
    path = tmp_path / "picture.png"
    Image.fromarray(PIXELS).save(path)
    return str(path)


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


def png(width: int, height: int, pixels: bytes = b"") -> bytes:
    """Return a PNG of that size by its header, in true colour, whatever *pixels* hold."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def header_of(kind: str, width: int, height: int) -> bytes:
    """Return the beginning of a file that says it is that large."""
    if kind == "png":
        return png(width, height)
    if kind == "gif":
        frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x08\x00;"
        return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + frame
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + info


@pytest.mark.parametrize("kind", ["png", "gif", "bmp"])
@pytest.mark.parametrize("side", [10_000, 60_000])
def test_a_bomb_is_refused_by_its_header(kind: str, side: int, tmp_path: Path) -> None:
    path = tmp_path / f"bomb.{kind}"
    path.write_bytes(header_of(kind, side, side))
    size = side * side * 4
    words = rf"is {side} x {side}, which takes {size} bytes; a file of its size may take 268435456"
    with pytest.raises(ArgumentError, match=words):
        picture_as_input(str(path), details(np.uint8, 1, 4, 6, 3))


def test_a_large_picture_disturbs_nobody_with_pillows_warning(tmp_path: Path) -> None:
    limit = Image.MAX_IMAGE_PIXELS
    path = tmp_path / "large.png"
    Image.new("1", (10_000, 9_000)).save(path)
    with Image.open(path) if limit > 90_000_000 else pytest.warns(Image.DecompressionBombWarning):
        Image.open(path).close()
    with pytest.raises(ArgumentError, match="scale it down first"):
        picture_as_input(str(path), details(np.uint8, 1, 4, 6, 1))
    assert limit == Image.MAX_IMAGE_PIXELS


def damaged() -> dict[str, bytes]:
    good = png(6, 4, (b"\0" + bytes(18)) * 4)
    return {
        "empty": b"",
        "noise": bytes(range(256)),
        "truncated": good[:-30],
        "too few pixels": png(6, 4, bytes(20)),
        "no size": png(0, 4),
        "text": b"GIF89a",
    }


@pytest.mark.parametrize("name", damaged())
@pytest.mark.parametrize("suffix", [".png", ".gif", ".jpg", ".bmp", ".webp", ".tiff"])
def test_damaged_pictures_are_refused_in_words(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(damaged()[name])
    with pytest.raises(ArgumentError, match=r"picture '.*damaged\..*' cannot be read: \S"):
        picture_as_input(str(path), details(np.uint8, 1, 4, 6, 3))


def test_a_float_input_is_normalized_as_the_metadata_says(picture: str) -> None:
    notes: list[str] = []
    said = TensorMetadata(mean=(1.0, 2.0, 3.0), std=(2.0, 4.0, 5.0))
    values = picture_as_input(picture, details(np.float32, 1, 4, 6, 3), said, notes.append)
    expected = (PIXELS - np.float32([1, 2, 3])) / np.float32([2, 4, 5])
    np.testing.assert_allclose(values[0], expected, rtol=1e-6)
    assert notes == ["normalized as the metadata says"]


def test_an_int8_input_is_normalized_and_quantized(picture: str) -> None:
    entry = {**details(np.int8, 1, 4, 6, 3), "quantization": (0.5, -10)}
    values = picture_as_input(picture, entry, TensorMetadata(mean=(5.0,), std=(10.0,)))
    real = (PIXELS.astype(np.float64) - 5) / 10
    np.testing.assert_array_equal(values[0], np.clip(np.rint(real / 0.5) - 10, -128, 127))


def test_a_uint8_input_gets_the_bytes_whatever_the_metadata_says(picture: str) -> None:
    values = picture_as_input(
        picture, details(np.uint8, 1, 4, 6, 3), TensorMetadata(mean=(127.5,), std=(127.5,))
    )
    np.testing.assert_array_equal(values[0], PIXELS)


def test_a_normalization_of_other_channels_is_refused(picture: str) -> None:
    said = TensorMetadata(mean=(1.0, 2.0), std=(1.0, 1.0))
    with pytest.raises(ArgumentError, match="mean and std are of 2 channels, the input has 3"):
        picture_as_input(picture, details(np.float32, 1, 4, 6, 3), said)


def test_the_users_mean_and_std_win_over_the_metadata(picture: str) -> None:
    said = TensorMetadata(mean=(1.0,), std=(2.0,))
    entry = details(np.float32, 1, 4, 6, 3)
    notes: list[str] = []
    chosen = PictureOptions(mean=(1.0, 2.0, 3.0), std=(10.0,))
    values = picture_as_input(picture, entry, said, notes.append, chosen)
    np.testing.assert_allclose(values[0], (PIXELS - np.float32([1, 2, 3])) / 10, rtol=1e-6)
    assert notes == ["normalized as --mean and --std say"]
    values = picture_as_input(picture, entry, said, options=PictureOptions(mean=(5.0,)))
    np.testing.assert_allclose(values[0], (PIXELS - np.float32(5)) / 2, rtol=1e-6)
    entry = {**details(np.uint8, 1, 4, 6, 3), "quantization": (0.5, 10)}
    values = picture_as_input(picture, entry, said, options=PictureOptions(std=(10.0,)))
    real = (PIXELS.astype(np.float64) - 1) / 10
    np.testing.assert_array_equal(values[0], np.clip(np.rint(real / 0.5) + 10, 0, 255))


def test_a_deviation_of_0_and_other_numbers_of_channels_are_refused() -> None:
    with pytest.raises(ArgumentError, match="--std 0: nothing can be divided by 0"):
        PictureOptions(std=(0.0,))
    with pytest.raises(ArgumentError, match="--mean and --std: expected finite numbers"):
        PictureOptions(mean=(float("nan"),))
    with pytest.raises(ArgumentError, match="--mean has 2 numbers, --std 3"):
        PictureOptions(mean=(1, 2), std=(1, 2, 3)).normalization(TensorMetadata())


def test_a_square_is_cut_out_of_the_middle(picture: str) -> None:
    notes: list[str] = []
    square = PictureOptions(crop="square")
    entry = details(np.uint8, 1, 4, 4, 3)
    values = picture_as_input(picture, entry, note=notes.append, options=square)
    np.testing.assert_array_equal(values[0], PIXELS[:, 1:5])
    assert notes == ["cut to the middle 4 x 4 of 6 x 4"]
    half = PictureOptions(crop="square", fraction=0.5)
    values = picture_as_input(picture, details(np.uint8, 1, 2, 2, 3), options=half)
    np.testing.assert_array_equal(values[0], PIXELS[1:3, 2:4])


def test_channels_come_first_where_the_shape_or_the_user_says_so(picture: str) -> None:
    expected = np.moveaxis(PIXELS, -1, 0)
    notes: list[str] = []
    values = picture_as_input(picture, details(np.uint8, 1, 3, 4, 6), note=notes.append)
    np.testing.assert_array_equal(values[0], expected)
    assert notes == ["laid out as [1, c, h, w], as the input's shape is (--layout sets another)"]
    planar, interleaved = PictureOptions(layout="nchw"), PictureOptions(layout="nhwc")
    values = picture_as_input(picture, details(np.uint8, 1, 3, 4, 3), options=planar)
    assert values.shape == (1, 3, 4, 3)
    with pytest.raises(ArgumentError, match="takes no picture"):
        picture_as_input(picture, details(np.uint8, 1, 3, 4, 6), options=interleaved)


def test_colours_come_in_the_order_of_the_user(picture: str) -> None:
    bgr = PictureOptions(channels="bgr")
    values = picture_as_input(picture, details(np.uint8, 1, 4, 6, 3), options=bgr)
    np.testing.assert_array_equal(values[0], PIXELS[..., ::-1])
    values = picture_as_input(picture, details(np.uint8, 1, 4, 6, 4), options=bgr)
    np.testing.assert_array_equal(values[0, ..., 3], 255)


def test_open_dimensions_take_the_size_of_the_metadata(picture: str) -> None:
    said = TensorMetadata(size=(3, 2))
    values = picture_as_input(picture, details(np.uint8, 1, -1, -1, 3), said)
    assert values.shape == (1, 2, 3, 3)


def test_a_photo_is_turned_as_its_camera_was(tmp_path: Path) -> None:
    path = str(tmp_path / "photo.png")
    turned = Image.Exif()
    turned[0x0112] = 6  # orientation: the picture's top is at its left
    Image.fromarray(PIXELS).save(path, exif=turned)
    values = picture_as_input(path, details(np.uint8, 1, 6, 4, 3))
    np.testing.assert_array_equal(values[0], np.rot90(PIXELS, -1))


@pytest.mark.parametrize("size", [(1 << 20, 1 << 20), (0, 0)])
def test_a_size_that_no_picture_has_is_refused(picture: str, size: tuple[int, int]) -> None:
    said = TensorMetadata(size=size)
    with pytest.raises(ArgumentError, match=f"takes a picture of {size[0]} x {size[1]}, which is"):
        picture_as_input(picture, details(np.uint8, 1, -1, -1, 3), said)
