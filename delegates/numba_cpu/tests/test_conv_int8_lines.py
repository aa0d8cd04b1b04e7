"""8-bit convolutions that read windows from padded lines of the image."""

from __future__ import annotations

import numpy as np
import pytest

from delegated import delegated, rows_of, run
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.instructions.conv_int8 import LINES
from delegraph_numba_cpu.instructions.memory import Row
from delegraph_numba_cpu.library.cpu import level_named, supported_levels
from delegraph_numba_cpu.lowering.convolution.conv_int8_lines import lines_together

IN_LINES = [
    level.name for level in supported_levels() if level.vector_bytes >= 32 and not level.has_tiles
]
"""Levels that read windows from lines."""


def model(
    shape: tuple[int, ...], outputs: int, kernel: tuple[int, int], stride: int, weight_type: str
) -> tuple[bytes, tuple[int, ...]]:
    """Return a convolution of *weight_type*, and the shape of its output."""
    rng, unsigned = np.random.default_rng(5), weight_type == "UINT8"
    weight = rng.integers(-127, 127, (outputs, *kernel, shape[3])).astype(np.int8)
    if unsigned:
        weight = weight.view(np.uint8)
    y = (shape[0], *(-(-size // stride) for size in shape[1:3]), outputs)
    bias = rng.integers(-900, 900, outputs).astype(np.int32)
    options = Conv2DOptions(padding=Padding.SAME, stride_h=stride, stride_w=stride)
    tensors = {
        "x": tensor(shape, weight_type, scale=0.05, zero_point=7),
        "weight": constant(weight, scale=0.01, zero_point=3 if unsigned else 0),
        "bias": constant(bias, scale=0.0005),
        "y": tensor(y, weight_type, scale=0.6, zero_point=11),
    }
    node = ("CONV_2D", "x weight bias", "y", options)
    return graph_model([node], inputs="x", outputs="y", tensors=tensors), y


def row_of(content: bytes, level: str) -> Row:
    """Return the kernel call of a model with one convolution."""
    (row,) = (row for row in rows_of(content, level) if row.instruction.kernel == "convolve")
    return row


@pytest.mark.parametrize("level", IN_LINES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("shape", "outputs", "kernel", "stride"),
    [
        ((1, 8, 8, 16), 16, (3, 3), 1),
        ((3, 4, 4, 32), 40, (3, 3), 1),
        ((1, 61, 43, 4), 66, (3, 5), 2),
        ((1, 3, 1000, 4), 20, (1, 3), 1),
        ((2, 40, 37, 64), 18, (4, 2), 2),
    ],
    ids=str,
)
def test_results_equal_those_of_copied_windows(
    level: str,
    threads: int,
    shape: tuple[int, ...],
    outputs: int,
    kernel: tuple[int, int],
    stride: int,
) -> None:
    content, _ = model(shape, outputs, kernel, stride, "INT8")
    assert row_of(content, level).words["layout"] == LINES
    x = np.random.default_rng(6).integers(-128, 128, shape).astype(np.int8)
    found, expected = (
        run(delegated(content, name, num_threads=count), x)
        for name, count in ((level, threads), ("generic", 1))
    )
    assert np.array_equal(found, expected)
    assert len(np.unique(found)) > 100


@pytest.mark.parametrize("level", IN_LINES)
@pytest.mark.parametrize(
    ("shape", "kernel", "weight_type"),
    [
        ((1, 2, 3, 16), (3, 3), "INT8"),  # few pixels
        ((1, 9, 9, 16), (3, 3), "UINT8"),  # weights beyond signed bytes
        ((1, 9, 9, 16), (1, 1), "INT8"),  # windows of a pixel
        ((1, 2, 2000, 4), (3, 3), "INT8"),  # long rows
    ],
    ids=str,
)
def test_other_windows_are_copied(
    level: str, shape: tuple[int, ...], kernel: tuple[int, int], weight_type: str
) -> None:
    content, _ = model(shape, 20, kernel, 1, weight_type)
    assert row_of(content, level).words["layout"] != LINES


@pytest.mark.parametrize("level", IN_LINES)
def test_a_resize_from_copied_windows_to_lines_and_back(level: str) -> None:
    content, _ = model((1, 2, 3, 1), 1, (2, 2), 1, "INT8")  # lines have gaps, copies have none
    found, expected = delegated(content, level), delegated(content, "generic")
    for shape in ((1, 2, 3, 1), (1, 9, 9, 1), (1, 2, 3, 1)):
        x = np.random.default_rng(6).integers(-128, 128, shape).astype(np.int8)
        assert np.array_equal(run(found, x), run(expected, x))


@pytest.mark.parametrize("level", IN_LINES)
@pytest.mark.parametrize("name", ["line_bytes", "left", "dilation_w", "stride_w", "is_transposed"])
def test_lines_beyond_the_scratch_memory_are_refused(level: str, name: str) -> None:
    content, _ = model((1, 12, 12, 16), 20, (3, 3), 1, "INT8")
    row = row_of(content, level)
    vector_bytes = level_named(level).vector_bytes
    check_row(row, 1, vector_bytes)
    row.words["windows"].memory.records[0][name] += 4096
    with pytest.raises(Overrun):
        check_row(row, 1, vector_bytes)


@pytest.mark.parametrize("width", [1, 3, 4, 7])
@pytest.mark.parametrize("step", [1, 2, 5, 12])
def test_adjacent_windows_read_no_more_lines_than_have_room(width: int, step: int) -> None:
    height, stride, span = 5, 2, 3
    read = [
        ((first + step - 1) // width - first // width) * stride + span
        for first in range(height * width - step + 1)
    ]
    assert max(read, default=0) <= lines_together(step, width, height, stride, span)
