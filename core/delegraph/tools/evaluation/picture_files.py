"""Pictures in a folder as samples, in the order of the official tools."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.quantities import few_of, plural
from delegraph.tools.decoded_pictures import open_picture
from delegraph.tools.evaluation.task import content_digest
from delegraph.tools.pictures import is_picture
from delegraph.tools.whole_file import read_whole

RAW_SUFFIX = ".rgb8"


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture file with its ground truth, as a sample.

    Attributes:
        path: path of the file.
        truth: the right answer as text, which is a part of :meth:`digest`.
    """

    path: str
    truth: str = ""

    @property
    def key(self) -> str:
        """Name of the picture's file, without the folder."""
        return os.path.basename(self.path)

    @property
    def is_raw(self) -> bool:
        """Whether the file holds the input's raw bytes, row by row, without a header."""
        return self.path.endswith(RAW_SUFFIX)

    def digest(self) -> str:
        """Digest of the file's content and the truth.

        Raises:
            ArgumentError: the file cannot be read.
        """
        return content_digest(self.truth.encode() + b"\0" + read_whole(self.path))

    def pixels(self, height: int, width: int, *, upright: bool = False) -> NDArray[np.uint8]:
        """Return the picture, ``[H, W, 3], uint8``, as red, green, blue.

        Args:
            height: height of a raw file, which must have the input's size; other files have their
                own size.
            width: width of a raw file.
            upright: whether to rotate the picture by its EXIF data; the official tools do not.

        Raises:
            ArgumentError: the picture cannot be read, Pillow is missing, or a raw file has another
                size.
        """
        if not self.is_raw:
            image = open_picture(self.path, upright=upright).convert("RGB")
            return np.asarray(image, np.uint8)
        content = read_whole(self.path)
        if len(content) != height * width * 3:
            raise ArgumentError(
                f"{self.path!r} has {len(content)} bytes, expected {height} x {width} x 3 = "
                f"{height * width * 3}: a {RAW_SUFFIX} file has the size of the input"
            )
        return np.frombuffer(content, np.uint8).reshape(height, width, 3)


def picture_names(folder: str) -> tuple[list[str], list[str]]:
    """Return the names of the pictures in a folder, and of its other files, each sorted by bytes.

    Hidden files are no pictures, and neither are files whose names do not end as a picture's do.

    Raises:
        ArgumentError: the path is no folder, or the folder has no picture.

    Source:
        GetSortedFileNames, tflite/tools/evaluation/utils.cc, which takes every file.
    """
    try:
        with os.scandir(folder) as entries:
            is_folder = {entry.name: entry.is_dir() for entry in entries}
    except OSError as error:
        raise ArgumentError(f"folder {folder!r}: {error.strerror or error}") from error
    names = sorted((name for name in is_folder if not is_folder[name]), key=os.fsencode)
    pictures = [name for name in names if _is_picture_name(name)]
    others = [name for name in names if not _is_picture_name(name)]
    if not pictures:
        found = (
            f": its {plural(len(others), 'file')} {few_of([*map(repr, others)], 3)}"
            if others
            else ""
        )
        below = "; pictures in folders below do not count" if any(is_folder.values()) else ""
        raise ArgumentError(
            f"folder {folder!r} holds no picture{found}{below}; a picture's name has an ending "
            "such as .jpg or .png"
        )
    return pictures, others


def _is_picture_name(name: str) -> bool:
    if name.startswith("."):
        return False
    is_known = is_picture(name) or name.endswith(RAW_SUFFIX)
    return is_known or Path(name).suffix.lower() in _endings_of_pillow()


@cache
def _endings_of_pillow() -> frozenset[str]:
    """Return the endings of the pictures that Pillow reads; none without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return frozenset()
    known = Image.registered_extensions()
    return frozenset(ending for ending, kind in known.items() if kind in Image.OPEN)


def chosen(count: int, denied: Collection[int] = (), limit: int = 0) -> Sequence[int]:
    """Return the positions of the samples to use.

    Args:
        count: number of all samples.
        denied: numbers of the samples to leave out; the first sample is number 1.
        limit: number of remaining samples to use; 0 means all.

    >>> chosen(5, {1, 3}, 2)
    [1, 3]
    """
    positions = [position for position in range(count) if position + 1 not in denied]
    return positions[:limit] if limit else positions
