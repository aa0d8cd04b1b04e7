"""Cases of pools, patches and dilation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import FLOATS, INTEGERS, Case, one

MEANS = {
    DataType.FLOAT32: 3e-7,
    DataType.FLOAT64: 1e-15,
    DataType.FLOAT16: 1e-3,
    DataType.BFLOAT16: 8e-3,
}
SHAPE = (2, 5, 7, 3)
WINDOWS = (([1, 2, 2, 1], [1, 2, 2, 1]), ([1, 3, 2, 1], [1, 1, 2, 1]), ([1, 1, 4, 1], [1, 3, 1, 1]))


def numbers(shape: tuple[int, ...], type: DataType) -> NDArray[Any]:
    values = np.random.default_rng(sum(shape)).normal(0, 40, shape)
    if type.dtype.kind == "u":
        values = np.abs(values)
    elif type in FLOATS:
        values /= 40
    return values.astype(type.dtype)


def cases() -> Iterator[Case]:
    yield from _pools()
    yield from _volumes()
    yield from _arguments()
    yield from _dilations()
    yield from _patches()


def _pools() -> Iterator[Case]:
    for op in ("MaxPool", "AvgPool"):
        for kernel, strides in WINDOWS:
            for padding in (b"SAME", b"VALID"):
                attrs: dict[str, Any] = {"ksize": kernel, "strides": strides, "padding": padding}
                means = 0.0 if op == "MaxPool" else MEANS[DataType.FLOAT32]
                x = numbers(SHAPE, DataType.FLOAT32)
                yield one(op, x, T=DataType.FLOAT32, tolerance=means, **attrs)
                if op == "MaxPool":
                    sizes = (np.array(kernel, np.int32), np.array(strides, np.int32))
                    yield one("MaxPoolV2", x, *sizes, T=DataType.FLOAT32, padding=padding)
        kernel, strides = WINDOWS[1]
        attrs = {"ksize": kernel, "strides": strides, "padding": b"SAME", "data_format": b"NHWC"}
        for type in FLOATS + (INTEGERS if op == "MaxPool" else ()):
            means = 0.0 if op == "MaxPool" else MEANS[type]
            yield one(op, numbers(SHAPE, type), T=type, tolerance=means, **attrs)
        yield one(op, numbers((0, 5, 7, 3), DataType.FLOAT32), T=DataType.FLOAT32, **attrs)
    yield one(
        "MaxPool",
        -1 - np.abs(numbers(SHAPE, DataType.FLOAT32)),
        T=DataType.FLOAT32,
        ksize=[1, 3, 2, 1],
        strides=[1, 2, 1, 1],
        padding=b"EXPLICIT",
        explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0],
    )
    channels = {"ksize": [1, 1, 1, 3], "strides": [1, 1, 1, 3], "padding": b"VALID"}
    yield one("MaxPool", numbers((1, 2, 3, 9), DataType.FLOAT32), T=DataType.FLOAT32, **channels)
    yield one(
        "MaxPool",
        np.full((1, 1, 4, 1), -np.inf, np.float32),
        T=DataType.FLOAT32,
        ksize=[1, 1, 2, 1],
        strides=[1, 1, 1, 1],
        padding=b"VALID",
        name="MaxPool of nothing finite",
    )


def _volumes() -> Iterator[Case]:
    shape = (1, 4, 3, 5, 2)
    for op in ("MaxPool3D", "AvgPool3D"):
        for padding in (b"SAME", b"VALID"):
            for kernel, strides in (
                ([1, 2, 2, 2, 1], [1, 2, 2, 2, 1]),
                ([1, 3, 1, 2, 1], [1, 1, 2, 3, 1]),
            ):
                for type in (DataType.FLOAT32, DataType.BFLOAT16):
                    yield one(
                        op,
                        numbers(shape, type),
                        T=type,
                        ksize=kernel,
                        strides=strides,
                        padding=padding,
                        tolerance=0.0 if op == "MaxPool3D" else MEANS[type],
                    )


def _arguments() -> Iterator[Case]:
    unsigned = (DataType.UINT32, DataType.UINT64)
    for type in (*FLOATS, *INTEGERS, *unsigned):
        for kernel, strides in WINDOWS[:2]:
            for targmax in (DataType.INT32, DataType.INT64):
                for batch in (False, True):
                    yield one(
                        "MaxPoolWithArgmax",
                        np.round(numbers(SHAPE, type) / 2).astype(type.dtype),
                        T=type,
                        ksize=kernel,
                        strides=strides,
                        padding=b"SAME" if batch else b"VALID",
                        Targmax=targmax,
                        include_batch_in_index=batch,
                        out=(TensorType[type.name], TensorType[targmax.name]),
                    )


def _dilations() -> Iterator[Case]:
    for type in (*FLOATS, *INTEGERS, DataType.UINT32, DataType.UINT64):
        yield one(
            "Dilation2D",
            numbers(SHAPE, type),
            numbers((2, 3, 3), type),
            T=type,
            strides=[1, 2, 1, 1],
            rates=[1, 1, 2, 1],
            padding=b"SAME",
        )
    yield one(
        "Dilation2D",
        numbers(SHAPE, DataType.FLOAT32),
        numbers((2, 2, 3), DataType.FLOAT32),
        T=DataType.FLOAT32,
        strides=[1, 1, 2, 1],
        rates=[1, 3, 1, 1],
        padding=b"VALID",
    )


def _patches() -> Iterator[Case]:
    others = (DataType.UINT32, DataType.UINT64)
    for type in (*FLOATS, *INTEGERS, *others, DataType.COMPLEX64, DataType.COMPLEX128):
        for padding in (b"SAME", b"VALID"):
            yield one(
                "ExtractImagePatches",
                numbers(SHAPE, type),
                T=type,
                ksizes=[1, 2, 3, 1],
                strides=[1, 2, 1, 1],
                rates=[1, 1, 2, 1],
                padding=padding,
            )
    yield one(
        "ExtractImagePatches",
        numbers((0, 5, 7, 3), DataType.FLOAT32),
        T=DataType.FLOAT32,
        ksizes=[1, 2, 3, 1],
        strides=[1, 2, 1, 1],
        rates=[1, 1, 2, 1],
        padding=b"SAME",
    )
