"""Cases of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TOLERANCES = {
    DataType.FLOAT32: 2e-6,
    DataType.FLOAT64: 1e-14,
    DataType.FLOAT16: 4e-3,
    DataType.BFLOAT16: 3e-2,
}


def numbers(shape: tuple[int, ...], type: DataType = DataType.FLOAT32) -> NDArray[Any]:
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype(type.dtype)


def cases() -> Iterator[Case]:
    yield from _biases()
    yield from _filters()
    yield from _pools()
    yield from _batch_norms()


def _biases() -> Iterator[Case]:
    for type, tolerance in TOLERANCES.items():
        for shape in ((3, 4), (2, 3, 4, 5), (0, 4)):
            for data_format in (b"NHWC", b"NCHW"):
                dy = numbers(shape, type)
                yield one("BiasAddGrad", dy, T=type, data_format=data_format, tolerance=tolerance)


def _filters() -> Iterator[Case]:
    for op, image, kernel in (
        ("Conv2DBackpropFilter", (2, 5, 6, 4), (3, 2, 4, 3)),
        ("Conv3DBackpropFilterV2", (1, 4, 5, 3, 2), (2, 3, 2, 2, 3)),
        ("DepthwiseConv2dNativeBackpropFilter", (2, 5, 5, 3), (3, 2, 3, 2)),
    ):
        outputs = kernel[-1] * (kernel[-2] if op.startswith("Depth") else 1)
        for type, tolerance in TOLERANCES.items():
            for stride in (1, 2) if type is DataType.FLOAT32 else (1,):
                same = [-(-size // stride) for size in image[1:-1]]
                fits = zip(image[1:-1], kernel, strict=False)
                valid = [(size - taps) // stride + 1 for size, taps in fits]
                for padding, places in ((b"SAME", same), (b"VALID", valid)):
                    yield one(
                        op,
                        numbers(image, type),
                        np.array(kernel, np.int32),
                        numbers((image[0], *places, outputs), type),
                        T=type,
                        strides=[1, *[stride] * len(same), 1],
                        padding=padding,
                        tolerance=tolerance,
                    )


def _pools() -> Iterator[Case]:
    for kernel, strides in (([1, 2, 2, 1], [1, 2, 2, 1]), ([1, 3, 2, 1], [1, 1, 2, 1])):
        for type, tolerance in TOLERANCES.items():
            x = np.round(2 * numbers((2, 5, 7, 3), type)).astype(type.dtype)
            places = tuple(-(-x.shape[i] // strides[i]) for i in (1, 2))
            dy = numbers((2, *places, 3), type)
            y = _maxima(x, places, kernel, strides)
            attrs: dict[str, Any] = {"ksize": kernel, "strides": strides, "padding": b"SAME"}
            same = {"T": type, "tolerance": tolerance}
            yield one("MaxPoolGrad", x, y, dy, **attrs, **same)
            shape, out = np.array(x.shape, np.int32), TensorType[type.name]
            yield one("AvgPoolGrad", shape, dy, **attrs, **same, out=out)


def _maxima(
    x: NDArray[Any], places: tuple[int, ...], kernel: list[int], strides: list[int]
) -> NDArray[Any]:
    """Return the maxima of SAME windows, by definition."""
    y = np.empty((len(x), *places, x.shape[3]), x.dtype)
    spans = []
    for axis in (1, 2):
        reach = (places[axis - 1] - 1) * strides[axis] + kernel[axis] - x.shape[axis]
        starts = np.arange(places[axis - 1]) * strides[axis] - max(reach, 0) // 2
        spans.append([slice(max(s, 0), s + kernel[axis]) for s in starts.tolist()])
    for i, rows in enumerate(spans[0]):
        for j, columns in enumerate(spans[1]):
            y[:, i, j] = x[:, rows, columns].max(axis=(1, 2))
    return y


def _batch_norms() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    scale, mean = rng.normal(0, 1, (2, 5)).astype(np.float32)
    variance = rng.uniform(0.1, 3, 5).astype(np.float32)
    nothing = np.zeros((), np.float32)
    halves = (DataType.FLOAT32, DataType.FLOAT16, DataType.BFLOAT16)
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        for type in halves if op[-1] in "23" else halves[:1]:
            for shape, data_format in (((2, 3, 4, 5), b"NHWC"), ((2, 5, 3, 4), b"NCHW")):
                for training in (False, True) if data_format == b"NHWC" else (True,):
                    attrs: dict[str, Any] = {"T": type, "data_format": data_format}
                    if op[-1] in "23":
                        attrs["U"] = DataType.FLOAT32
                    extra = (nothing,) if op.endswith("V3") else ()
                    dy = numbers(shape, type)
                    yield one(
                        op,
                        dy,
                        dy[::-1].copy() + dy * dy,
                        scale,
                        mean,
                        variance,
                        *extra,
                        **attrs,
                        epsilon=0.01,
                        is_training=training,
                        out=(TensorType[type.name], *[TensorType.FLOAT32] * 4),
                        tolerance=TOLERANCES[type],
                    )
