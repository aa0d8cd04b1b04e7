"""Pictures as model inputs. Needs Pillow: ``pip install 'delegraph[images]'``."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import NOTHING_SAID, TensorMetadata
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.tools.model_call import Details, declared_shape, input_name
from delegraph.tools.quantizing import quantized

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tiff", ".webp"})
_PIXEL_BYTES = 4
"""Number of bytes that Pillow needs for a pixel."""

_LOCK = threading.Lock()

_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # channels to Pillow's colour modes


def picture_as_input(
    path: str,
    details: Details,
    described: TensorMetadata = NOTHING_SAID,
    note: Callable[[str], object] = str,
) -> NDArray[Any]:
    """Read a picture and convert it to the input's size, type and layout.

    uint8 inputs get the bytes, int8 inputs the bytes minus 128, floating-point inputs ``(byte -
    127.5) / 127.5``. If the metadata has a normalization, floating-point inputs get ``(byte - mean)
    / std``, and int8 inputs get these numbers quantized.

    Args:
        path: path of a file that Pillow can read.
        details: an entry of ``get_input_details``; ``[1, h, w, c]`` or ``[h, w, c]``. Open
            dimensions take the size that the metadata gives, or else the picture's own.
        described: what the metadata says about the input.
        note: is called with a description of each conversion of the picture.

    Returns:
        ``[1, h, w, c]`` or ``[h, w, c]``, of the input's dtype.

    Raises:
        ArgumentError: Pillow is missing, the file is no picture, it is too large to decode, or the
            input takes no picture.

    Source:
        For uint8 inputs, which get the bytes whatever the normalization: ``ImagePreprocessor``,
        tensorflow_lite_support/cc/task/processor/image_preprocessor.cc.
    """
    image = open_picture(path)
    height, width, channels = _wanted(details, described.size or image.size)
    _require_room(details, width, height)
    image = image.convert(_MODES[channels])
    if image.size != (width, height):
        from PIL.Image import Resampling

        note(f"resized from {image.width} x {image.height} to {width} x {height}")
        image = image.resize((width, height), Resampling.BILINEAR)
    pixels = np.asarray(image, np.uint8).reshape(height, width, channels)
    values = _converted(pixels, details, described, note)
    return values[None] if len(details["shape"]) == 4 else values


def is_picture(path: str) -> bool:
    """Return whether a file is a picture, according to its suffix."""
    return Path(path).suffix.lower() in PICTURE_SUFFIXES


def open_picture(path: str, *, upright: bool = True) -> Image:
    """Open the picture file and return its decoded image.

    Args:
        path: path of a file that Pillow can read.
        upright: whether the picture is turned as its EXIF data says.

    Raises:
        ArgumentError: Pillow is missing, the file is no picture, or it is too large to decode.
    """
    require_pillow(f"reading {path!r}")
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with open(path, "rb") as file:
            with _own_limit(Image):
                image = Image.open(file)  # reads the header only
            _require_reasonable(image, path)
            return ImageOps.exif_transpose(image) if upright else image.copy()
    except ArgumentError:
        raise
    except UnidentifiedImageError as error:
        raise ArgumentError(
            f"picture {path!r} cannot be read: it is of no kind that Pillow knows"
        ) from error
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ArgumentError(f"picture {path!r} cannot be read: {reason}") from error


def require_pillow(what: str) -> None:
    """Check that Pillow is installed; *what* names the feature that needs it.

    Raises:
        ArgumentError: Pillow is not installed.
    """
    try:
        import PIL.Image  # noqa: F401 - to see whether it can be
    except ImportError as error:
        raise ArgumentError(
            f"{what} needs Pillow; install it with: pip install 'delegraph[images]'"
        ) from error


@contextmanager
def _own_limit(pillow: Any) -> Iterator[None]:
    """Context in which Pillow's own limit on the number of pixels is off."""
    with _LOCK:
        before, pillow.MAX_IMAGE_PIXELS = pillow.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            pillow.MAX_IMAGE_PIXELS = before


def _require_reasonable(image: Image, path: str) -> None:
    """Check by its header that a picture's size is in proportion to its file.

    Raises:
        ArgumentError: the decoded picture exceeds the limit.
    """
    limit = MemoryLimit.of(None, os.path.getsize(path)).bytes
    wanted = image.width * image.height * _PIXEL_BYTES
    if wanted > limit:
        raise ArgumentError(
            f"picture {path!r} is {image.width} x {image.height}, which takes {wanted} bytes; a "
            f"file of its size may take {limit}: scale it down first"
        )


def _require_room(details: Details, width: int, height: int) -> None:
    """Check that the picture size of an input is positive and within the memory limit.

    Raises:
        ArgumentError: the size is zero, or exceeds the limit for a small file.
    """
    limit, wanted = MemoryLimit.of(None, 0).bytes, width * height * _PIXEL_BYTES
    if not 0 < wanted <= limit:
        raise ArgumentError(
            f"{input_name(details)} takes a picture of {width} x {height}, which is {wanted} bytes "
            f"to prepare, of {limit} at most; give it as .npy"
        )


def _wanted(details: Details, size: tuple[int, int]) -> tuple[int, int, int]:
    """Return the input's height, width and channels; *size* is (width, height) of the picture."""
    shape = declared_shape(details)
    if len(shape) not in (3, 4) or shape[-1] not in (*_MODES, -1):
        raise ArgumentError(
            f"input {details['name']!r} has shape {shape} and takes no picture, which needs "
            "[1, h, w, c] with 1, 3 or 4 channels"
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
    note: Callable[[str], object],
) -> NDArray[Any]:
    dtype = np.dtype(details["dtype"])
    if dtype == np.uint8:
        return pixels
    if dtype.kind != "f" and dtype != np.int8:
        raise ArgumentError(
            f"input {details['name']!r} is {dtype.name}; a picture can be given as uint8, int8 or "
            "float"
        )
    if described.mean:
        note("normalized as the metadata says")
        values = _normalized(pixels, described, details)
        return values.astype(dtype) if dtype.kind == "f" else quantized(values, details)
    if dtype == np.int8:
        return (pixels.astype(np.int16) - 128).astype(np.int8)
    note("normalized to -1 ... 1")
    return ((pixels.astype(np.float32) - 127.5) / 127.5).astype(dtype)


def _normalized(
    pixels: NDArray[np.uint8], described: TensorMetadata, details: Details
) -> NDArray[np.float32]:
    """Return ``(byte - mean) / std``; mean and std have one number, or one per channel."""
    channels = pixels.shape[-1]
    if len(described.mean) not in (1, channels):
        raise ArgumentError(
            f"{input_name(details)}: the metadata normalizes {len(described.mean)} channels, the "
            f"input has {channels}; prepare the picture yourself and give it as .npy"
        )
    mean, std = np.array(described.mean, np.float32), np.array(described.std, np.float32)
    return (pixels.astype(np.float32) - mean) / std
