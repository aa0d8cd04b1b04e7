"""Cases of operators for images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import FLOATS, INTEGERS, Case, one

ROUNDING = {
    DataType.FLOAT32: 3e-7,
    DataType.FLOAT64: 1e-15,
    DataType.FLOAT16: 2e-3,
    DataType.BFLOAT16: 2e-2,
}


def picture(shape: tuple[int, ...], type: DataType = DataType.FLOAT32) -> NDArray[Any]:
    values = np.random.default_rng(sum(shape)).uniform(0, 1, shape)
    if type not in FLOATS:
        values = values * 200 - (100 if type.dtype.kind == "i" else 0)
    return values.astype(type.dtype)


def cases() -> Iterator[Case]:
    yield from _resizes()
    yield from _areas()
    yield from _crops()
    yield from _colors()
    yield from _suppressions()
    yield from _combined()
    yield from _transforms()


def _resizes() -> Iterator[Case]:
    for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
        for align, half in ((False, False), (True, False), (False, True)):
            corners = {"align_corners": align, "half_pixel_centers": half}
            for channels in (1, 3):
                x = picture((2, 4, 5, channels))
                for size in ((7, 3), (1, 1), (4, 5), (8, 10), (2, 13)):
                    yield _resize(op, x, size, DataType.FLOAT32, corners)
            for size in ((3, 2), (1, 4)):
                yield _resize(op, picture((1, 1, 1, 2)), size, DataType.FLOAT32, corners)
        for type in (*FLOATS, *INTEGERS):
            x = picture((1, 3, 4, 2), type)
            corners = {"align_corners": False, "half_pixel_centers": True}
            yield _resize(op, x, (5, 3), type, corners)
        yield _resize(op, picture((0, 3, 4, 2)), (5, 3), DataType.FLOAT32, corners)


def _areas() -> Iterator[Case]:
    for align in (False, True):
        corners = {"align_corners": align}
        for shape in ((2, 4, 5, 1), (2, 4, 5, 3), (1, 1, 1, 2), (1, 9, 2, 2), (0, 3, 4, 2)):
            for size in ((7, 3), (1, 1), (4, 5), (8, 10), (2, 13), (3, 4)):
                yield _resize("ResizeArea", picture(shape), size, DataType.FLOAT32, corners)
    for type in (*FLOATS, *INTEGERS):
        yield _resize("ResizeArea", picture((1, 7, 5, 2), type), (3, 2), type, corners)
    odd = np.full((1, 3, 3, 1), np.inf, np.float32)
    odd[0, 1, 1] = np.nan
    yield _resize("ResizeArea", odd, (2, 2), DataType.FLOAT32, corners)


def _resize(
    op: str, x: NDArray[Any], size: tuple[int, int], type: DataType, corners: dict[str, Any]
) -> Case:
    out = None if op == "ResizeNearestNeighbor" else TensorType.FLOAT32
    tolerance = 2e-7 if op == "ResizeBicubic" else 0.0
    return one(op, x, np.array(size, np.int32), T=type, **corners, out=out, tolerance=tolerance)


def _crops() -> Iterator[Case]:
    boxes = np.array(
        [
            [0, 0, 1, 1],
            [0.1, 0.2, 0.7, 0.9],
            [0.9, 0.8, 0.2, 0.1],
            [-0.3, 0.1, 1.4, 0.8],
            [0.4, -2, 0.4, -1],
        ],
        np.float32,
    )
    indices = np.array([0, 1, 1, 0, 1], np.int32)
    types = (*FLOATS[:3], *INTEGERS)
    for method in (b"bilinear", b"nearest"):
        for size in ((3, 4), (1, 2), (6, 1)):
            for type in types if size == (3, 4) else types[:1]:
                yield one(
                    "CropAndResize",
                    picture((2, 5, 6, 2), type),
                    boxes,
                    indices,
                    np.array(size, np.int32),
                    T=type,
                    method=method,
                    extrapolation_value=-1.5,
                    out=TensorType.FLOAT32,
                )
    yield one(
        "CropAndResize",
        picture((2, 5, 6, 2)),
        boxes[:0],
        indices[:0],
        np.array([2, 3], np.int32),
        T=DataType.FLOAT32,
        out=TensorType.FLOAT32,
    )


def _colors() -> Iterator[Case]:
    grey = np.full((1, 1, 2, 3), 0.5)
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1]), -1).reshape(1, 2, 4, 3)
    for type in FLOATS:
        for x in (picture((2, 4, 5, 3), type), grey.astype(type.dtype), corners.astype(type.dtype)):
            yield one("RGBToHSV", x, T=type, tolerance=ROUNDING[type])
            yield one("HSVToRGB", x, T=type, tolerance=ROUNDING[type])
    for x in (picture((2, 4, 5, 3)), grey.astype(np.float32), corners.astype(np.float32)):
        for value in (0.0, 0.3, -0.7, 2.5):
            scalar = np.float32(value)
            yield one("AdjustHue", x, scalar, T=DataType.FLOAT32, tolerance=1e-6)
            yield one("AdjustSaturation", x, scalar, T=DataType.FLOAT32, tolerance=1e-6)
            yield one("AdjustContrastv2", x, scalar, T=DataType.FLOAT32, tolerance=1e-6)
    x = picture((1, 3, 3))
    yield one("AdjustHue", x, np.float32(0.2), T=DataType.FLOAT32, tolerance=1e-6)
    empty = np.zeros((0, 2, 2, 3), np.float32)
    for op in ("AdjustHue", "AdjustSaturation", "AdjustContrastv2"):
        yield one(op, empty, np.float32(0.5), T=DataType.FLOAT32)


def boxes_and_scores(count: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed + count)
    centres = rng.uniform(0, 1, (count, 2))
    sizes = rng.uniform(-0.3, 0.5, (count, 2))
    boxes = np.concatenate([centres - sizes, centres + sizes], axis=1)
    return boxes.astype(np.float32), np.round(rng.uniform(-1, 1, count), 1).astype(np.float32)


def _suppressions() -> Iterator[Case]:
    for count in (0, 1, 30):
        boxes, scores = boxes_and_scores(count)
        for most in (0, 4, 40):
            limit = np.int32(most)
            yield one(
                "NonMaxSuppression", boxes, scores, limit, iou_threshold=0.4, out=TensorType.INT32
            )
            for type in (DataType.FLOAT32, DataType.FLOAT16):
                yield from _versions(boxes, scores, limit, type)
    boxes, scores = boxes_and_scores(12)
    shares = np.random.default_rng(5).uniform(0, 1, (12, 12)).astype(np.float32)
    thresholds = (np.float32(0.6), np.float32(-0.5))
    for limit in (np.int32(3), np.int32(20)):
        inputs = (shares, scores, limit, *thresholds)
        yield one("NonMaxSuppressionWithOverlaps", *inputs, out=TensorType.INT32)
    odd = scores.copy()
    odd[[1, 4, 7]] = np.inf, -np.inf, np.nan
    types = {"T": DataType.FLOAT32, "T_threshold": DataType.FLOAT32}
    inputs = (boxes, odd, np.int32(20), np.float32(1))
    yield one("NonMaxSuppressionV2", *inputs, **types, out=TensorType.INT32)


def _versions(
    boxes: NDArray[Any], scores: NDArray[Any], limit: Any, type: DataType
) -> Iterator[Case]:
    count, scalar = TensorType.INT32, type.dtype.type
    boxes, scores = boxes.astype(type.dtype), scores.astype(type.dtype)
    types = {"T": type, "T_threshold": type}
    for threshold in (0.0, 0.3, 1.0):
        inputs = (boxes, scores, limit, scalar(threshold))
        yield one("NonMaxSuppressionV2", *inputs, **types, out=count)
        inputs = (*inputs, scalar(-0.2))
        yield one("NonMaxSuppressionV3", *inputs, **types, out=count)
        for pad in (False, True):
            padded: dict[str, Any] = {"pad_to_max_output_size": pad}
            yield one("NonMaxSuppressionV4", *inputs, **types, **padded, out=(count, count))
            for sigma in (0.0, 0.5) if type is DataType.FLOAT32 else (0.0,):
                yield one(
                    "NonMaxSuppressionV5",
                    *inputs,
                    scalar(sigma),
                    T=type,
                    **padded,
                    out=(count, TensorType[type.name], count),
                    tolerance=3e-7 if sigma else 0.0,
                )


def _combined() -> Iterator[Case]:
    rng = np.random.default_rng(8)
    floats = (TensorType.FLOAT32,) * 3
    for classes in (1, 3):
        scores = rng.permutation(2 * 9 * classes).reshape(2, 9, classes).astype(np.float32) / 60
        for sets in {1, classes}:
            corner = rng.uniform(-0.2, 0.9, (2, 9, sets, 2))
            size = rng.uniform(0.1, 0.6, corner.shape)
            boxes = np.concatenate([corner, corner + size], axis=3).astype(np.float32)
            for per_class, total in ((2, 5), (9, 30), (3, 2)):
                for flag in (False, True):
                    yield one(
                        "CombinedNonMaxSuppression",
                        boxes,
                        scores,
                        np.int32(per_class),
                        np.int32(total),
                        np.float32(0.3),
                        np.float32(0.1),
                        pad_per_class=flag,
                        clip_boxes=not flag,
                        out=(*floats, TensorType.INT32),
                    )


def _transforms() -> Iterator[Case]:
    rng = np.random.default_rng(9)
    turned = np.array(
        [[0.8, -0.6, 1.3, 0.6, 0.8, -0.9, 0, 0], [1.1, 0.2, -0.5, 0.1, 0.7, 0.4, 0.01, -0.02]],
        np.float32,
    )
    far = np.array([[3, 0, -9, 0, 4, -11, 0, 0]], np.float32)
    beyond = np.array([[1e30, 0, 0, 0, -1e30, 0, 0, 0]], np.float32)
    same = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32)
    infinite = np.array([[1, 0, 0, 0, 1, 0, -0.5, 0]], np.float32)
    size = np.array([5, 7], np.int32)
    for interpolation in (b"NEAREST", b"BILINEAR"):
        for mode in (b"CONSTANT", b"NEAREST", b"REFLECT", b"WRAP"):
            places = [turned, far, same, infinite]
            if mode != b"WRAP":  # where TensorFlow's integers overflow
                places.append(beyond)
            for transforms in places:
                attrs = {
                    "dtype": DataType.FLOAT32,
                    "interpolation": interpolation,
                    "fill_mode": mode,
                    "tolerance": 1e-6,
                }
                x = rng.uniform(0, 1, (2, 4, 5, 2)).astype(np.float32)
                inputs = (x, transforms, size)
                yield one("ImageProjectiveTransformV2", *inputs, **attrs)
                yield one("ImageProjectiveTransformV3", *inputs, np.float32(0.25), **attrs)
        for type in (*FLOATS[1:], DataType.UINT8, DataType.INT32, DataType.INT64):
            yield one(
                "ImageProjectiveTransformV3",
                picture((2, 4, 5, 1), type),
                turned,
                size,
                np.float32(2),
                dtype=type,
                interpolation=interpolation,
                tolerance=ROUNDING.get(type, 0.0) and 1e-6,
            )
