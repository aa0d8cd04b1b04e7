"""Pictures as model inputs. Needs Pillow: ``pip install 'delegraph[images]'``."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.operators.memory_limit import MemoryLimit

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tiff", ".webp"})
_PIXEL_BYTES = 4
"""Of a pixel while Pillow has it."""

_LOCK = threading.Lock()

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
        ArgumentError: Pillow is missing, the file is no picture, it is too large to decode, or the
            input takes none.
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
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ArgumentError(
            f"reading {path!r} needs Pillow; install it with: pip install 'delegraph[images]'"
        ) from error
    try:
        with open(path, "rb") as file:
            with _own_limit(Image):
                image = Image.open(file)  # reads the header alone
            _require_reasonable(image, path)
            image.load()
    except ArgumentError:
        raise
    except UnidentifiedImageError as error:
        raise ArgumentError(
            f"picture {path!r} cannot be read: it is of no kind that Pillow knows"
        ) from error
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ArgumentError(f"picture {path!r} cannot be read: {reason}") from error
    return image


@contextmanager
def _own_limit(pillow: Any) -> Iterator[None]:
    """Switch off Pillow's limit, which warns and counts pixels, whatever the file's size."""
    with _LOCK:
        before, pillow.MAX_IMAGE_PIXELS = pillow.MAX_IMAGE_PIXELS, None
        try:
            yield
        finally:
            pillow.MAX_IMAGE_PIXELS = before


def _require_reasonable(image: Image, path: str) -> None:
    """Check by its header that a picture may be decoded: like a model, in proportion to its file.

    Raises:
        ArgumentError: it would take more memory.
    """
    limit = MemoryLimit.of(None, os.path.getsize(path)).bytes
    wanted = image.width * image.height * _PIXEL_BYTES
    if wanted > limit:
        raise ArgumentError(
            f"picture {path!r} is {image.width} x {image.height}, which takes {wanted} bytes; a "
            f"file of its size may take {limit}: scale it down first"
        )


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
