"""Cases of convolutions and of their gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TOLERANCES = {
    DataType.FLOAT32: 1e-6,
    DataType.FLOAT64: 1e-14,
    DataType.FLOAT16: 1e-3,
    DataType.BFLOAT16: 8e-3,
    DataType.INT32: 0.0,
}
FLOATS = (DataType.FLOAT64, DataType.FLOAT16, DataType.BFLOAT16)
ONES = [1, 1, 1, 1]


def numbers(shape: tuple[int, ...], type: DataType, seed: int = 0) -> NDArray[Any]:
    rng = np.random.default_rng(seed + sum(shape))
    if type is DataType.INT32:
        return rng.integers(-9, 9, shape, np.int32)
    return rng.normal(0, 1, shape).astype(type.dtype)


def case(
    op: str,
    shapes: tuple[tuple[int, ...], ...],
    type: DataType = DataType.FLOAT32,
    before: tuple[Any, ...] = (),
    **attrs: Any,
) -> Case:
    arrays = [numbers(shape, type, i) for i, shape in enumerate(shapes)]
    rank = len(shapes[0])
    defaults = {"strides": [1] * rank, "padding": "SAME"} | attrs
    defaults["padding"] = defaults["padding"].encode()
    out, tolerance = TensorType[type.name], TOLERANCES[type]
    if op == "Conv3D" and type is DataType.FLOAT16:
        tolerance = 3e-3  # TensorFlow sums in half precision
    return one(op, *before, *arrays, T=type, **defaults, out=out, tolerance=tolerance)


def cases() -> Iterator[Case]:
    yield from _conv2d()
    yield from _depthwise()
    yield from _conv3d()
    yield from _padded()
    yield from _gradients()


def _conv2d() -> Iterator[Case]:
    image, kernel = (2, 5, 6, 4), (3, 2, 4, 3)
    for type in (*FLOATS, DataType.INT32):
        yield case("Conv2D", (image, kernel), type)
    for padding in ("SAME", "VALID"):
        for strides in (ONES, [1, 2, 3, 1]):
            for dilations in (ONES, [1, 2, 1, 1], [1, 1, 3, 1]):
                yield case(
                    "Conv2D",
                    (image, kernel),
                    padding=padding,
                    strides=strides,
                    dilations=dilations,
                    explicit_paddings=[],
                    data_format=b"NHWC",
                    use_cudnn_on_gpu=True,
                )
    for edges in ([0, 0, 2, 1, 0, 3, 0, 0], [0, 0, 4, 4, 5, 5, 0, 0]):
        for strides in (ONES, [1, 3, 2, 1]):
            yield case(
                "Conv2D",
                (image, kernel),
                padding="EXPLICIT",
                strides=strides,
                explicit_paddings=edges,
            )
    yield case("Conv2D", (image, (1, 1, 4, 3)))
    yield case("Conv2D", (image, (1, 1, 4, 3)), strides=[1, 2, 2, 1], padding="VALID")
    yield case("Conv2D", (image, (3, 3, 2, 6)))  # two groups
    yield case("Conv2D", (image, (3, 3, 1, 8)), strides=[1, 2, 2, 1])
    yield case("Conv2D", ((0, 5, 6, 4), kernel))
    yield case("Conv2D", ((1, 0, 6, 4), kernel))
    yield case("Conv2D", (image, (3, 2, 4, 0)))
    yield case("Conv2D", (image, (6, 2, 4, 3)), padding="VALID")  # no output
    yield case("Conv2D", (image, (7, 9, 4, 3)))


def _depthwise() -> Iterator[Case]:
    image = (2, 5, 6, 3)
    for multiplier in (1, 2):
        weight = (3, 2, 3, multiplier)
        for padding in ("SAME", "VALID"):
            for stride in (1, 2):
                strides = [1, stride, stride, 1]
                yield case(
                    "DepthwiseConv2dNative", (image, weight), padding=padding, strides=strides
                )
        for type in FLOATS:
            yield case("DepthwiseConv2dNative", (image, weight), type)
    yield case(
        "DepthwiseConv2dNative",
        (image, (3, 2, 3, 2)),
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 2, 1, 0, 3, 0, 0],
        data_format=b"NHWC",
        dilations=ONES,
    )
    yield case("DepthwiseConv2dNative", ((0, 5, 6, 3), (3, 2, 3, 1)))


def _conv3d() -> Iterator[Case]:
    volume, kernel = (1, 4, 5, 3, 2), (2, 3, 2, 2, 3)
    for padding in ("SAME", "VALID"):
        for strides in ([1, 1, 1, 1, 1], [1, 2, 1, 3, 1]):
            yield case("Conv3D", (volume, kernel), padding=padding, strides=strides)
    for type in FLOATS:
        yield case("Conv3D", (volume, kernel), type)
    yield case("Conv3D", (volume, (1, 1, 1, 2, 4)), dilations=[1] * 5, data_format=b"NDHWC")
    yield case("Conv3D", ((0, 4, 5, 3, 2), kernel))


def _padded() -> Iterator[Case]:
    edges = np.array([[0, 0], [1, 2], [3, 0], [0, 0]], np.int32)
    for mode in (b"REFLECT", b"SYMMETRIC"):
        for type in (DataType.FLOAT32, DataType.FLOAT64):
            x, weight = numbers((1, 4, 5, 2), type), numbers((3, 2, 2, 3), type)
            yield one(
                "FusedPadConv2D",
                x,
                edges,
                weight,
                T=type,
                mode=mode,
                strides=[1, 2, 1, 1],
                padding=b"VALID",
                tolerance=TOLERANCES[type],
            )


def _gradients() -> Iterator[Case]:
    for op, sizes, kernel in (
        ("Conv2DBackpropInput", (2, 5, 6, 4), (3, 2, 4, 3)),
        ("Conv3DBackpropInputV2", (1, 4, 5, 3, 2), (2, 3, 2, 2, 3)),
        ("DepthwiseConv2dNativeBackpropInput", (2, 5, 6, 3), (3, 2, 3, 2)),
    ):
        shape = (np.array(sizes, np.int32),)
        outputs = kernel[-1] * (kernel[-2] if op.startswith("Depth") else 1)
        extra = {"Tshape": DataType.INT32} if op.startswith("Conv3D") else {}
        for stride in (1, 2):
            strides = [1, *[stride] * (len(sizes) - 2), 1]
            same = tuple(-(-size // stride) for size in sizes[1:-1])
            fits = zip(sizes[1:-1], kernel, strict=False)
            valid = tuple((size - taps) // stride + 1 for size, taps in fits)
            for padding, output in (("SAME", same), ("VALID", valid)):
                shapes = (kernel, (sizes[0], *output, outputs))
                yield case(op, shapes, before=shape, strides=strides, padding=padding, **extra)
        for type in FLOATS:
            shapes = (kernel, (*sizes[:-1], outputs))
            yield case(op, shapes, type, before=shape, **extra)
    shapes = ((3, 2, 4, 3), (2, 5, 6, 3))
    yield case("Conv2DBackpropInput", shapes, DataType.INT32, (np.array([2, 5, 6, 4], np.int32),))
    yield case("Conv2DBackpropInput", shapes, before=(np.array([5, 6], np.int32),))
    yield case(
        "Conv2DBackpropInput",
        ((3, 2, 4, 3), (2, 6, 8, 3)),
        before=(np.array([2, 5, 6, 4], np.int32),),
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 2, 1, 0, 3, 0, 0],
    )
