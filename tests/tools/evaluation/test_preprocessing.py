from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from delegraph.errors import ArgumentError
from delegraph.tools import PictureFile, Preprocessing, preset
from delegraph.tools.evaluation.presets import PRESETS
from support import tensor_details

SIZES = [(9, 7), (7, 9), (37, 50), (64, 64), (5, 3)]


def details(dtype: str, size: tuple[int, int] = (4, 6), scale: float = 0.0, zero: int = 0) -> Any:
    return tensor_details.details(dtype, 1, *size, 3, scale=scale, zero_point=zero)


def picture(folder: Path, size: tuple[int, int], seed: int = 0) -> tuple[PictureFile, Any]:
    """Return a picture without loss, and its pixels; one with areas of one colour."""
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
    pixels[: size[0] // 2] = (200, 100, 255)
    path = folder / f"{size}.png"
    Image.fromarray(pixels).save(path)
    return PictureFile(str(path)), pixels


def half_up(value: float) -> int:
    return math.floor(value + 0.5)


def slow_bilinear(x: Any, size: tuple[int, int]) -> Any:
    """Return the reference kernel's floats: each product and sum rounded, in its order."""
    f = np.float32
    (h, w), (oh, ow) = x.shape[:2], size
    y = np.zeros((oh, ow, 3), np.float32)
    for i in range(oh):
        fy = f(i) * (f(h) / f(oh))
        y0, y1 = int(fy), min(math.ceil(fy), h - 1)
        dy = fy - f(y0)
        for j in range(ow):
            fx = f(j) * (f(w) / f(ow))
            x0, x1 = int(fx), min(math.ceil(fx), w - 1)
            dx = fx - f(x0)
            for c in range(3):
                total = f(x[y0, x0, c]) * (1 - dy) * (1 - dx)
                total += f(x[y1, x0, c]) * dy * (1 - dx)
                total += f(x[y0, x1, c]) * (1 - dy) * dx
                total += f(x[y1, x1, c]) * dy * dx
                y[i, j, c] = total
    return y


def slow_tflite(pixels: Any, size: tuple[int, int], dtype: str) -> Any:
    """Return what the official tool makes of a picture, one value after the other."""
    h, w = pixels.shape[:2]
    side = min(half_up(0.875 * h), half_up(0.875 * w))
    top, left = half_up((h - side) / 2), half_up((w - side) / 2)
    y = slow_bilinear(pixels[top : top + side, left : left + side], size)
    if dtype == "float32":
        return ((y - np.float32(127.5)) * (np.float32(1) / np.float32(127.5)))[None]
    offset = 128 if dtype == "int8" else 0
    cut = [int(np.float32(value) - np.float32(offset)) for value in y.reshape(-1)]
    return np.array(cut, dtype).reshape(1, *size, 3)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int8"])
@pytest.mark.parametrize("size", SIZES)
def test_tflite_is_bit_for_bit_the_slow_definition(
    tmp_path: Path, size: tuple[int, int], dtype: str
) -> None:
    sample, pixels = picture(tmp_path, size)
    made = preset("tflite").input(sample, details(dtype))
    assert made.dtype == dtype
    np.testing.assert_array_equal(made, slow_tflite(pixels, (4, 6), dtype))


def test_int8_is_cut_towards_zero_not_down(tmp_path: Path) -> None:
    """100.7 - 128 is -27.3, and becomes -27."""
    pixels = np.zeros((1, 10, 3), np.uint8)
    pixels[0, 1:] = 100
    pixels[0, 2] = 107
    Image.fromarray(pixels).save(tmp_path / "a.png")
    how = replace(preset("tflite"), crop="none")
    made = how.input(PictureFile(str(tmp_path / "a.png")), details("int8", (1, 100)))
    real = 100 + 7 * np.float32(0.1) - 128
    assert real == pytest.approx(-27.3, abs=1e-4)
    assert made[0, 0, 11, 0] == -27


def test_raw_files_are_neither_cut_nor_resized(tmp_path: Path) -> None:
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    (tmp_path / "a.rgb8").write_bytes(pixels.tobytes())
    made = preset("tflite").input(PictureFile(str(tmp_path / "a.rgb8")), details("uint8"))
    np.testing.assert_array_equal(made[0], pixels)
    with pytest.raises(ArgumentError, match="has 72 bytes, expected 5 x 6 x 3 = 90"):
        preset("tflite").input(PictureFile(str(tmp_path / "a.rgb8")), details("uint8", (5, 6)))


def by_torchvision(pixels: Any, size: int) -> Any:
    """Resize the shorter side to size / 0.875, cut the middle out, normalize."""
    h, w = pixels.shape[:2]
    short = int(size / 0.875)
    new = (short, int(short * w / h)) if h <= w else (int(short * h / w), short)
    image = Image.fromarray(pixels).resize(new[::-1], Image.Resampling.BILINEAR)
    top, left = round((new[0] - size) / 2), round((new[1] - size) / 2)
    kept = np.asarray(image)[top : top + size, left : left + size] / 255
    return (kept - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]


@pytest.mark.parametrize("size", SIZES)
def test_torchvision_resizes_then_cuts_and_normalizes_each_colour(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    sample, pixels = picture(tmp_path, size)
    made = preset("torchvision").input(sample, details("float32", (14, 14)))
    np.testing.assert_allclose(made[0], by_torchvision(pixels, 14), atol=1e-5)


def test_timm_is_torchvision_with_another_filter() -> None:
    torchvision = replace(preset("torchvision"), name="", reason="", resize="bicubic")
    assert replace(preset("timm"), name="", reason="") == torchvision


def test_slim_keeps_the_proportions_of_what_it_cuts_out(tmp_path: Path) -> None:
    sample, pixels = picture(tmp_path, (37, 50))
    made = preset("slim").input(sample, details("uint8"))
    top, left = int((37 - 37 * 0.875) / 2), int((50 - 50 * 0.875) / 2)
    kept = pixels[top : 37 - top, left : 50 - left]
    np.testing.assert_array_equal(made[0], slow_bilinear(kept, (4, 6)).astype(np.uint8))


def test_keras_squeezes_the_whole_picture_by_the_nearest_pixels(tmp_path: Path) -> None:
    sample, pixels = picture(tmp_path, (37, 50))
    nearest = np.asarray(Image.fromarray(pixels).resize((6, 4), Image.Resampling.NEAREST))
    made = preset("keras").input(sample, details("float32"))
    np.testing.assert_allclose(made[0], nearest / 127.5 - 1, atol=1e-6)
    caffe = preset("keras-caffe").input(sample, details("float32"))
    blue_first = nearest[..., ::-1] - np.float32([103.939, 116.779, 123.68])
    np.testing.assert_allclose(caffe[0], blue_first, atol=1e-4)


def test_integers_are_quantized_where_a_preset_says_so(tmp_path: Path) -> None:
    sample, _ = picture(tmp_path, (37, 50))
    real = preset("torchvision").input(sample, details("float32", (14, 14)))
    made = preset("torchvision").input(sample, details("int8", (14, 14), 0.02, -7))
    expected = np.clip(np.rint(real.astype(np.float64) / 0.02) - 7, -128, 127)
    np.testing.assert_array_equal(made, expected)


def test_half_pixel_is_tf_image_resize(tmp_path: Path) -> None:
    """Twice the size: each new pixel lies a quarter from an old one."""
    pixels = np.repeat(np.uint8([[0, 100]])[..., None], 3, -1)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    how = Preprocessing("own", "", resize="half-pixel", mean=(0,), std=(1,))
    made = how.input(PictureFile(str(tmp_path / "a.png")), details("float32", (1, 4)))
    np.testing.assert_array_equal(made[0, 0, :, 0], [0, 25, 75, 100])


def test_a_picture_is_turned_only_where_that_is_asked_for(tmp_path: Path) -> None:
    pixels = np.zeros((4, 6, 3), np.uint8)
    pixels[0] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    sample = PictureFile(str(tmp_path / "a.png"))
    how = replace(preset("tflite"), crop="none")
    assert how.input(sample, details("uint8"))[0, 0].min() == 255
    assert replace(how, upright=True).input(sample, details("uint8"))[0, -1].min() == 255


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fraction": 0.0}, "crop fraction 0: expected above 0"),
        ({"mean": (1.0, 2.0)}, "mean 1,2: expected one number, or three"),
        ({"std": (0.0,)}, "std 0: nothing can be divided by 0"),
        ({"mean": (math.nan,)}, "mean nan: expected"),
    ],
)
def test_wrong_steps_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        replace(preset("tflite"), **changes)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ([1, 4, 6, 2], "float32", r"float32 \[1, 4, 6, 2\]\) takes no picture: expected \[1, H"),
        ([2, 4, 6, 3], "float32", "takes no picture"),
        ([1, 10], "float32", "takes no picture"),
        ([1, 4, 6, 3], "int32", "expected float, uint8 or int8"),
    ],
)
def test_inputs_that_take_no_picture_are_refused(
    tmp_path: Path, shape: list[int], dtype: str, message: str
) -> None:
    sample, _ = picture(tmp_path, (9, 7))
    entry = tensor_details.details(dtype, *shape)
    with pytest.raises(ArgumentError, match=message):
        preset("tflite").input(sample, entry)


@pytest.mark.parametrize("shape", [[1, 4, 6, 1], [1, 4, 6]])
def test_an_input_of_one_channel_gets_shades_of_grey(tmp_path: Path, shape: list[int]) -> None:
    sample, pixels = picture(tmp_path, (9, 7))
    entry = tensor_details.details("int8", *shape)
    grey = Image.fromarray(pixels).convert("L").resize((6, 4), Image.Resampling.NEAREST)
    made = preset("keras").input(sample, entry)
    assert made.shape == tuple(shape)
    np.testing.assert_array_equal(made.reshape(4, 6), np.asarray(grey, np.int16) - 128)
    with pytest.raises(ArgumentError, match="has one channel: mean and std are one number"):
        preset("timm").input(sample, entry)


def test_every_preset_says_why_it_differs_and_a_wrong_name_is_corrected() -> None:
    assert all(how.reason and how.name == name for name, how in PRESETS.items())
    with pytest.raises(ArgumentError, match=r"no preset 'torchvison'.*did you mean 'torchvision'"):
        preset("torchvison")
