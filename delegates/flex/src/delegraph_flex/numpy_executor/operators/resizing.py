"""Operators that resize images.

Source:
    core/kernels/image/resize_bilinear_op.cc, resize_bicubic_op.cc, resize_nearest_neighbor_op.cc,
    resize_area_op.cc, crop_and_resize_op.cc; core/util/image_resizer_state.h.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.registry import REAL, operator
from delegraph_flex.numpy_executor.rounding import half_away

Floats = NDArray[np.float32]
_RESIZED = REAL - {DataType.UINT32, DataType.UINT64}
_TABLE_STEPS = 1 << 10
_MOST_PIXELS = 1 << 24  # positions are float32, which cannot count more pixels


class Taps(NamedTuple):
    """Two input positions for each output position, and the weight of the second."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    share: Floats


@operator("ResizeBilinear", types=_RESIZED)
def resize_bilinear(node: FlexNode) -> Step:
    """Return a function that resizes images by bilinear interpolation."""
    align, half = _corners(node)

    def run(x: NDArray[Any], size: NDArray[Any]) -> Floats:
        rows, columns = (
            bilinear_taps(_places(old, new, align, half), old) for old, new in _sizes(x, size)
        )
        return mixed(x, rows, columns)

    return run


@operator("ResizeNearestNeighbor", types=_RESIZED)
def resize_nearest_neighbor(node: FlexNode) -> Step:
    """Return a function that resizes images; each new pixel is a copy of the nearest old pixel."""
    align, half = _corners(node)

    def index(old: int, new: int) -> NDArray[np.int64]:
        place = np.arange(new, dtype=np.float32)
        place = (place + np.float32(0.5) if half else place) * _scale(old, new, align)
        nearest = half_away(place) if align else np.floor(place)
        return np.clip(nearest.astype(np.int64), 0, old - 1)

    def run(x: NDArray[Any], size: NDArray[Any]) -> NDArray[Any]:
        rows, columns = (index(old, new) for old, new in _sizes(x, size))
        return x.take(rows, 1).take(columns, 2)

    return run


@operator("ResizeBicubic", types=_RESIZED)
def resize_bicubic(node: FlexNode) -> Step:
    """Return a function that resizes images by bicubic interpolation."""
    align, half = _corners(node)

    def run(x: NDArray[Any], size: NDArray[Any]) -> Floats:
        values = x.astype(np.float32, copy=False)
        for axis, (old, new) in enumerate(_sizes(x, size), 1):
            indices, weights = _cubic_taps(_places(old, new, align, half), old, half)
            shape = (-1,) + (1,) * (3 - axis)
            parts = [
                values.take(index, axis) * weight.reshape(shape)
                for index, weight in zip(indices, weights, strict=True)
            ]
            values = parts[0] + parts[1] + parts[2] + parts[3]
        return values

    return run


@operator("ResizeArea", types=_RESIZED)
def resize_area(node: FlexNode) -> Step:
    """Return a function that resizes images; each new pixel is the mean of the area it covers."""
    align = node.bool("align_corners", False)

    def run(x: NDArray[Any], size: NDArray[Any]) -> Floats:
        (rows, new_rows), (columns, new_columns) = _sizes(x, size)
        height, width = _scale(rows, new_rows, align), _scale(columns, new_columns, align)
        require((len(x), rows, new_columns, x.shape[3]), np.float32)
        lines = _covered(x, 2, new_columns, width)
        return _covered(lines, 1, new_rows, height) * np.float32(1.0 / float(height * width))

    return run


def _covered(x: NDArray[Any], axis: int, new: int, scale: np.float32) -> Floats:
    """Return weighted sums of the pixels of *x* under each of *new* pixels along *axis*.

    *scale* is the number of old pixels per new pixel.

    The order of the sums, in float32, is TensorFlow's.
    """
    first, last = (np.arange(start, start + new).astype(np.float32) * scale for start in (0, 1))
    begin, end = np.floor(first).astype(np.int64), np.ceil(last).astype(np.int64)
    sums = np.zeros((*x.shape[:axis], new, *x.shape[axis + 1 :]), np.float32)
    for step in range(int((end - begin).max())):
        reaching = np.flatnonzero(begin + step < end)
        pixel = (begin + step)[reaching]
        share = _share(pixel, first[reaching], last[reaching], scale)
        values = x.take(np.minimum(pixel, x.shape[axis] - 1), axis).astype(np.float32, copy=False)
        where = (slice(None),) * axis + (reaching,)
        sums[where] += values * share.reshape((-1,) + (1,) * (3 - axis))
    return sums


def _share(pixel: NDArray[np.int64], first: Floats, last: Floats, scale: np.float32) -> Floats:
    """Return the share of each old *pixel* that lies between *first* and *last*.

    *scale* is the number of old pixels per new pixel.
    """
    low, high = pixel.astype(np.float32), (pixel + 1).astype(np.float32)
    begun = np.where(high > last, scale, high - first)
    whole = np.where(high > last, last - low, np.float32(1))
    shares: Floats = np.where(low < first, begun, whole)
    return shares


def _corners(node: FlexNode) -> tuple[bool, bool]:
    align, half = node.bool("align_corners", False), node.bool("half_pixel_centers", False)
    if align and half:
        raise Unsupported("attributes 'align_corners' and 'half_pixel_centers' are both true")
    return align, half


def _sizes(x: NDArray[Any], size: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the old and new height, and the old and new width, of images *x* resized to *size*."""
    new = size.tolist()
    if x.ndim != 4 or size.shape != (2,) or min(new) < 1 or 0 in x.shape[1:]:
        raise ValueError(
            f"shape {list(x.shape)} and size {new}, expected pixels in four dimensions"
        )
    if max(*new, *x.shape[1:3]) >= _MOST_PIXELS:
        raise ValueError(f"size is {new}, expected less than {_MOST_PIXELS} rows and columns")
    require((len(x), *new, x.shape[3]), np.float32)
    return list(zip(x.shape[1:3], new, strict=True))


def _scale(old: int, new: int, align: bool) -> np.float32:
    if align and old > 1 and new > 1:
        return np.float32(old - 1) / np.float32(new - 1)
    return np.float32(old) / np.float32(new)


def _places(old: int, new: int, align: bool, half: bool) -> Floats:
    """Return the positions of the new pixels in the old image, along one axis.

    *align* and *half* are the attributes ``align_corners`` and ``half_pixel_centers``.
    """
    place = np.arange(new, dtype=np.float32)
    if half:
        return (place + np.float32(0.5)) * _scale(old, new, align) - np.float32(0.5)
    return place * _scale(old, new, align)


def bilinear_taps(places: Floats, old: int) -> Taps:
    """Return, for each of *places*, the two old pixels to mix and the weight of the second."""
    floor = np.floor(places)
    low = np.maximum(floor.astype(np.int64), 0)
    high = np.minimum(np.ceil(places).astype(np.int64), old - 1)
    return Taps(np.minimum(low, old - 1), high, places - floor)


def mixed(x: NDArray[Any], rows: Taps, columns: Taps) -> Floats:
    """Return *x*, images ``[N, H, W, C]``, interpolated at *rows* and *columns*, as float32."""
    left, right = (x.take(index, 2).astype(np.float32, copy=False) for index in columns[:2])
    lines = _between(left, right, columns.share[:, np.newaxis])
    share = rows.share[:, np.newaxis, np.newaxis]
    return _between(lines.take(rows.low, 1), lines.take(rows.high, 1), share)


def _between(first: Floats, second: Floats, share: Floats) -> Floats:
    """Return ``first + (second - first) * share``, in the memory of *second*."""
    second -= first
    second *= share
    second += first
    return second


@cache
def _cubic_table(a: float) -> tuple[Floats, Floats]:
    """Return tables of pixel weights by distance, with Keys' parameter *a*.

    The first table is for distances in [0, 1], the second for distances in [1, 2].
    """
    x = np.arange(_TABLE_STEPS + 1) / _TABLE_STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return near.astype(np.float32), far.astype(np.float32)


def _cubic_taps(
    places: Floats, old: int, is_keys: bool
) -> tuple[list[NDArray[np.int64]], list[Floats]]:
    """Return four of *old* pixels for each of *places*, and their weights.

    With Keys' weights (-0.5), pixels outside of the image have weight 0; otherwise the pixels at
    the edges are repeated.
    """
    near, far = _cubic_table(-0.5 if is_keys else -0.75)
    low = np.floor(places).astype(np.int64)
    step = np.rint((places - low.astype(np.float32)) * np.float32(_TABLE_STEPS)).astype(np.int64)
    weights = [far[step], near[step], near[_TABLE_STEPS - step], far[_TABLE_STEPS - step]]
    wanted = [low - 1, low, low + 1, low + 2]
    indices = [np.clip(index, 0, old - 1) for index in wanted]
    if is_keys:
        outside = [index != want for index, want in zip(indices, wanted, strict=True)]
        weights = [np.where(o, np.float32(0), w) for o, w in zip(outside, weights, strict=True)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        is_tiny = np.abs(total) < 1000 * np.finfo(np.float32).tiny
        inverse = np.float32(1) / np.where(is_tiny, np.float32(1), total)
        weights = [weight * inverse for weight in weights]
    return indices, weights


@operator("CropAndResize", types=_RESIZED - {DataType.BFLOAT16})
def crop_and_resize(node: FlexNode) -> Step:
    """Return a function that cuts boxes out of images and resizes them.

    Pixels outside of the image have a fixed value.
    """
    is_bilinear = node.choice("method", ("bilinear", "nearest"), "bilinear") == "bilinear"
    outside_value = np.float32(node.float("extrapolation_value", 0.0))
    crop = _bilinear_crop if is_bilinear else _nearest_crop

    def run(
        images: NDArray[Any], boxes: Floats, indices: NDArray[Any], size: NDArray[Any]
    ) -> Floats:
        _check_crops(images, boxes, indices, size)
        height, width = size.tolist()
        crops = np.empty((len(boxes), height, width, images.shape[3]), np.float32)
        for box, index, result in zip(boxes, indices, crops, strict=True):
            image = images[index]
            rows = _crop_places(box[0], box[2], image.shape[0], height)
            columns = _crop_places(box[1], box[3], image.shape[1], width)
            is_row, is_column = (
                (places >= 0) & (places <= old - 1)
                for places, old in zip((rows, columns), image.shape[:2], strict=True)
            )
            result.fill(outside_value)
            result[np.ix_(is_row, is_column)] = crop(image, rows[is_row], columns[is_column])
        return crops

    return run


def _check_crops(
    images: NDArray[Any], boxes: Floats, indices: NDArray[Any], size: NDArray[Any]
) -> None:
    if images.ndim != 4 or 0 in images.shape[1:3]:
        raise ValueError(f"images have shape {list(images.shape)}, expected pixels, 4 dimensions")
    if boxes.ndim != 2 or boxes.shape[1] != 4 or indices.shape != boxes.shape[:1]:
        shapes = f"{list(boxes.shape)} and {list(indices.shape)}"
        raise ValueError(f"boxes and their images have shapes {shapes}, expected [n, 4] and [n]")
    if size.shape != (2,) or size.min() < 1:
        raise ValueError(f"crops have size {size.tolist()}, expected a height and a width")
    if len(indices) and not 0 <= indices.min() <= indices.max() < len(images):
        raise ValueError(f"boxes are of images {indices.tolist()}, expected below {len(images)}")
    if not np.isfinite(boxes).all():
        raise ValueError("a box has a corner that is not finite")
    require((len(boxes), *size.tolist(), images.shape[3]), np.float32)


def _crop_places(first: np.float32, last: np.float32, old: int, new: int) -> Floats:
    span = np.float32(old - 1)
    if new == 1:
        return np.array([0.5 * float(first + last) * (old - 1)], np.float32)
    step = (last - first) * span / np.float32(new - 1)
    places: Floats = first * span + np.arange(new, dtype=np.float32) * step
    return places


def _bilinear_crop(image: NDArray[Any], rows: Floats, columns: Floats) -> Floats:
    taps = (
        bilinear_taps(places, old)
        for places, old in zip((rows, columns), image.shape[:2], strict=True)
    )
    crop: Floats = mixed(image[np.newaxis], *taps)[0]
    return crop


def _nearest_crop(image: NDArray[Any], rows: Floats, columns: Floats) -> Floats:
    y, x = (half_away(places).astype(np.int64) for places in (rows, columns))
    return image[np.ix_(y, x)].astype(np.float32)
