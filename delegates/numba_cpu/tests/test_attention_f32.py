"""Attention as one step: bit by bit what the separate nodes compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from attention_model import Attention
from delegated import assert_near, delegated, is_taken, kernels_of, levels, run
from delegraph import Interpreter
from delegraph.schema import options as o
from delegraph.testing import constant, graph_model, tensor
from delegraph.testing.several_ops import NodeText
from delegraph_numba_cpu.lowering import schedule
from delegraph_numba_cpu.lowering.convolution.attention_f32 import fuse_attention
from delegraph_numba_cpu.lowering.schedule import FUSERS


@contextmanager
def separate(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lower attention node by node."""
    with monkeypatch.context() as patch:
        others = tuple(fuser for fuser in FUSERS if fuser is not fuse_attention)
        patch.setattr(schedule, "FUSERS", others)
        yield


def assert_same(
    monkeypatch: pytest.MonkeyPatch,
    attention: Attention,
    inputs: list[np.ndarray] | None = None,
    level: str = "auto",
    **options: Any,
) -> np.ndarray:
    """Check that fused and separate nodes agree bit by bit; return the results."""
    inputs = attention.inputs() if inputs is None else inputs
    model = attention.model()
    fused = delegated(model, level, **options)
    found = run(fused, *inputs)
    assert is_taken(fused)
    with separate(monkeypatch):
        expected = run(delegated(model, level, **options), *inputs)
    np.testing.assert_array_equal(found, expected)
    return found


SIZES = [
    (9, 1, 1, 1), (10, 2, 5, 3), (12, 13, 33, 7), (13, 33, 7, 40), (33, 64, 16, 16),
    (40, 130, 8, 33), (50, 300, 20, 20),
]  # fmt: skip


@levels
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("scale", ["", "MUL"])
def test_any_sizes(
    level: str, sizes: tuple[int, int, int, int], scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mask in (None, (sizes[1],)):
        attention = Attention(sizes=sizes, scale=scale, mask=mask)
        found = assert_same(monkeypatch, attention, level=level)
        theirs = Interpreter(model_content=attention.model())
        assert_near(found, run(theirs, *attention.inputs()))


MASKS = [
    (), (1,), (20,), (9, 20), (9, 1), (3, 1, 1, 20), (3, 1, 9, 20), (3, 4, 9, 20), (1, 4, 9, 20),
    (1, 4, 1, 1), (3, 1, 9, 1), (3, 4, 1, 20),
]  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("scale", ["", "MUL"])
def test_masks_are_repeated(
    mask: tuple[int, ...], scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = Attention((3, 4), mask=mask, scale=scale, beta=0.7)
    assert "attention" in kernels_of(attention.model())
    assert_same(monkeypatch, attention)


@levels
@pytest.mark.parametrize("mask", [(9, 20), (9, 1)])
def test_values_that_are_no_numbers(
    level: str, mask: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for scale in ("", "MUL"):
        attention = Attention(mask=mask, scale=scale)
        inputs = attention.inputs()
        special = [np.nan, np.inf, -np.inf, -np.finfo(np.float32).max]
        inputs[3][:4, :] = np.array(special, np.float32)[:, None]
        inputs[3][4, 5 % mask[1]], inputs[3][5, :3] = -np.inf, np.nan
        inputs[0][0, 6, 2], inputs[0][1, 7, 3] = np.nan, np.inf
        found = assert_same(monkeypatch, attention, inputs, level)
        assert not np.isnan(found[0, 2:5]).any()  # of rows that are masked as a whole, too


def test_scores_that_are_no_numbers_without_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    for scale in ("", "MUL"):
        attention = Attention(scale=scale)
        inputs = attention.inputs()
        inputs[0][0, 1:4, 2] = np.nan, np.inf, -np.inf
        assert_same(monkeypatch, attention, inputs)


FUSED = [
    Attention(adj_y=False),
    Attention(scale="DIV", factor=-8.0),
    Attention((2, 3), is_reshaped=True, mask=(2, 1, 1, 20)),
    Attention((2, 3), is_transposed=True),
    Attention((2, 3), is_transposed=True, adj_y=False, mask=(9, 20)),
    Attention((1, 3), is_transposed=True, is_reshaped=True),
    Attention((4,), shared=()),
    Attention((12,), (1, 20, 7, 12), shared=(1,), mask=(12, 1, 20)),
    Attention((4,), shared=(1,), mask=(4, 1, 20)),
    Attention((2, 3), shared=(2, 1), mask=(2, 1, 1, 20)),
    Attention((2, 3), shared=(3,)),
]


@pytest.mark.parametrize("number", range(len(FUSED)))
def test_layouts_that_are_fused(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    attention = FUSED[number]
    moves = {"nest", "copy"} if attention.batch[0] == 1 or not attention.is_transposed else set()
    kernels = kernels_of(attention.model())
    assert "attention" in kernels
    assert moves.isdisjoint(kernels)
    for threads in (1, 2):
        assert_same(monkeypatch, attention, num_threads=threads)


def test_keys_that_are_half_a_page_apart_are_moved_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for heads, moves in ((8, 2), (7, 0)):
        attention = Attention((1, heads), (9, 20, 64, 64), is_transposed=True)
        kernels = kernels_of(attention.model())
        assert kernels == ["nest"] * moves + ["attention"]
        assert_same(monkeypatch, attention)


SEPARATE = [
    Attention(scale="DIV", factor=3.0),
    Attention(sizes=(1, 20, 7, 12)),  # rows and matrices, which are not packed
    Attention((2, 3, 2), shared=(2, 1, 2)),
]


@pytest.mark.parametrize("number", range(len(SEPARATE)))
def test_nodes_that_are_not_fused(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "softmax" in kernels_of(SEPARATE[number].model())
    assert_same(monkeypatch, SEPARATE[number])


def test_attention_inside_a_composite(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = Attention((1, 3), scale="MUL", mask=(9, 20), is_transposed=True)
    model = attention.composite_model()
    assert "attention" in kernels_of(model)
    found = run(delegated(model), *attention.inputs())
    np.testing.assert_array_equal(found, run(delegated(attention.model()), *attention.inputs()))


@pytest.mark.parametrize("outputs", ["scores y", "shares y", "mixed y", "masked y"])
def test_values_between_that_are_outputs_are_stored(
    outputs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention = Attention(mask=(20,))
    model, inputs = attention.model(outputs), attention.inputs()
    found = run(delegated(model), *inputs)
    with separate(monkeypatch):
        np.testing.assert_array_equal(found, run(delegated(model), *inputs))


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_threads_share_heads_and_rows(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch, queries in (((2, 4), 130), ((1,), 600)):
        attention = Attention(batch, (queries, 150, 24, 24), scale="MUL", mask=(queries, 150))
        found = assert_same(monkeypatch, attention, num_threads=threads)
        np.testing.assert_array_equal(found, assert_same(monkeypatch, attention, num_threads=1))


def test_operands_may_be_resized(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = delegated(Attention(mask=(1, 1, 20)).model())
    for sizes in ((9, 20, 7, 12), (30, 41, 5, 3), (1, 3, 2, 2), (4, 64, 16, 8)):
        attention = Attention((3,), sizes, mask=(1, 1, sizes[1]))
        inputs = attention.inputs()
        with separate(monkeypatch):
            expected = run(delegated(attention.model()), *inputs)
        np.testing.assert_array_equal(run(fused, *inputs), expected)


@pytest.mark.parametrize("is_transposed", [False, True])
def test_variables_are_read_before_they_are_written_again(is_transposed: bool) -> None:
    keys = "keys" if is_transposed else "state"
    nodes: list[NodeText] = [
        ("BATCH_MATMUL", f"x {keys}", "scores", o.BatchMatMulOptions(adj_y=not is_transposed)),
        ("SVDF", "values feature time - state", "z", o.SVDFOptions(rank=1)),
        ("SOFTMAX", "scores", "shares", o.SoftmaxOptions(beta=1.0)),
        ("BATCH_MATMUL", "shares values", "y", o.BatchMatMulOptions()),
    ]
    if is_transposed:
        nodes = [("TRANSPOSE", "state turn", "keys"), nodes[1], nodes[0], *nodes[2:]]
    generator = np.random.default_rng(0)
    x, values, feature, time = (
        generator.standard_normal(shape).astype(np.float32)
        for shape in ((5, 8), (3, 6), (4, 6), (4, 2))
    )
    tensors = {
        "turn": constant(np.array([1, 0], np.int32)), "state": tensor((3, 8), is_variable=True),
        "feature": constant(feature), "time": constant(time), "x": tensor((5, 8)),
        "values": tensor((3, 6)), "keys": tensor((8, 3)), "scores": tensor((5, 3)),
        "shares": tensor((5, 3)), "z": tensor((3, 4)), "y": tensor((5, 6)),
    }  # fmt: skip
    model = graph_model(nodes, inputs="x values", outputs="y z", tensors=tensors)
    ours, theirs = delegated(model), Interpreter(model_content=model)
    for _ in range(3):
        assert_near(run(ours, x, values), run(theirs, x, values))
    assert is_taken(ours)
