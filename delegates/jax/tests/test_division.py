"""Quotients by floats so small that XLA takes them for zero."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed here")

from beside_kernels import results
from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.testing import one_op_model, tensor
from delegraph_jax.delegate import JaxDelegate
from delegraph_jax.options import JaxOptions

MODEL = one_op_model("FLOOR_DIV", [tensor((3,)), tensor((3,))], [tensor((3,))])


def test_a_denormal_divisor_is_not_zero() -> None:
    operands = np.float32([-100, 7, 9]), np.float32([1e-39, 1e-40, -2])
    expected, found = results(MODEL, operands)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_of_either_sign_is_an_error(zero: float) -> None:
    with Interpreter(model_content=MODEL, delegates=[JaxDelegate(JaxOptions())]) as interpreter:
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], np.float32([1, zero, 2]))
        with pytest.raises(NodeError, match="a divisor is zero"):
            interpreter.invoke()
