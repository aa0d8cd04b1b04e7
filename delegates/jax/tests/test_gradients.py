"""Derivatives of partitions, beside finite differences."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from chain_model import chain
from delegraph import Interpreter
from delegraph.errors import ArgumentError
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.gradients import gradients
from delegraph_jax.options import JaxOptions
from delegraph_jax.traced import TracedPartition


def _partition(model: bytes) -> tuple[Interpreter, TracedPartition]:
    delegate = JaxDelegate(JaxOptions())
    interpreter = Interpreter(model_content=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    [partition] = delegate.partitions
    return interpreter, partition


def test_slope_is_that_of_finite_differences() -> None:
    interpreter, partition = _partition(chain("TANH", "SQUARE"))
    x = np.array([0.5, -1.0, 2.0], np.float32)

    [slope] = gradients(partition, [x])

    expected = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-6)
    interpreter.close()


def test_weights_choose_elements() -> None:
    interpreter, partition = _partition(chain("SQUARE"))

    [slope] = gradients(partition, [np.ones(3, np.float32)], [[0, 1, 0]])

    np.testing.assert_array_equal(slope, [0, 2, 0])
    interpreter.close()


def test_other_numbers_of_arrays_are_refused() -> None:
    interpreter, partition = _partition(chain("SQUARE"))
    with pytest.raises(ArgumentError, match="0 inputs, expected 1"):
        gradients(partition, [])
    with pytest.raises(ArgumentError, match="2 weights, expected 1"):
        gradients(partition, [np.ones(3, np.float32)], [1, 1])
    interpreter.close()


def test_closed_interpreter_has_no_partitions() -> None:
    delegate = JaxDelegate(JaxOptions())
    with Interpreter(model_content=chain("SQUARE"), experimental_delegates=[delegate]) as opened:
        opened.allocate_tensors()
        assert len(delegate.partitions) == 1
    assert delegate.partitions == []
