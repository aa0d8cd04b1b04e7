"""Results are written where the last ones were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from delegraph import DelegraphError, Interpreter
from delegraph.testing import one_op_model, tensor
from delegraph_jax import kernel
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Addresses at which XLA has written each result."""
    found: list[int] = []
    load = kernel.loaded

    def recorded(*given: Any) -> Any:
        run = load(*given)

        def noted(*arguments: Any) -> Any:
            results = run(*arguments)
            found.append(results[0].unsafe_buffer_pointer())
            return results

        return noted

    monkeypatch.setattr(kernel, "loaded", recorded)
    return found


@pytest.fixture
def interpreter() -> Interpreter:
    model = one_op_model("GATHER", [tensor((4, 3)), tensor((2,), "INT32")], [tensor((2, 3))])
    return Interpreter(model_content=model, experimental_delegates=[JaxDelegate(JaxOptions())])


def invoke(interpreter: Interpreter, *positions: int) -> np.ndarray:
    interpreter.set_tensor(0, ROWS)
    interpreter.set_tensor(1, np.array(positions, np.int32))
    interpreter.invoke()
    return np.array(interpreter.get_tensor(2))


def test_each_result_takes_the_place_of_the_last(
    places: list[int], interpreter: Interpreter
) -> None:
    interpreter.allocate_tensors()
    for first in (0, 3, 1):
        np.testing.assert_array_equal(invoke(interpreter, first, 2), ROWS[[first, 2]])
    assert len(places) == 3
    assert len(set(places)) == 1


def test_results_are_right_after_one_that_failed(interpreter: Interpreter) -> None:
    interpreter.allocate_tensors()
    invoke(interpreter, 0, 1)
    with pytest.raises(DelegraphError, match="outside"):
        invoke(interpreter, 0, 9)
    np.testing.assert_array_equal(invoke(interpreter, 2, 1), ROWS[[2, 1]])


def test_no_memory_is_handed_on_between_shapes(interpreter: Interpreter) -> None:
    interpreter.allocate_tensors()
    invoke(interpreter, 0, 1)
    interpreter.resize_tensor_input(1, [3])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(invoke(interpreter, 2, 1, 0), ROWS[[2, 1, 0]])
