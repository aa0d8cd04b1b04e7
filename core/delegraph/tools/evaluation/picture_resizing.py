"""Resizes pictures by the filters of training frameworks, whose results differ noticeably."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.resize_bilinear import resizer
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

Filter = Literal[
    "tflite", "half-pixel", "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"
]
"""Filters that resize pictures.

``tflite`` is RESIZE_BILINEAR of the reference kernels on floats. It interpolates between the four
pixels around ``i * old / new``. ``half-pixel`` does the same around ``(i + 0.5) * old / new -
0.5``, as ``tf.image.resize`` does. Neither smooths first, so strong downscaling samples single
pixels. The other filters are Pillow's. They average all pixels that a new pixel covers (except
``nearest``) and round to bytes.
"""

FILTERS: tuple[Filter, ...] = get_args(Filter)


def resized(pixels: NDArray[Any], size: tuple[int, int], how: Filter) -> NDArray[Any]:
    """Return a picture, ``[H, W, 3], uint8``, resized to *size*, height and width.

    Returns:
        ``[height, width, 3]``; float32 for the kernels of TFLite, uint8 for Pillow's filters.
    """
    if how in ("tflite", "half-pixel"):
        return _by_kernel(pixels.astype(np.float32), size, how == "half-pixel")
    if pixels.shape[:2] == size:
        return pixels
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.asarray(image.resize(size[::-1], Image.Resampling[how.upper()]))


def _by_kernel(
    pixels: NDArray[np.float32], size: tuple[int, int], half_pixel_centers: bool
) -> NDArray[np.float32]:
    made = np.empty((*size, pixels.shape[-1]), np.float32)
    x, y = (
        Tensor(index, TensorType.FLOAT32, (1, *array.shape), data=array[None])
        for index, array in enumerate((pixels, made))
    )
    resizer(x, y, size, False, half_pixel_centers, "reference")()
    return made
