"""GATHER and GATHER_ND by positions that are known only as the model runs, and may be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegated import run
from delegraph import Interpreter
from delegraph.errors import DelegraphError, NodeError
from delegraph.schema.options import GatherNdOptions, GatherOptions
from delegraph.testing import constant, graph_model, one_op_model, tensor

X = np.random.default_rng(0).normal(size=(3, 4, 5, 16)).astype(np.float32)

OUTSIDE = [-1, 3, 2**31 - 1, -(2**31)]


def interpreter_of(content: bytes, delegates: list[str], **options: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, delegates=delegates, **options)
    interpreter.allocate_tensors()
    return interpreter


def gather_model(
    positions: np.ndarray[Any, Any], x: np.ndarray[Any, Any] = X, **axis: int
) -> bytes:
    inputs = [
        tensor(x.shape, x.dtype.name.upper()),
        tensor(positions.shape, positions.dtype.name.upper()),
    ]
    return one_op_model(
        "GATHER", inputs, [tensor((1,), x.dtype.name.upper())], GatherOptions(**axis)
    )


def gather_nd_model(positions: np.ndarray[Any, Any], x: np.ndarray[Any, Any] = X) -> bytes:
    inputs = [
        tensor(x.shape, x.dtype.name.upper()),
        tensor(positions.shape, positions.dtype.name.upper()),
    ]
    return one_op_model("GATHER_ND", inputs, [tensor((1,), x.dtype.name.upper())])


@pytest.mark.parametrize("type", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("element", [np.int8, np.int16, np.float32, np.int64])
@pytest.mark.parametrize("axis", range(4))
def test_slices_are_those_of_numpy(axis: int, element: type, type: type) -> None:
    x = (100 * X).astype(element)
    positions = np.random.default_rng(axis).integers(0, 3, (2, 5)).astype(type)
    interpreter = interpreter_of(gather_model(positions, x, axis=axis), ["numba_cpu"])
    assert "numba_cpu takes 1" in str(interpreter.placement)
    assert np.array_equal(run(interpreter, x, positions), np.take(x, positions, axis))


@pytest.mark.parametrize(("axis", "batch_dims"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3)])
def test_each_batch_has_positions_of_its_own(axis: int, batch_dims: int) -> None:
    shape = (*X.shape[:batch_dims], 6)
    positions = np.random.default_rng(axis).integers(0, X.shape[axis], shape).astype(np.int32)
    content = gather_model(positions, axis=axis, batch_dims=batch_dims)
    found, expected = (
        run(interpreter_of(content, names), X, positions) for names in (["numba_cpu"], [])
    )
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("depth", range(1, 5))
def test_points_are_those_of_numpy(depth: int) -> None:
    generator = np.random.default_rng(depth)
    positions = np.stack([generator.integers(0, n, (2, 7)) for n in X.shape[:depth]], -1)
    positions = positions.astype(np.int32)
    interpreter = interpreter_of(gather_nd_model(positions), ["numba_cpu"])
    assert "numba_cpu takes 1" in str(interpreter.placement)
    expected = X[tuple(np.moveaxis(positions, -1, 0))]
    assert np.array_equal(run(interpreter, X, positions), expected)


@pytest.mark.parametrize("guard", ["", "1"])
@pytest.mark.parametrize("position", OUTSIDE)
@pytest.mark.parametrize("model", [gather_model, gather_nd_model])
def test_a_position_outside_is_an_error_that_names_it(
    model: Any, position: int, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELEGRAPH_NUMBA_GUARD", guard)
    positions = np.array([[1], [position], [0]], np.int32)
    interpreter = interpreter_of(model(positions), ["numba_cpu"])
    wrong = rf"node 0 \(GATHER\w*\): position {position} is outside \[0, 3\)"
    with pytest.raises(DelegraphError, match=wrong):
        run(interpreter, X, positions)
    positions[1] = 2  # and afterwards all is well
    expected = X[positions] if model is gather_model else X[positions[:, 0]]
    assert np.array_equal(run(interpreter, X, positions), expected)


def test_an_error_is_found_by_any_thread_and_in_a_profile() -> None:
    x = np.zeros((1000, 1000), np.float32)
    positions = np.arange(1000, dtype=np.int32)
    interpreter = interpreter_of(gather_model(positions, x), ["numba_cpu"], num_threads=2)
    for wrong in (0, 500, 999):
        positions[wrong] = 1000
        with pytest.raises(DelegraphError, match=r"position 1000 is outside \[0, 1000\)"):
            run(interpreter, x, positions)
        with pytest.raises(DelegraphError, match="position 1000"), interpreter.profile():
            interpreter.invoke()
        positions[wrong] = 0
    assert run(interpreter, x, positions).shape == x.shape


def test_positions_are_looked_at_where_nothing_is_copied() -> None:
    empty = np.zeros((3, 0), np.float32)
    positions = np.array([3], np.int32)
    for axis, size in ((0, 3), (1, 0)):
        interpreter = interpreter_of(gather_model(positions, empty, axis=axis), ["numba_cpu"])
        with pytest.raises(DelegraphError, match=rf"position 3 is outside \[0, {size}\)"):
            run(interpreter, empty, positions)


def test_positions_may_be_made_by_the_same_partition() -> None:
    content = graph_model(
        [("CAST", "p", "q"), ("GATHER_ND", "table q", "y"), ("NEG", "y", "z")],
        inputs="p",
        outputs="z",
        tensors={
            "table": constant(X),
            "p": tensor((2, 1)),
            "q": tensor((2, 1), "INT32"),
            "y": tensor((2, *X.shape[1:])),
            "z": tensor((2, *X.shape[1:])),
        },
    )
    interpreter = interpreter_of(content, ["numba_cpu"])
    found = run(interpreter, np.array([[2], [1]], np.float32))
    assert np.array_equal(found, -X[[2, 1]])
    with pytest.raises(DelegraphError, match=r"node 1 \(GATHER_ND\): position 7 is outside"):
        run(interpreter, np.array([[7], [1]], np.float32))


@pytest.mark.parametrize(
    ("op", "options"), [("GATHER", GatherOptions()), ("GATHER_ND", GatherNdOptions())]
)
def test_constant_positions_outside_a_resized_input_are_the_cores_error(
    op: str, options: Any
) -> None:
    inputs = [tensor((3, 4)), constant(np.int32([[2], [0]]))]
    content = one_op_model(op, inputs, [tensor((1,))], options)
    interpreter = interpreter_of(content, ["numba_cpu"])
    assert "numba_cpu takes 1" in str(interpreter.placement)
    interpreter.resize_tensor_input(0, (2, 4))
    interpreter.allocate_tensors()
    with pytest.raises(NodeError, match=r"failed to invoke: .*position 2 is outside \[0, 2\)"):
        interpreter.invoke()
