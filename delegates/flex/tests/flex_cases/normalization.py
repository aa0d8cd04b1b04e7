"""Cases of normalization, biases and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TOLERANCES = {
    DataType.FLOAT32: 1e-6,
    DataType.FLOAT64: 1e-14,
    DataType.FLOAT16: 2e-3,
    DataType.BFLOAT16: 1.6e-2,
}
HALVES = (DataType.FLOAT32, DataType.FLOAT16, DataType.BFLOAT16)
SHAPES = {
    b"NHWC": (2, 3, 4, 5),
    b"NCHW": (2, 5, 3, 4),
    b"NDHWC": (2, 2, 3, 2, 5),
    b"NCDHW": (2, 5, 2, 3, 2),
}


def numbers(shape: tuple[int, ...], type: DataType = DataType.FLOAT32) -> NDArray[Any]:
    values = np.random.default_rng(sum(shape)).normal(0, 2, shape)
    if type.dtype.kind == "u":
        values = np.abs(values)
    return values.astype(type.dtype)


def cases() -> Iterator[Case]:
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        yield from _batch_norms(op)
    yield from _neighbours()
    yield from _biases()
    yield from _softmax()
    yield from _losses()


def _batch_norms(op: str) -> Iterator[Case]:
    rng = np.random.default_rng(1)
    scale, offset, mean = rng.normal(0, 1, (3, 5)).astype(np.float32)
    variance = rng.uniform(0.1, 3, 5).astype(np.float32)
    formats = SHAPES if op.endswith("V3") else ("NHWC", "NCHW")
    for data_format in (f if isinstance(f, bytes) else f.encode() for f in formats):
        for type in (DataType.FLOAT32,) if op == "FusedBatchNorm" else HALVES:
            for training in (False, True):
                for factor in (1.0, 0.3) if training else (1.0,):
                    old = (mean, variance) if factor < 1 or not training else (mean[:0],) * 2
                    attrs: dict[str, Any] = {"T": type}
                    outputs = [TensorType[type.name]] + [TensorType.FLOAT32] * 4
                    if op != "FusedBatchNorm":
                        attrs["U"] = DataType.FLOAT32
                    if op == "FusedBatchNormV3":
                        outputs.append(TensorType.FLOAT32)
                    case = one(
                        op,
                        numbers(SHAPES[data_format], type),
                        scale,
                        offset,
                        *old,
                        **attrs,
                        epsilon=0.01,
                        exponential_avg_factor=factor,
                        data_format=data_format,
                        is_training=training,
                        out=outputs,
                        tolerance=TOLERANCES[type],
                    )
                    # Without training, TensorFlow leaves outputs 3 and 4 as memory was.
                    defined = (5, 6, 7, 8, 9) if training else (5, 6, 7)
                    yield replace(case, outputs=defined)


def _neighbours() -> Iterator[Case]:
    for radius in (0, 1, 5, 9):
        for beta in (0.5, 1.0, 0.75):
            yield one(
                "LRN",
                numbers((1, 2, 2, 7)),
                T=DataType.FLOAT32,
                depth_radius=radius,
                bias=1.5,
                alpha=0.3,
                beta=beta,
                tolerance=1e-6,
            )
    yield one("LRN", numbers((1, 2, 2, 7)), T=DataType.FLOAT32, tolerance=1e-6)
    half = numbers((1, 2, 2, 7), DataType.FLOAT16)
    yield one("LRN", half, T=DataType.FLOAT16, tolerance=TOLERANCES[DataType.FLOAT16])


def _biases() -> Iterator[Case]:
    types = (
        *TOLERANCES,
        DataType.INT8,
        DataType.UINT8,
        DataType.INT32,
        DataType.INT64,
        DataType.COMPLEX64,
    )
    for type in types:
        x, bias = numbers((2, 3, 4), type), numbers((4,), type)
        yield one("BiasAdd", x, bias, T=type)
        yield one("BiasAddV1", x, bias, T=type)
        yield one("BiasAdd", x, numbers((3,), type), T=type, data_format=b"NCHW")
    for shape in ((2, 4), (0, 4), (1, 2, 2, 3, 4)):
        x = numbers(shape)
        yield one("BiasAdd", x, numbers(shape[-1:]), T=DataType.FLOAT32, data_format=b"NHWC")
        yield one("BiasAdd", x, numbers(shape[1:2]), T=DataType.FLOAT32, data_format=b"NCHW")


def _softmax() -> Iterator[Case]:
    infinite = np.array(
        [[np.inf, 1], [-np.inf, 0], [-np.inf, -np.inf], [np.nan, 0], [1e30, -1e30]], np.float32
    )
    for op in ("Softmax", "LogSoftmax"):
        for type, tolerance in TOLERANCES.items():
            for shape in ((4,), (3, 5), (2, 2, 7)):
                yield one(op, numbers(shape, type), T=type, tolerance=tolerance)
        yield one(op, infinite, T=DataType.FLOAT32, tolerance=1e-6)
        for shape in ((0, 3), (3, 0)):
            yield one(op, np.zeros(shape, np.float32), T=DataType.FLOAT32)


def _losses() -> Iterator[Case]:
    for type, tolerance in TOLERANCES.items():
        logits = numbers((3, 4), type)
        both = (TensorType[type.name],) * 2
        same: dict[str, Any] = {"T": type, "out": both, "tolerance": tolerance}
        for shape in ((3, 4), (1, 4), (3, 1)):
            labels = np.abs(numbers(shape, type)) / 4
            yield one("SoftmaxCrossEntropyWithLogits", logits, labels.astype(type.dtype), **same)
        for index in (DataType.INT32, DataType.INT64):
            labels = np.array([3, 0, 2], index.dtype)
            yield one("SparseSoftmaxCrossEntropyWithLogits", logits, labels, Tlabels=index, **same)
    single = (TensorType.FLOAT32,) * 2
    empty = numbers((0, 4))
    yield one("SoftmaxCrossEntropyWithLogits", empty, empty, T=DataType.FLOAT32, out=single)
    yield one(
        "SparseSoftmaxCrossEntropyWithLogits",
        empty,
        np.zeros(0, np.int32),
        T=DataType.FLOAT32,
        Tlabels=DataType.INT32,
        out=single,
    )
