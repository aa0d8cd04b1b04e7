"""Operators whose output gets the type that they compute, whatever type the model declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.schema import write_model
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, delegraph_outputs
from delegraph.testing.operator_case import Given, fed
from delegraph.testing.operator_cases.quantizing import sparse_rows
from delegraph.testing.operator_cases.registry import cases
from support.agreement import assert_agrees
from support.official import official_outputs

X = np.float32([[1.5, -2.25], [0.5, 3.0]])


def ints(*values: int) -> Any:
    return constant(np.int32(values))


NODES: dict[str, tuple[list[Given], Any, int]] = {
    "ADD_N": ([fed(X), fed(X)], None, 1),
    "CEIL": ([fed(X)], None, 1),
    "DENSIFY": ([sparse_rows("FLOAT32", np.eye(2, dtype=bool), np.float32([1, 2]))], None, 1),
    "DYNAMIC_UPDATE_SLICE": ([fed(X), fed(X[:1]), ints(1, 0)], None, 1),
    "EXP": ([fed(X)], None, 1),
    "EXPAND_DIMS": ([fed(X), ints(0)], None, 1),
    "FAKE_QUANT": ([fed(X)], o.FakeQuantOptions(min=-1.0, max=2.0, num_bits=8), 1),
    "FILL": ([ints(3), fed(np.float32(1.5))], None, 1),
    "FLOOR": ([fed(X)], None, 1),
    "GATHER": ([fed(X), ints(1, 0, 1)], o.GatherOptions(axis=0), 1),
    "GATHER_ND": ([fed(X), constant(np.int32([[1]]))], None, 1),
    "MATRIX_DIAG": ([fed(X)], None, 1),
    "MATRIX_SET_DIAG": ([fed(X), fed(X[0])], None, 1),
    "NEG": ([fed(X)], None, 1),
    "ONE_HOT": (
        [ints(0, 2), constant(np.int32(3)), fed(np.float32(1.5)), fed(np.float32(0))],
        o.OneHotOptions(axis=-1),
        1,
    ),
    "RANGE": ([fed(np.float32(n)) for n in (0, 3, 1)], None, 1),
    "RESIZE_BILINEAR": ([fed(X.reshape(1, 2, 2, 1)), ints(3, 3)], o.ResizeBilinearOptions(), 1),
    "RESIZE_NEAREST_NEIGHBOR": (
        [fed(X.reshape(1, 2, 2, 1)), ints(3, 3)],
        o.ResizeNearestNeighborOptions(),
        1,
    ),
    "ROUND": ([fed(X)], None, 1),
    "SCATTER_ND": ([constant(np.int32([[2], [0]])), fed(X), ints(3, 2)], None, 1),
    "SPARSE_TO_DENSE": (
        [ints(1, 3), ints(4), fed(X[0]), fed(np.float32(7))],
        o.SparseToDenseOptions(),
        1,
    ),
    "SPLIT": ([constant(np.int32(0)), fed(X)], o.SplitOptions(num_splits=2), 2),
    "SPLIT_V": ([fed(X), ints(1, 1), constant(np.int32(0))], o.SplitVOptions(num_splits=2), 2),
    "ZEROS_LIKE": ([fed(X)], None, 1),
}


@pytest.mark.parametrize("op", NODES)
def test_output_has_the_type_of_the_input(op: str) -> None:
    inputs, options, count = NODES[op]
    for y in assert_agrees(op, inputs, ["INT32"] * count, options, tolerance=1e-6):
        assert y.dtype == np.float32


def test_rank_is_an_int32() -> None:
    (y,) = assert_agrees("RANK", [fed(X)], ["FLOAT32"])
    assert (y, y.dtype) == (2, np.int32)


def test_detections_are_floats() -> None:
    case = next(iter(cases("TFLite_Detection_PostProcess", seed=5, count=1)))
    (graph,) = case.records.subgraphs or ()
    tensors = [
        tensor.replace(type=TensorType.INT32) if index in (graph.outputs or ()) else tensor
        for index, tensor in enumerate(graph.tensors or ())
    ]
    model = write_model(case.records.replace(subgraphs=(graph.replace(tensors=tuple(tensors)),)))
    ours, theirs = (run(model, case.steps[0]) for run in (delegraph_outputs, official_outputs))
    for mine, official in zip(ours, theirs, strict=True):
        assert mine.dtype == official.dtype == np.float32
        np.testing.assert_allclose(mine, official, rtol=1e-6)
