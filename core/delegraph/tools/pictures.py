"""Pictures as model inputs. Needs Pillow: ``pip install 'delegraph[images]'``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tiff", ".webp"})
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}  # channels to Pillow's colour modes


def picture_as_input(path: str, details: Mapping[str, Any]) -> NDArray[Any]:
    """Return a picture as an input wants it: resized bilinearly, converted, batched.

    uint8 inputs get the bytes, int8 inputs the bytes minus 128, floating-point inputs
    ``(byte - 127.5) / 127.5``.

    Args:
        path: any file that Pillow reads.
        details: an entry of ``get_input_details``; ``[1, h, w, c]`` or ``[h, w, c]``. Open
            dimensions take the picture's own size.

    Returns:
        ``[1, h, w, c]`` or ``[h, w, c]``, of the input's dtype.

    Raises:
        ArgumentError: Pillow is missing, the file is no picture, or the input takes none.
    """
    image = _open(path)
    height, width, channels = _wanted(details, image)
    image = image.convert(_MODES[channels])
    if image.size != (width, height):
        from PIL.Image import Resampling

        image = image.resize((width, height), Resampling.BILINEAR)
    pixels = np.asarray(image, np.uint8).reshape(height, width, channels)
    values = _converted(pixels, details)
    return values[None] if len(details["shape"]) == 4 else values


def _open(path: str) -> Image:
    try:
        from PIL import Image
    except ImportError as error:
        raise ArgumentError(
            f"reading {path!r} needs Pillow; install it with: pip install 'delegraph[images]'"
        ) from error
    try:
        image = Image.open(path)
        image.load()
    except OSError as error:
        raise ArgumentError(f"picture {path!r} cannot be read: {error}") from error
    return image


def _wanted(details: Mapping[str, Any], image: Image) -> tuple[int, int, int]:
    """Return height, width and channels that the input takes."""
    shape = details["shape_signature"].tolist() or details["shape"].tolist()
    if len(shape) not in (3, 4) or shape[-1] not in (*_MODES, -1):
        raise ArgumentError(
            f"input {details['name']!r} has shape {shape} and takes no picture, which needs "
            "[1, h, w, c] with 1, 3 or 4 channels"
        )
    if len(shape) == 4 and shape[0] not in (1, -1):
        raise ArgumentError(f"input {details['name']!r} takes {shape[0]} pictures at once")
    height, width, channels = shape[-3:]
    return (
        image.height if height < 0 else height,
        image.width if width < 0 else width,
        3 if channels < 0 else channels,
    )


def _converted(pixels: NDArray[np.uint8], details: Mapping[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(details["dtype"])
    if dtype == np.uint8:
        return pixels
    if dtype == np.int8:
        return (pixels.astype(np.int16) - 128).astype(np.int8)
    if dtype.kind == "f":
        return ((pixels.astype(np.float32) - 127.5) / 127.5).astype(dtype)
    raise ArgumentError(
        f"input {details['name']!r} is {dtype.name}; a picture can be given as uint8, int8 or float"
    )
