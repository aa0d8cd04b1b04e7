"""Pictures as model inputs; needs Pillow: ``pip install 'delegraph[images]'``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import NOTHING_SAID, TensorMetadata
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.tools.decoded_pictures import PIXEL_BYTES, open_picture
from delegraph.tools.model_call import Details, declared_shape, input_name
from delegraph.tools.quantizing import quantized

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tiff", ".webp"})

_MUCH = 1.25
"""Factor of change of a picture's proportions from which on its objects look wrong."""

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # channels to Pillow's colour modes


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """The user's choices for converting a picture to an input.

    Attributes:
        crop: ``square`` first cuts a square out of the middle, ``none`` cuts nothing.
        fraction: side of that square, as a share of the picture's shorter side.
        mean: number that is subtracted from bytes: a single one, or one per channel; empty means
            the value in the metadata, or else 127.5.
        std: number by which the difference is divided; empty means the value in the metadata, or
            else 127.5.
        layout: order of the input's dimensions; None means the order in its shape.
        channels: order of the colours that the model takes.
    """

    crop: Literal["none", "square"] = "none"
    fraction: float = 1.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: Literal["nhwc", "nchw"] | None = None
    channels: Literal["rgb", "bgr"] = "rgb"

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (*self.mean, *self.std))):
            raise ArgumentError("--mean and --std: expected finite numbers")
        if 0 in self.std:
            raise ArgumentError("--std 0: nothing can be divided by 0")

    def cut(self, image: Image) -> Image:
        """Return the part of the picture *image* that becomes the input."""
        if self.crop == "none":
            return image
        side = max(1, round(min(image.size) * self.fraction))
        left, top = (image.width - side) // 2, (image.height - side) // 2
        return image.crop((left, top, left + side, top + side))

    def normalization(self, described: TensorMetadata) -> TensorMetadata:
        """Return the metadata of an input, updated with the user's mean and standard deviation."""
        if not self.mean and not self.std:
            return described
        mean = self.mean or described.mean or _HALF
        std = self.std or described.std or _HALF
        count = max(len(mean), len(std))
        mean, std = (v * count if len(v) == 1 else v for v in (mean, std))
        if len(mean) != len(std):
            raise ArgumentError(f"--mean has {len(mean)} numbers, --std {len(std)}")
        return replace(described, mean=mean, std=std)


AS_DESCRIBED = PictureOptions()
"""The choices by default: the whole picture, normalized as the metadata says."""

_HALF = (127.5,)


def picture_as_input(
    path: str,
    details: Details,
    described: TensorMetadata = NOTHING_SAID,
    note: Callable[[str], object] = str,
    options: PictureOptions = AS_DESCRIBED,
) -> NDArray[Any]:
    """Read a picture and convert it to the input's size, type and layout.

    By default, uint8 inputs get the bytes, int8 inputs the bytes minus 128, and floating-point
    inputs ``(byte - 127.5) / 127.5``. If the metadata has a normalization, floating-point inputs
    get ``(byte - mean) / std``, and int8 inputs get these numbers quantized. If the user gives a
    normalization, uint8 inputs get quantized numbers, too.

    Args:
        path: path of a file that Pillow can read.
        details: an entry of ``get_input_details``; ``[1, h, w, c]``, ``[1, c, h, w]`` or these
            without the 1. Unknown dimensions get the size in the metadata, or else the picture's
            size.
        described: metadata of the input.
        note: function that is called with a description of each conversion of the picture.
        options: the user's choices.

    Returns:
        An array of the input's shape and dtype.

    Raises:
        ArgumentError: Pillow is missing, the file is no picture, it is too large to decode, or the
            input takes no picture.

    Source:
        For uint8 inputs, for which the metadata's normalization is ignored: ``ImagePreprocessor``,
        tensorflow_lite_support/cc/task/processor/image_preprocessor.cc.
    """
    return image_as_input(open_picture(path), details, described, note, options)


def image_as_input(
    whole: Image,
    details: Details,
    described: TensorMetadata = NOTHING_SAID,
    note: Callable[[str], object] = str,
    options: PictureOptions = AS_DESCRIBED,
) -> NDArray[Any]:
    """Return an opened picture as the input's values; see :func:`picture_as_input`."""
    image = options.cut(whole)
    if image.size != whole.size:
        note(f"cut to the middle {image.width} x {image.height} of {whole.width} x {whole.height}")
    is_planar = _is_planar(details, options, note)
    height, width, channels = _wanted(details, described.size or image.size, is_planar)
    _require_room(details, width, height)
    image = image.convert(_MODES[channels])
    if image.size != (width, height):
        from PIL.Image import Resampling

        note(_resizing(image.size, (width, height)))
        image = image.resize((width, height), Resampling.BILINEAR)
    pixels = np.asarray(image, np.uint8).reshape(height, width, channels)
    if options.channels == "bgr":
        pixels = np.concatenate([pixels[..., 2::-1], pixels[..., 3:]], axis=-1)
        note("colours in the order blue, green, red")
    is_chosen = bool(options.mean or options.std)
    values = _converted(pixels, details, options.normalization(described), is_chosen, note)
    if is_planar:
        values = np.ascontiguousarray(np.moveaxis(values, -1, 0))
    return values[None] if len(details["shape"]) == 4 else values


def preparation(details: Details, described: TensorMetadata, options: PictureOptions) -> str:
    """Text about how pictures become an input; equal texts mean equal inputs.

    >>> details = {"name": "x", "shape": np.array([1, 8, 8, 3]), "dtype": np.int8}
    >>> preparation(details, NOTHING_SAID, PictureOptions(crop="square", fraction=0.875))
    'middle square of 0.875 of the shorter side, upright, resized (bilinear), byte - 128'

    Raises:
        ArgumentError: mean and standard deviation have different lengths.
    """
    dtype, is_chosen = np.dtype(details["dtype"]), bool(options.mean or options.std)
    given = options.normalization(described)
    part = "whole picture"
    if options.crop == "square":
        part = f"middle square of {_numbers([options.fraction])} of the shorter side"
    value = "(byte - 127.5) / 127.5"
    if dtype == np.uint8 and not is_chosen:
        value = "bytes"
    elif given.mean:
        by = "the options say" if is_chosen else "the metadata says"
        rounding = "" if dtype.kind == "f" else ", quantized"
        value = f"(byte - {_numbers(given.mean)}) / {_numbers(given.std)}{rounding}, as {by}"
    elif dtype == np.int8:
        value = "byte - 128"
    colours = ", blue first" if options.channels == "bgr" else ""
    layout = f", {options.layout}" if options.layout else ""
    return f"{part}, upright, resized (bilinear), {value}{colours}{layout}"


def _numbers(values: Sequence[float]) -> str:
    """Text of numbers, with all their digits: ``127.5`` or ``[123.675, 116.28, 103.53]``."""
    texts = [str(value).removesuffix(".0") for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _is_planar(details: Details, options: PictureOptions, note: Callable[[str], object]) -> bool:
    """Whether channels come before rows in the input, by the user's choice or by its shape."""
    if options.layout is not None:
        return options.layout == "nchw"
    shape = declared_shape(details)
    is_planar = len(shape) in (3, 4) and shape[-1] not in _MODES and shape[-3] in (1, 3)
    if is_planar:
        note("laid out as [1, c, h, w], as the input's shape is (--layout sets another)")
    return is_planar


def _resizing(size: tuple[int, int], wanted: tuple[int, int]) -> str:
    """Return text about the resizing of a picture, with advice if its proportions change much.

    >>> _resizing((512, 256), (224, 224))
    'resized from 512 x 256 to 224 x 224 (--crop square keeps proportions)'
    """
    text = f"resized from {size[0]} x {size[1]} to {wanted[0]} x {wanted[1]}"
    change = size[0] * wanted[1] / max(size[1] * wanted[0], 1)
    is_square = wanted[0] == wanted[1]
    if is_square and max(change, 1 / max(change, 1e-9)) > _MUCH:
        return f"{text} (--crop square keeps proportions)"
    return text


def is_picture(path: str) -> bool:
    """Whether the file *path* is a picture, by its suffix."""
    return Path(path).suffix.lower() in PICTURE_SUFFIXES


def _require_room(details: Details, width: int, height: int) -> None:
    """Check that a picture of *width* and *height* is not empty and fits the memory limit.

    Raises:
        ArgumentError: the size is zero, or exceeds the limit for a small file.
    """
    limit, wanted = MemoryLimit.of(None, 0).bytes, width * height * PIXEL_BYTES
    if not 0 < wanted <= limit:
        raise ArgumentError(
            f"{input_name(details)} takes a picture of {width} x {height}, which is {wanted} bytes "
            f"to prepare, of {limit} at most; give it as .npy"
        )


def _wanted(details: Details, size: tuple[int, int], is_planar: bool) -> tuple[int, int, int]:
    """Return height, width and channels of the input *details*.

    *size* is the picture's width and height, in pixels, for unknown dimensions.
    """
    shape = declared = declared_shape(details)
    if is_planar and len(shape) >= 3:
        shape = [*shape[:-3], *shape[-2:], shape[-3]]
    if len(shape) not in (3, 4) or shape[-1] not in (*_MODES, -1):
        layout = "[1, c, h, w] (nchw)" if is_planar else "[1, h, w, c] or [1, c, h, w]"
        raise ArgumentError(
            f"input {details['name']!r} has shape {declared} and takes no picture, which needs "
            f"{layout} with 1, 3 or 4 channels"
        )
    if len(shape) == 4 and shape[0] not in (1, -1):
        raise ArgumentError(f"input {details['name']!r} takes {shape[0]} pictures at once")
    height, width, channels = shape[-3:]
    return (
        size[1] if height < 0 else height,
        size[0] if width < 0 else width,
        3 if channels < 0 else channels,
    )


def _converted(
    pixels: NDArray[np.uint8],
    details: Details,
    described: TensorMetadata,
    is_chosen: bool,
    note: Callable[[str], object],
) -> NDArray[Any]:
    """Return *pixels* in the input's dtype, normalized.

    *is_chosen* says whether the user gave mean or std. Without them, uint8 pixels are unchanged.
    """
    dtype = np.dtype(details["dtype"])
    if dtype == np.uint8 and not is_chosen:
        return pixels
    if dtype.kind != "f" and dtype not in (np.int8, np.uint8):
        raise ArgumentError(
            f"input {details['name']!r} is {dtype.name}; a picture can be given as uint8, int8 or "
            "float"
        )
    if described.mean:
        by = "--mean and --std say" if is_chosen else "the metadata says"
        note(f"normalized as {by}")
        values = _normalized(pixels, described, details)
        return values.astype(dtype) if dtype.kind == "f" else quantized(values, details)
    if dtype == np.int8:
        return (pixels.astype(np.int16) - 128).astype(np.int8)
    note("normalized to -1 ... 1, as the model does not say (--mean and --std do)")
    return ((pixels.astype(np.float32) - 127.5) / 127.5).astype(dtype)


def _normalized(
    pixels: NDArray[np.uint8], described: TensorMetadata, details: Details
) -> NDArray[np.float32]:
    """Return ``(byte - mean) / std`` of *pixels*; mean and std are numbers, or one per channel.

    Pixels are ``[height, width, channels]``.
    """
    channels = pixels.shape[-1]
    if len(described.mean) not in (1, channels):
        raise ArgumentError(
            f"{input_name(details)}: mean and std are of {len(described.mean)} channels, the input "
            f"has {channels}: give one number, or one per channel; or the input as .npy"
        )
    mean, std = np.array(described.mean, np.float32), np.array(described.std, np.float32)
    return (pixels.astype(np.float32) - mean) / std
