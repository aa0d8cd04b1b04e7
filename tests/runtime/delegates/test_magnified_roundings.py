"""Results beyond the tolerance of a shadowed delegate: wrong kernels, and magnified roundings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import FailurePolicy, Interpreter
from support.quantizing_chain import MODEL, Change, Changing, X, last_bit
from support.running import result_of


def shadowed(change: Change) -> tuple[Interpreter, Changing, list[Any]]:
    """Return an interpreter after three invokes, its delegate, and the outputs."""
    delegate = Changing(change)
    interpreter = Interpreter(
        model_content=MODEL, delegates=[delegate], failures=FailurePolicy("shadow", shadow_share=1)
    )
    interpreter.allocate_tensors()
    return interpreter, delegate, [result_of(interpreter, X) for _ in range(3)]


def wrong_product(op: str, y: NDArray[Any], nodes: int) -> NDArray[Any]:
    return last_bit(op, y, nodes) + np.float32(op == "MUL")


def wrong_together(op: str, y: NDArray[Any], nodes: int) -> NDArray[Any]:
    return y + np.float32(op == "MUL" and nodes > 1)


def test_a_delegate_whose_last_bit_was_magnified_stays() -> None:
    interpreter, delegate, results = shadowed(last_bit)
    (incident,) = interpreter.incidents
    assert incident.error == (
        "roundings were magnified by node 1 (QUANTIZE); each node is right on equal inputs"
    )
    assert (incident.is_quarantined, incident.count) == (False, 3)
    assert delegate.runs > 3
    np.testing.assert_array_equal(results, np.full((3, 4), 250, np.float32))  # the kernels'


@pytest.mark.parametrize("change", [wrong_product, wrong_together])
def test_a_delegate_that_is_wrong_besides_is_quarantined(change: Change) -> None:
    interpreter, _, results = shadowed(change)
    (incident,) = interpreter.incidents
    assert (incident.is_quarantined, incident.count) == (True, 1)
    assert "instead of 250" in incident.error
    np.testing.assert_array_equal(results, np.full((3, 4), 250, np.float32))
