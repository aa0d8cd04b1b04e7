"""Depthwise and 1 x 1 convolutions of wide rows: most of a row is read in its place, not copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegated import Array, Watched, levels, run
from delegraph import Interpreter
from delegraph.schema.enums import Padding
from delegraph.schema.options import AddOptions, Conv2DOptions, DepthwiseConv2DOptions
from delegraph.testing import constant, graph_model, tensor
from delegraph_numba_cpu.bounds import Overrun, check_row
from delegraph_numba_cpu.instructions.memory import Row
from delegraph_numba_cpu.library.cpu import level_named, supported_levels
from delegraph_numba_cpu.lowering.convolution import inverted_residual_f32

Shape = tuple[int, int, int, int]


def values(*shape: int) -> Array:
    return np.random.default_rng([7, *shape]).standard_normal(shape).astype(np.float32)


def chain_model(shape: Shape, kernel: int, stride: int, padding: Padding) -> bytes:
    """Return a depthwise convolution and a 1 x 1 one, with an ADD of the input where it fits."""
    images, h, w, c = shape
    lost = kernel - 1 if padding == Padding.VALID else 0
    result = (images, -(-(h - lost) // stride), -(-(w - lost) // stride), c)
    options = {"padding": padding, "stride_h": stride, "stride_w": stride}
    nodes: list[Any] = [
        ("DEPTHWISE_CONV_2D", "x filter bias", "filtered", DepthwiseConv2DOptions(**options)),
        ("CONV_2D", "filtered matrix bias", "made", Conv2DOptions(stride_h=1, stride_w=1)),
    ]
    if result == shape:
        nodes += [("ADD", "made x", "sum", AddOptions()), ("RELU", "sum", "y")]
    else:
        nodes += [("RELU", "made", "y")]
    tensors = {
        "x": tensor(shape),
        "filter": constant(values(1, kernel, kernel, c)),
        "matrix": constant(values(c, 1, 1, c)),
        "bias": constant(values(c)),
        **{name: tensor(result) for name in ("filtered", "made", "sum", "y")},
    }
    used = {name for _, inputs, output, *_ in nodes for name in (*inputs.split(), output)}
    return graph_model(
        nodes, inputs="x", outputs="y", tensors={n: t for n, t in tensors.items() if n in used}
    )


WIDE: list[tuple[Shape, int, int, Padding]] = [
    ((2, 21, 61, 24), 3, 1, Padding.SAME),
    ((1, 41, 64, 24), 3, 1, Padding.VALID),
    ((1, 44, 66, 28), 5, 1, Padding.SAME),
    ((2, 41, 64, 24), 3, 2, Padding.SAME),
    ((1, 41, 67, 42), 3, 2, Padding.SAME),
    ((1, 61, 70, 20), 5, 2, Padding.SAME),
]

WHOLE: list[tuple[Shape, int, int, Padding]] = [
    ((1, 3, 32, 24), 3, 1, Padding.SAME),  # both ends are half of a row
    ((1, 3, 64, 3), 3, 1, Padding.SAME),  # channels fill no register
    ((1, 3, 64, 64), 3, 1, Padding.SAME),  # pixels would compete for few sets of the cache
    ((1, 3, 64, 24), 3, 2, Padding.VALID),  # no window reads the last column
]


def program_of(model: bytes, level: str, threads: int = 1) -> tuple[Interpreter, Row]:
    """Return an interpreter and the row of the fused convolutions."""
    watched = Watched(level, threads=threads)
    interpreter = Interpreter(model_content=model, experimental_delegates=[watched])
    interpreter.allocate_tensors()
    rows = (row for row in watched.rows if row.instruction.kernel == "inverted_residual")
    return interpreter, next(rows)


@levels
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("chain", WIDE, ids=str)
def test_ends_of_rows_suffice(
    chain: tuple[Shape, int, int, Padding],
    threads: int,
    level: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, x = chain_model(*chain), values(*chain[0])
    ours, row = program_of(model, level, threads)
    assert int(row.words["has_ends"]) == 1
    monkeypatch.setattr(inverted_residual_f32, "end_pixels", lambda *given: 0)
    whole, row = program_of(model, level, threads)
    assert int(row.words["has_ends"]) == 0
    np.testing.assert_array_equal(run(ours, x), run(whole, x))


@levels
@pytest.mark.parametrize(("width", "kernel"), [(40, 3), (12, 5), (6, 3), (40, 7)])
@pytest.mark.parametrize("share", [0.5, 0.75])
def test_two_pixels_of_few_channels_are_computed_as_one(
    share: float, width: int, kernel: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = (2, 9, width, int(share * level_named(level).vector_bytes) // 4)
    model, x = chain_model(shape, kernel, 1, Padding.SAME), values(*shape)
    pairs, row = program_of(model, level)
    assert int(row.words["out_w"]) == width // 2
    monkeypatch.setattr(inverted_residual_f32, "takes_pairs", lambda *given: False)
    single, row = program_of(model, level)
    assert int(row.words["out_w"]) == width
    np.testing.assert_array_equal(run(pairs, x), run(single, x))


@pytest.mark.parametrize("chain", WHOLE, ids=str)
def test_other_rows_are_copied_whole(chain: tuple[Shape, int, int, Padding]) -> None:
    _, row = program_of(chain_model(*chain), "auto")
    assert int(row.words["has_ends"]) == 0


WRONG: list[dict[str, int]] = [
    {"last_at": 1 << 12},
    {"zeros": 96 * 50},
    {"rows_at": 8 * 9},
    {"left": 96 * 9},
    {"left": -96},
    {"column_tiles": 2},
    {"tap_columns": 4},
    {"stride_column": 96 * 3},
    {"columns": 3},
    {"out_w": 5},
    {"expand_in_row": 96 * 50},
    {"expand_stride_column": 96 * 61},
]
"""Words that would make windows of 3 x 3 taps read outside of rows of 61 pixels of 96 bytes."""


@pytest.mark.parametrize("words", WRONG, ids=str)
def test_windows_outside_of_rows_are_refused(words: dict[str, int]) -> None:
    level = supported_levels()[0]
    _, row = program_of(chain_model(*WIDE[0]), level.name)
    with pytest.raises(Overrun, match="'inverted_residual'"):
        check_row(Row(row.instruction, row.tiles, row.words | words), 1, level.vector_bytes)
