"""Positions that are computed: a compiled function cannot raise, the kernel does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from delegraph import Interpreter
from delegraph.errors import DelegraphError
from delegraph.testing import one_op_model, tensor
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
