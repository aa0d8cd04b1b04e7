"""Preprocessing of pictures for a model: settings and their arithmetic.

Each training framework prepares pictures in its own way, and a model loses accuracy if pictures are
prepared in another way. A :class:`Preprocessing` has a setting for each choice. A preset is a named
one, with the reason for its choices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.evaluation.picture_files import PictureFile
from delegraph.tools.evaluation.picture_resizing import Filter, resized
from delegraph.tools.model_call import Details, declared_shape, input_name
from delegraph.tools.quantizing import quantized

Crop = Literal["square", "rectangle", "after", "none"]
Pixels = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Preprocessing(JsonRecord):
    """Settings by which a picture becomes an input.

    Attributes:
        name: name of the preset from which the settings come.
        reason: text that says why the settings differ from the official evaluation tool's; for
            changed settings, their :attr:`steps`.
        crop: the part that is cut out of the middle. ``square``: a square with sides of *fraction*
            of the shorter side. ``rectangle``: *fraction* of both sides, as in
            ``tf.image.central_crop``. ``after``: the picture is first resized so that it covers the
            input's size divided by *fraction*; then the input's size is cut out, as in torchvision.
            ``none``: the whole picture.
        fraction: size of the crop as a share, above 0, up to 1; see *crop*.
        resize: name of the resizing filter.
        mean: number subtracted from bytes for floating-point inputs; a single one, or one per
            channel.
        std: number by which the difference is divided; a single one, or one per channel.
        channels: the order of colours that the model takes.
        integers: values for integer inputs. ``bytes``: the pixels, minus 128 for int8, cut towards
            zero; ``quantized``: the values for floating-point inputs, quantized for the input.
        upright: whether to rotate the picture by its EXIF data.
    """

    name: str
    reason: str
    crop: Crop = "none"
    fraction: float = 0.875
    resize: Filter = "tflite"
    mean: tuple[float, ...] = (127.5,)
    std: tuple[float, ...] = (127.5,)
    channels: Literal["rgb", "bgr"] = "rgb"
    integers: Literal["bytes", "quantized"] = "bytes"
    upright: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise ArgumentError(f"crop fraction {self.fraction:g}: expected above 0 and up to 1")
        for what, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
                raise ArgumentError(f"{what} {_listed(numbers)}: expected one number, or three")
        if 0 in self.std:
            raise ArgumentError(f"std {_listed(self.std)}: nothing can be divided by 0")

    @property
    def steps(self) -> str:
        """Text of all steps with their values.

        >>> Preprocessing("mine", "why", resize="box", integers="quantized").steps
        'whole picture, resized (box), floats: (byte - 127.5) / 127.5, integers: quantized'
        """
        part = {
            "none": "whole picture",
            "square": f"middle square of {self.fraction:g} of the shorter side",
            "rectangle": f"middle {self.fraction:g} of both sides",
            "after": f"middle of the picture that covers the size / {self.fraction:g}",
        }[self.crop]
        values = f"(byte - {_in_brackets(self.mean)}) / {_in_brackets(self.std)}"
        steps = [part, *["upright"] * self.upright, f"resized ({self.resize})", f"floats: {values}"]
        steps += [f"integers: {self.integers}", *["blue first"] * (self.channels == "bgr")]
        return ", ".join(steps)

    def input(self, picture: PictureFile, details: Details) -> Pixels:
        """Return *picture* converted to the input *details*, in its shape and dtype.

        A raw file is neither cropped nor resized. An input of one channel gets shades of grey.

        Raises:
            ArgumentError: the picture cannot be read, or the input takes no picture, or has one
                channel while *mean* or *std* has three.
        """
        height, width = picture_size(details)
        pixels: Pixels = picture.pixels(height, width, upright=self.upright)
        shape = declared_shape(details)[1:]
        if shape[2:] != [3]:
            pixels = self._grey(pixels, details)
        if not picture.is_raw:
            pixels = self._sized(pixels, (height, width))
        if self.channels == "bgr":
            pixels = pixels[..., ::-1]
        return self._converted(pixels, details)[..., : math.prod(shape[2:])].reshape(1, *shape)

    def _grey(self, pixels: Pixels, details: Details) -> Pixels:
        """Return *pixels* with three equal channels, as Pillow converts colours to grey."""
        from PIL import Image

        if len(self.mean) + len(self.std) > 2:
            raise ArgumentError(
                f"{input_name(details)} has one channel: mean and std are one number"
            )
        return np.asarray(Image.fromarray(pixels).convert("L").convert("RGB"))

    def _sized(self, pixels: Pixels, size: tuple[int, int]) -> Pixels:
        """Return pixels in the input's size: uint8, or float32 if the filter gives fractions."""
        if self.crop == "none":
            return resized(pixels, size, self.resize)
        if self.crop == "after":
            covering = _covering(pixels.shape[:2], size, self.fraction)
            made = resized(pixels, covering, self.resize)
            starts = [round((side - n) / 2) for side, n in zip(covering, size, strict=True)]
            return _cut(made, starts, size)
        kept = _cut(pixels, *self._first_cut(pixels.shape[:2]))
        return resized(kept, size, self.resize)

    def _first_cut(self, size: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Return start and size of the first crop, each as (height, width)."""
        if self.crop == "rectangle":
            starts = [int((side - side * self.fraction) / 2) for side in size]
            return starts, [side - 2 * start for side, start in zip(size, starts, strict=True)]
        kept = max(1, min(_rounded(self.fraction * side) for side in size))
        return [_rounded((side - kept) / 2) for side in size], [kept, kept]

    def _converted(self, pixels: Pixels, details: Details) -> Pixels:
        """Return *pixels* in the dtype of the input *details*.

        Source:
            ImagePreprocessingStage, tflite/tools/evaluation/stages/image_preprocessing_stage.cc:
            it multiplies by ``1 / std``, and converts to integers as C does, towards zero.
        """
        dtype = np.dtype(details["dtype"])
        is_float = dtype.kind == "f"
        if not is_float and self.integers == "bytes":
            offset = np.float32(128 if dtype == np.int8 else 0)
            return (pixels.astype(np.float32) - offset).astype(dtype)
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        values = (pixels.astype(np.float32) - mean) * (np.float32(1) / std)
        return values.astype(dtype) if is_float else quantized(values, details)


def _rounded(value: float) -> int:
    """Return *value* rounded to an integer, halves away from zero, as in C++."""
    return math.floor(value + 0.5)


def _cut(pixels: Pixels, starts: Sequence[int], size: Sequence[int]) -> Pixels:
    rows, columns = (slice(start, start + n) for start, n in zip(starts, size, strict=True))
    return pixels[rows, columns]


def _covering(size: Sequence[int], wanted: tuple[int, int], fraction: float) -> tuple[int, int]:
    """Return the smallest size with the picture's proportions that covers *wanted* / *fraction*.

    >>> _covering((480, 640), (224, 224), 0.875)
    (256, 341)
    """
    goal = [math.floor(side / fraction) for side in wanted]
    least = max((0, 1), key=lambda axis: goal[axis] / size[axis])
    height, width = (goal[least] * side // size[least] for side in size)
    return height, width


def picture_size(details: Details) -> tuple[int, int]:
    """Return height and width of the input *details*, which takes one picture, RGB or grey.

    Raises:
        ArgumentError: the input takes no picture.
    """
    shape = declared_shape(details)
    dtype = np.dtype(details["dtype"])
    takes_picture = len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3))
    if not takes_picture or shape[0] not in (1, -1) or min(shape[1:3]) < 1:
        raise ArgumentError(
            f"{input_name(details)} takes no picture: expected [1, H, W, 3], [1, H, W, 1] or "
            "[1, H, W]"
        )
    if dtype.kind != "f" and dtype not in (np.uint8, np.int8):
        raise ArgumentError(f"{input_name(details)}: expected float, uint8 or int8 for a picture")
    return shape[1], shape[2]


def _in_brackets(numbers: Sequence[float]) -> str:
    """Text of one number, or of a list in brackets."""
    return _listed(numbers) if len(numbers) == 1 else f"[{_listed(numbers)}]"


def _listed(numbers: Sequence[float]) -> str:
    return ",".join(f"{number:g}" for number in numbers)
