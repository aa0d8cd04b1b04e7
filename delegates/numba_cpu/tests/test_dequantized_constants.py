"""Weights that are stored as halves or without their zeros, and widened once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from delegated import assert_near, delegated, run
from delegraph import Interpreter, Tensor
from delegraph.schema.enums import TensorType
from delegraph.schema.options import FullyConnectedOptions, TransposeConvOptions
from delegraph.testing import TensorDef, constant, delegraph_outputs, graph_model, tensor
from delegraph.testing.operator_cases.quantizing import sparse_rows
from delegraph_numba_cpu.lowering.dequantized_constants import widened_constant

SHAPE = (8, 12)


def stored(type: str, *, is_sparse: bool) -> TensorDef:
    """Return weights, of which every third is 0 if they are sparse."""
    generator = np.random.default_rng(3)
    values = generator.standard_normal(SHAPE).astype(type.lower())
    kept = np.ones(SHAPE, bool)
    kept[:, ::3] = False
    return sparse_rows(type, kept, values[kept]) if is_sparse else constant(values)


@pytest.mark.parametrize(
    ("type", "widening"),
    [("FLOAT16", "DEQUANTIZE"), ("FLOAT32", "DENSIFY"), ("FLOAT16", "DENSIFY DEQUANTIZE")],
)
def test_weights_are_widened_by_the_host_before_the_first_run(type: str, widening: str) -> None:
    steps = widening.split()
    names = ["stored", *(["dense"] if len(steps) > 1 else []), "weight"]
    nodes = [(op, names[i], names[i + 1]) for i, op in enumerate(steps)]
    model = graph_model(
        [*nodes, ("FULLY_CONNECTED", "x weight -", "y", FullyConnectedOptions())],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((5, 12)),
            "stored": stored(type, is_sparse="DENSIFY" in steps),
            "dense": tensor(SHAPE, type),
            "weight": tensor(SHAPE),
            "y": tensor((5, 8)),
        },
    )
    ours, theirs = delegated(model, num_threads=1), Interpreter(model_content=model)
    placed = [node.delegate for node in ours.placement.nodes]
    assert placed == [None] * len(steps) + ["numba_cpu"]
    for seed in (0, 1):
        x = np.random.default_rng(seed).standard_normal((5, 12)).astype(np.float32)
        assert_near(run(ours, x), run(theirs, x))


@pytest.mark.parametrize("source", [-1, 1])
def test_a_tensor_widened_from_no_tensor_or_from_itself_is_no_constant(source: int) -> None:
    """Index -1 finds the last tensor of a list, here the widened one."""
    widening = SimpleNamespace(inputs=(source,), outputs=(1,)), SimpleNamespace(name="DEQUANTIZE")
    stored = Tensor(0, TensorType.FLOAT16, (8,)), Tensor(1, TensorType.FLOAT32, (8,))
    context = SimpleNamespace(get_node_and_registration=lambda index: widening, tensors=stored)
    call: Any = SimpleNamespace(node=SimpleNamespace(index=1), context=context)
    assert widened_constant(call, 1) is None


@pytest.mark.parametrize("taps", [1.5, np.inf])
def test_transposed_convolutions_know_the_halves_that_their_weights_come_from(taps: float) -> None:
    halves = np.full((4, 3, 3, 5), taps, np.float16)
    nodes = [
        ("DEQUANTIZE", "halves", "weight"),
        ("TRANSPOSE_CONV", "shape weight x", "y", TransposeConvOptions(stride_h=2, stride_w=2)),
    ]
    tensors = {
        "halves": constant(halves),
        "weight": tensor(halves.shape),
        "shape": constant(np.int32([1, 8, 8, 4])),
        "x": tensor((1, 4, 4, 5)),
        "y": tensor((1, 8, 8, 4)),
    }
    model = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    interpreter = Interpreter(model_content=model, delegates=["numba_cpu"])
    owner = "numba_cpu" if np.isfinite(taps) else None
    assert [node.delegate for node in interpreter.placement.nodes] == [None, owner]
    x = np.ones((1, 4, 4, 5), np.float32)
    (mine,) = delegraph_outputs(model, [x], delegates=["numba_cpu"])
    np.testing.assert_array_equal(mine, delegraph_outputs(model, [x])[0])
