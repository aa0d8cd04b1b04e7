"""Decodes picture files of any kind that Pillow knows, if their size is in proportion."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delegraph.errors import ArgumentError
from delegraph.operators.memory_limit import MemoryLimit

if TYPE_CHECKING:
    from PIL.Image import Image

PIXEL_BYTES = 4
"""Number of bytes that Pillow needs for a pixel."""

_LOCK = threading.Lock()


def open_picture(path: str, *, upright: bool = True) -> Image:
    """Open the picture file *path* and return its decoded image.

    Args:
        path: path of a file that Pillow can read.
        upright: whether to rotate the picture by its EXIF data.

    Raises:
        ArgumentError: Pillow is missing, the file is no picture, or it is too large to decode.
    """
    if not os.path.exists(path):
        raise ArgumentError(f"picture {path!r} cannot be read: {os.strerror(errno.ENOENT)}")
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


def blank_picture() -> Image:
    """Return a black picture of 8 x 8 pixels, on which options are tried before files are read."""
    require_pillow("a folder of pictures")
    from PIL import Image

    return Image.new("RGB", (8, 8))


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
    """Check that the size in a picture's header is in proportion to the size of its file *path*.

    Raises:
        ArgumentError: the decoded picture exceeds the limit.
    """
    limit = MemoryLimit.of(None, os.path.getsize(path)).bytes
    wanted = image.width * image.height * PIXEL_BYTES
    if wanted > limit:
        raise ArgumentError(
            f"picture {path!r} is {image.width} x {image.height}, which takes {wanted} bytes; a "
            f"file of its size may take {limit}: scale it down first"
        )
