"""Tiles: no long row is left to one thread, and all threads get as many tiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from delegated import assert_near, delegated, levels, rows_of, run
from delegraph import Interpreter
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.lowering.convolution.conv_int8 import column_tiles_for
from delegraph_numba_cpu.program.builder import (
    SPARE_TILE_NANOSECONDS,
    TILE_NANOSECONDS,
    ProgramBuilder,
)

CONV = Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
DEPTHWISE = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)


def values(*shape: int) -> Any:
    return constant(np.random.default_rng(0).normal(size=shape).astype(np.float32))


CASES: dict[str, tuple[Any, ...]] = {  # node, shape of the input, shape of the output, constants
    "RELU": (("RELU", "x", "y"), (1, 64, 64, 24), (1, 64, 64, 24), {}),
    "TRANSPOSE": (
        ("TRANSPOSE", "x order", "y"),
        (335, 40, 20),
        (40, 335, 20),
        {"order": constant(np.array([1, 0, 2], np.int32))},
    ),
    "PAD": (
        ("PAD", "x sizes", "y"),
        (1, 64, 64, 24),
        (1, 64, 64, 32),
        {"sizes": constant(np.array([[0, 0], [0, 0], [0, 0], [0, 8]], np.int32))},
    ),
    "CONV_2D": (
        ("CONV_2D", "x w b", "y", CONV),
        (1, 7, 7, 960),
        (1, 7, 7, 160),
        {"w": values(160, 1, 1, 960), "b": values(160)},
    ),
    "CONV_2D of one channel": (
        ("CONV_2D", "x w b", "y", CONV),
        (1, 48, 48, 64),
        (1, 48, 48, 1),
        {"w": values(1, 1, 1, 64), "b": values(1)},
    ),
    "DEPTHWISE_CONV_2D": (
        ("DEPTHWISE_CONV_2D", "x w b", "y", DEPTHWISE),
        (1, 14, 14, 128),
        (1, 14, 14, 128),
        {"w": values(1, 3, 3, 128), "b": values(128)},
    ),
}


def builder_of(workers: int) -> ProgramBuilder:
    context, library = SimpleNamespace(tensors=()), SimpleNamespace(level=None)
    return ProgramBuilder(context, library, workers, True, {})  # type: ignore[arg-type]  # unused


def model_of(case: str) -> bytes:
    node, given, made, constants = CASES[case]
    tensors = {"x": tensor(given), "y": tensor(made), **constants}
    return graph_model([node], inputs="x", outputs="y", tensors=tensors)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_no_row_is_left_to_one_thread(case: str, threads: int) -> None:
    tiles = [row.tiles for row in rows_of(model_of(case), threads=threads)]
    assert tiles
    assert all(count == 1 if threads == 1 else count % 2 == 0 for count in tiles)


@levels
@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_the_number_of_threads(case: str, level: str) -> None:
    x = np.random.default_rng(1).normal(size=CASES[case][1]).astype(np.float32)
    alone, *others = (
        run(delegated(model_of(case), level, num_threads=threads), x) for threads in (1, 2, 3, 8)
    )
    for found in others:
        np.testing.assert_array_equal(found, alone)
    assert_near(alone, run(Interpreter(model_content=model_of(case)), x))


@pytest.mark.parametrize(
    ("workers", "nanoseconds", "most", "tiles"),
    [
        (1, 1e9, 99, 1),
        (2, 0, 9, 1),
        (2, 1.9 * TILE_NANOSECONDS, 9, 1),
        (2, 2 * TILE_NANOSECONDS, 9, 2),
        (2, 3.9 * SPARE_TILE_NANOSECONDS, 9, 2),
        (2, 4 * SPARE_TILE_NANOSECONDS, 9, 4),
        (2, 1e9, 99, 4),
        (2, 1e9, 3, 2),
        (8, 5 * TILE_NANOSECONDS, 99, 5),
        (8, 1e9, 12, 8),
        (8, 1e9, 99, 16),
        (8, 1e9, 0, 1),
    ],
)
def test_threads_get_as_many_tiles(workers: int, nanoseconds: float, most: int, tiles: int) -> None:
    assert builder_of(workers).tiles(nanoseconds, most) == tiles


@pytest.mark.parametrize(
    ("tiles", "row_tiles", "outputs", "parts"),
    [(8, 2, 640, 4), (4, 1, 192, 2), (8, 1, 320, 4), (2, 1, 64, 2), (8, 1, 32, 1), (1, 1, 320, 1)],
)
def test_columns_are_divided_equally_among_threads_that_have_no_rows(
    tiles: int, row_tiles: int, outputs: int, parts: int
) -> None:
    assert column_tiles_for(builder_of(2), tiles, row_tiles, outputs) == parts


@pytest.mark.parametrize(
    ("wanted", "most", "workers", "parts"),
    [
        (8, 99, 2, 8),
        (8, 3, 2, 2),
        (6, 3, 2, 2),
        (3, 9, 8, 3),
        (32, 5, 8, 4),
        (1, 9, 2, 1),
        (12, 4, 3, 3),
        (8, 0, 2, 1),
    ],
)
def test_parts_of_an_image_are_those_of_threads(
    wanted: int, most: int, workers: int, parts: int
) -> None:
    assert builder_of(workers).row_tiles(wanted, most) == parts
