"""Inputs are read where the host keeps them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from chain_model import chain
from delegraph import Interpreter
from delegraph_jax import kernel
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions


def test_input_is_not_copied_and_follows_a_resize(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[tuple[Any, Any]] = []
    share = kernel.shared

    def recorded(data: Any, device: Any) -> Any:
        shared.append((data, share(data, device)))
        return shared[-1][1]

    monkeypatch.setattr(kernel, "shared", recorded)
    with Interpreter(
        model_content=chain("SQUARE"), experimental_delegates=[JaxDelegate(JaxOptions())]
    ) as interpreter:
        for size in (3, 5):
            interpreter.resize_tensor_input(0, [size])
            interpreter.allocate_tensors()
            for value in (2, 3):  # the second one is seen without being handed over again
                interpreter.set_tensor(0, np.full(size, value, np.float32))
                interpreter.invoke()
                np.testing.assert_array_equal(interpreter.get_tensor(1), np.full(size, value**2))
    assert shared
    assert all(view.unsafe_buffer_pointer() == data.ctypes.data for data, view in shared)


def test_memory_that_cannot_be_shared_is_handed_over() -> None:
    [device] = kernel.jax.devices("cpu")[:1]
    askew = np.zeros(65, np.uint8)[1:].view(np.float32)
    assert kernel.shared(askew, device) is askew
