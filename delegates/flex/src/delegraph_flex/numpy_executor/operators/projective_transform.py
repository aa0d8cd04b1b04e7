"""Projective transformations of images.

Source:
    ProjectiveGenerator, core/kernels/image/image_ops.h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.registry import FLOATS, operator
from delegraph_flex.numpy_executor.rounding import half_away

Floats = NDArray[np.float32]
_TYPES = FLOATS | {DataType.UINT8, DataType.INT32, DataType.INT64}
_ONE = np.float32(1)


@operator("ImageProjectiveTransformV2")
def image_projective_transform_v2(node: FlexNode) -> Step:
    """Return a function that transforms images by 8 numbers each.

    Pixels from outside of the image are 0, or follow from the fill mode.
    """
    transform = _transform(node)
    return lambda images, transforms, size: transform(images, transforms, size, 0)


@operator("ImageProjectiveTransformV3")
def image_projective_transform_v3(node: FlexNode) -> Step:
    """Function that transforms images by 8 numbers each; pixels from outside get a fill value."""
    return _transform(node)


def _transform(node: FlexNode) -> Callable[..., NDArray[Any]]:
    type = node.type("dtype")
    if type not in _TYPES:
        raise Unsupported(f"{node.op} of {type.name}", "dtype")
    is_bilinear = node.choice("interpolation", ("NEAREST", "BILINEAR")) == "BILINEAR"
    mode = node.choice("fill_mode", sorted(_MODES), "CONSTANT")
    read = _bilinear if is_bilinear else _nearest

    def run(images: NDArray[Any], transforms: Floats, size: NDArray[Any], fill: Any) -> Any:
        _check(images, transforms, size)
        height, width = size.tolist()
        y = np.empty((len(images), height, width, images.shape[3]), images.dtype)
        value = y.dtype.type(fill)
        if 0 in images.shape[1:3]:
            y.fill(value)
            return y
        for i, (image, result) in enumerate(zip(images, y, strict=True)):
            rows, columns, is_finite = _places(transforms[min(i, len(transforms) - 1)], result)
            rows, columns = _MODES[mode](rows, len(image)), _MODES[mode](columns, image.shape[1])
            result.fill(value)
            result[is_finite] = read(image, rows[is_finite], columns[is_finite], value)
        return y

    return run


def _check(images: NDArray[Any], transforms: Floats, size: NDArray[Any]) -> None:
    if images.ndim != 4:
        raise ValueError(f"images have shape {list(images.shape)}, expected 4 dimensions")
    if transforms.ndim != 2 or transforms.shape[1] != 8:
        raise ValueError(f"transforms have shape {list(transforms.shape)}, expected [n, 8]")
    if len(transforms) not in (1, len(images)):
        raise ValueError(f"{len(transforms)} transforms, expected 1 or {len(images)}")
    if size.shape != (2,) or size.min() < 1:
        raise ValueError(f"output size is {size.tolist()}, expected a height and a width")
    require((len(images), *size.tolist(), images.shape[3]), images.dtype)


def _places(t: Floats, result: NDArray[Any]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the source position of each pixel, ``[H, W]``, and whether the position is finite.

    *t* has the 8 numbers of the transformation; *result* is the array of the new pixels.
    """
    row, column = np.ogrid[: result.shape[0], : result.shape[1]]
    row, column = row.astype(np.float32), column.astype(np.float32)
    depth = t[6] * column + t[7] * row + _ONE
    is_finite = depth != 0
    depth = np.where(is_finite, depth, _ONE)
    columns = (t[0] * column + t[1] * row + t[2]) / depth
    rows = (t[3] * column + t[4] * row + t[5]) / depth
    return rows, columns, is_finite


def _reflected(at: Floats, size: int) -> Floats:
    """Return the positions *at*, moved into ``[0, size - 1]`` as if the image were mirrored around.

    Position -1 becomes 0, and position *size*, the length of the axis, becomes ``size - 1``.
    """
    if size <= 1:
        return np.zeros_like(at)
    period = np.float32(2 * size)
    below = period * np.trunc(-at / period) + at
    below = np.where(below < -size, below + period, -below - _ONE)
    above = at - period * np.trunc(at / period)
    above = np.where(above >= size, period - above - _ONE, above)
    places = np.where(at < 0, below, np.where(at > size - 1, above, at))
    return np.clip(places, np.float32(0), np.float32(size - 1))


def _wrapped(at: Floats, size: int) -> Floats:
    """Return the positions *at*, moved into ``[0, size - 1]`` as if the image repeated endlessly.

    Position -1 becomes ``size - 1``, and position *size*, the length of the axis, becomes 0.
    """
    if size <= 1:
        return np.zeros_like(at)
    span = np.float32(size - 1)
    below = at + np.float32(size) * (np.trunc(-at / span) + _ONE)
    above = at - np.float32(size) * np.trunc(at / span)
    places = np.where(at < 0, below, np.where(at > span, above, at))
    return np.clip(places, np.float32(0), span)


_MODES: dict[str, Callable[[Floats, int], Floats]] = {
    "CONSTANT": lambda at, size: at,
    "NEAREST": lambda at, size: np.clip(at, np.float32(0), np.float32(size - 1)),
    "REFLECT": _reflected,
    "WRAP": _wrapped,
}


def _nearest(image: NDArray[Any], rows: Floats, columns: Floats, value: Any) -> NDArray[Any]:
    y, x = (half_away(places) for places in (rows, columns))
    return _read(image, y, x, value)


def _bilinear(image: NDArray[Any], rows: Floats, columns: Floats, value: Any) -> NDArray[Any]:
    top, left = np.floor(rows), np.floor(columns)
    below, right = rows - top, columns - left
    lines = [
        _share(top_or_bottom, left + _ONE - columns, right)
        for top_or_bottom in (
            [_read(image, top + i, left + j, value).astype(np.float32) for j in (0, 1)]
            for i in (0, 1)
        )
    ]
    return _share(lines, top + _ONE - rows, below).astype(image.dtype)


def _share(pair: list[Floats], first: Floats, second: Floats) -> Floats:
    return first[:, np.newaxis] * pair[0] + second[:, np.newaxis] * pair[1]


def _read(image: NDArray[Any], y: Floats, x: Floats, value: Any) -> NDArray[Any]:
    """Return pixels of an image ``[H, W, C]`` at rows *y* and columns *x*.

    Positions outside of the image give *value*.
    """
    height, width = image.shape[:2]
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    rows, columns = (np.where(inside, places, 0).astype(np.int64) for places in (y, x))
    pixels = image[rows, columns]
    return np.where(inside[:, np.newaxis], pixels, value)
