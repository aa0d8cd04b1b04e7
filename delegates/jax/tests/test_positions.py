"""Positions that are computed: a compiled function cannot raise, the kernel does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph import DelegraphError, Interpreter
from delegraph.testing import constant, one_op_model, tensor
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions


@pytest.fixture
def interpreter() -> Interpreter:
    model = one_op_model("GATHER", [tensor((4, 3)), tensor((2,), "INT32")], [tensor((2, 3))])
    found = Interpreter(model_content=model, experimental_delegates=[JaxDelegate(JaxOptions())])
    found.allocate_tensors()
    found.set_tensor(0, np.arange(12, dtype=np.float32).reshape(4, 3))
    return found


def test_rows_are_those_of_the_positions(interpreter: Interpreter) -> None:
    interpreter.set_tensor(1, np.array([3, 0], np.int32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), [[9, 10, 11], [0, 1, 2]])
    assert all(node.delegate is not None for node in interpreter.placement.nodes)


@pytest.mark.parametrize("position", [-1, 4])
def test_positions_outside_are_refused(interpreter: Interpreter, position: int) -> None:
    interpreter.set_tensor(1, np.array([0, position], np.int32))
    with pytest.raises(DelegraphError, match=r"GATHER\): a position is outside \[0, 4\)"):
        interpreter.invoke()


def test_a_constant_that_others_choose_from() -> None:
    table = constant(np.arange(12, dtype=np.float32).reshape(4, 3))
    model = one_op_model("GATHER_ND", [table, tensor((2, 1), "INT32")], [tensor((2, 3))])
    np.testing.assert_array_equal(*results(model, [np.int32([[3], [1]])]))


def test_a_diagonal_of_a_constant() -> None:
    matrix = constant(np.ones((2, 2), np.float32))
    model = one_op_model("MATRIX_SET_DIAG", [matrix, tensor((2,))], [tensor((2, 2))])
    np.testing.assert_array_equal(*results(model, [np.float32([5, 6])]))


def test_an_empty_axis_has_no_position() -> None:
    model = one_op_model("GATHER", [tensor((0, 3)), tensor((2,), "INT32")], [tensor((2, 3))])
    interpreter = Interpreter(model_content=model, delegates=[JaxDelegate(JaxOptions())])
    interpreter.allocate_tensors()
    interpreter.set_tensor(1, np.int32([0, 0]))
    with pytest.raises(DelegraphError, match="a position is outside"):
        interpreter.invoke()


def test_padding_without_a_value_is_zeros() -> None:
    edges = constant(np.int32([[1, 1], [0, 2]]))
    model = one_op_model("PADV2", [tensor((1, 1)), edges, None], [tensor((3, 3))])
    np.testing.assert_array_equal(*results(model, [np.float32([[7]])]))
