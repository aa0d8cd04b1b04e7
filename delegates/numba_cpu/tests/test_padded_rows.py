"""Padded rows of float32 images have room for all pixels, those that no window reaches included."""

from __future__ import annotations

import numpy as np
import pytest

from delegated import assert_agrees, rows_of
from delegraph import Interpreter
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.instructions.memory import Row
from delegraph_numba_cpu.library.cpu import supported_levels


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng([3, *shape]).standard_normal(shape).astype(np.float32)


def conv_after_pad(before: int, after: int, stride: int) -> bytes:
    """Return a PAD along the width, and a convolution of single pixels far apart."""
    width = before + 5 + after
    size = (width - 1) // stride + 1
    options = Conv2DOptions(padding=Padding.VALID, stride_h=stride, stride_w=stride)
    return graph_model(
        [("PAD", "x pads", "padded"), ("CONV_2D", "padded w b", "y", options)],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((1, 5, 5, 4)),
            "pads": constant(np.array([[0, 0], [0, 0], [before, after], [0, 0]], np.int32)),
            "padded": tensor((1, 5, width, 4)),
            "w": constant(values(8, 1, 1, 4)),
            "b": constant(values(8)),
            "y": tensor((1, -(-5 // stride), size, 8)),
        },
    )


def inverted_residual(height: int) -> bytes:
    """Return one whose windows are *height* tall, and leave the last column of images out."""
    once = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    twice = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2)
    return graph_model(
        [
            ("CONV_2D", "x expand wide", "expanded", once),
            ("DEPTHWISE_CONV_2D", "expanded filter wide", "filtered", twice),
            ("CONV_2D", "filtered project narrow", "y", once),
        ],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((1, 41, 8, 4)),
            "expand": constant(values(16, 1, 1, 4)),
            "filter": constant(values(1, height, 1, 16)),
            "project": constant(values(4, 1, 1, 16)),
            "wide": constant(values(16)),
            "narrow": constant(values(4)),
            "expanded": tensor((1, 41, 8, 16)),
            "filtered": tensor((1, 21, 4, 16)),
            "y": tensor((1, 21, 4, 4)),
        },
    )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(conv_after_pad(30, 0, 100), id="more zeros in front than windows reach"),
        pytest.param(conv_after_pad(2, 1, 7), id="a last window before the end of the image"),
        pytest.param(inverted_residual(3), id="an inverted residual with a column left out"),
        pytest.param(inverted_residual(5), id="the same with taller windows"),
    ],
)
def test_padded_rows_hold_what_no_window_reaches(model: bytes, threads: int) -> None:
    x = values(*Interpreter(model_content=model).get_input_details()[0]["shape"])
    assert_agrees(model, x, threads=threads)


@pytest.mark.parametrize(
    "words", [{"stride_row": 1 << 20}, {"tap_row": 1 << 20}, {"tap_column": 1 << 20}, {"left": -4}]
)
def test_windows_outside_of_padded_rows_are_refused(words: dict[str, int]) -> None:
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    inputs = [tensor((1, 5, 5, 4)), constant(values(1, 3, 3, 4)), constant(values(4))]
    (row,) = rows_of(one_op_model("DEPTHWISE_CONV_2D", inputs, [tensor((1, 5, 5, 4))], options))
    vector_bytes = supported_levels()[0].vector_bytes
    check_row(row, 1, vector_bytes)
    with pytest.raises(Overrun, match="'depthwise'"):
        check_row(Row(row.instruction, row.tiles, row.words | words), 1, vector_bytes)
