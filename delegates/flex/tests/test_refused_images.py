"""Nodes for images, sound and random numbers that cannot run are refused, with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flex_cases
from delegraph import TensorType
from delegraph.errors import OperatorError
from delegraph_flex.data_types import DataType
from delegraph_flex.flex_node import Unsupported
from delegraph_flex.numpy_executor.executor import NumpyExecutor
from flex_cases import strings

F32, I32 = DataType.FLOAT32, DataType.INT32
IMAGE = np.ones((1, 4, 5, 2), np.float32)
FILTER = np.ones((3, 3, 2, 4), np.float32)
CONV: dict[str, Any] = {"T": F32, "strides": [1, 1, 1, 1], "padding": b"SAME"}
POOL: dict[str, Any] = {"ksize": [1, 2, 2, 1], **CONV}
BOXES, SCORES = np.ones((3, 4), np.float32), np.ones(3, np.float32)
HALF = np.float32(0.5)


def run(op: str, *inputs: Any, **attrs: Any) -> list[np.ndarray]:
    case = flex_cases.one(op, *inputs, **attrs, out=TensorType.FLOAT32)
    return flex_cases.run(case, NumpyExecutor())


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("Conv2D", (IMAGE, FILTER[:, :, :0]), CONV, "has 2 channels, expected a multiple of 0"),
        ("Conv2D", (IMAGE[0], FILTER), CONV, "expected 4 dimensions each"),
        (
            "Conv2D",
            (IMAGE, np.ones((7, 3, 2, 4), np.float32)),
            CONV | {"padding": b"VALID"},
            "windows span 7 positions, expected at most 4",
        ),
        (
            "Conv2DBackpropInput",
            (ints(1, 4, 5, 2), FILTER, np.ones((1, 3, 5, 4), np.float32)),
            CONV,
            r"gradient has shape \[1, 3, 5\], expected \[1, 4, 5\]",
        ),
        (
            "Conv2DBackpropInput",
            (ints(1 << 20, 1 << 20, 5, 2), FILTER, np.ones((1, 4, 5, 4), np.float32)),
            CONV,
            "more than the limit",
        ),
        ("MaxPool", (IMAGE[0],), POOL, "expected 4 dimensions"),
        ("ResizeBilinear", (IMAGE, ints(0, 3)), {"T": F32}, "expected pixels"),
        ("ResizeBilinear", (IMAGE, ints(1 << 20, 1 << 20)), {"T": F32}, "more than the limit"),
        (
            "CropAndResize",
            (IMAGE, BOXES, ints(0, 1, 0), ints(2, 2)),
            {"T": F32},
            r"boxes are of images \[0, 1, 0\], expected below 1",
        ),
        (
            "CropAndResize",
            (IMAGE, BOXES * np.inf, ints(0, 0, 0), ints(2, 2)),
            {"T": F32},
            "not finite",
        ),
        ("NonMaxSuppressionV2", (BOXES, SCORES[:2], np.int32(1), HALF), {"T": F32}, r"\[3\]"),
        ("NonMaxSuppressionV2", (BOXES, SCORES, np.int32(1), HALF * 3), {"T": F32}, "0 to 1"),
        ("RGBToHSV", (IMAGE,), {"T": F32}, "three colours"),
        ("BiasAdd", (IMAGE, SCORES), {"T": F32}, "expected channels last"),
        (
            "SparseSoftmaxCrossEntropyWithLogits",
            (BOXES, ints(0, 4, 1)),
            {"T": F32, "Tlabels": I32},
            "labels are 0 to 4, expected 0 to 3",
        ),
        ("DecodeWav", (strings(b"RIFX"),), {}, "expected RIFF"),
        (
            "RandomPoissonV2",
            (ints(2), np.float32(np.inf)),
            {"S": I32, "R": F32, "dtype": F32},
            "not finite",
        ),
        (
            "StatelessRandomUniform",
            (ints(2), np.arange(3)),
            {"T": I32, "Tseed": DataType.INT64, "dtype": F32},
            r"seed has shape \[3\], expected \[2\]",
        ),
    ],
)
def test_bad_data_is_refused_in_words(
    op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, OperatorError), match=message):
        run(op, *inputs, **attrs)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("Conv2D", (IMAGE, FILTER), CONV | {"data_format": b"NCHW"}, "expected 'NHWC'"),
        ("Conv2D", (IMAGE, FILTER), CONV | {"strides": [2, 1, 1, 1]}, "expected 1 at both ends"),
        (
            "Conv2D",
            (IMAGE, FILTER),
            CONV | {"padding": b"EXPLICIT", "explicit_paddings": [0, 0, 1]},
            "explicit_paddings",
        ),
        (
            "DepthwiseConv2dNative",
            (IMAGE, FILTER),
            CONV | {"dilations": [1, 2, 2, 1]},
            "'dilations' is",
        ),
        (
            "ResizeBilinear",
            (IMAGE, ints(2, 2)),
            {"T": F32, "align_corners": True, "half_pixel_centers": True},
            "both true",
        ),
        ("AvgPool", (IMAGE,), POOL | {"ksize": [1, 1, 1, 2]}, "expected 1 at both ends"),
        ("FakeQuantWithMinMaxArgs", (SCORES,), {"num_bits": 17}, "expected 2 to 16"),
        (
            "QuantizeV2",
            (SCORES, HALF, HALF),
            {"T": DataType.QINT8, "mode": b"MIN_FIRST", "axis": 0},
            "expected -1",
        ),
        ("AudioSpectrogram", (BOXES,), {"window_size": 1, "stride": 1}, "'window_size'"),
        ("AdjustHue", (IMAGE, HALF), {"T": DataType.FLOAT16}, "AdjustHue of FLOAT16"),
        (
            "ImageProjectiveTransformV2",
            (IMAGE, np.ones((1, 8), np.float32), ints(2, 2)),
            {"dtype": F32, "interpolation": b"CUBIC"},
            "expected 'NEAREST' or 'BILINEAR'",
        ),
    ],
)
def test_what_cannot_run_is_said_before_it_runs(
    op: str, inputs: tuple[Any, ...], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(Unsupported, match=message):
        run(op, *inputs, **attrs)
