"""Kernels of COMPLEX_ABS, REAL and IMAG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_PARTS = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "COMPLEX_ABS": np.abs,
    "REAL": lambda x, y: np.copyto(y, x.real),
    "IMAG": lambda x, y: np.copyto(y, x.imag),
}
"""Function of each operator. Source: tflite/kernels/complex_support.cc."""


def complex_parts(context: OpContext, node: Node, function: Callable[..., Any]) -> Eval:
    """Return the evaluation that stores *function* of complex numbers as floats of half the size.

    Raises:
        OperatorError: the input is not complex, or the output has another type.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, _PARTS)
    if y.type is not _PARTS[x.type]:
        raise OperatorError(f"output has type {y.type.name}, expected {_PARTS[x.type].name}")
    context.resize_tensor(y, x.shape)

    def run() -> None:
        function(x.data, y.data)

    return run


def _register(name: str, function: Callable[..., Any]) -> None:
    @kernel(name)
    def prepare(context: OpContext, node: Node) -> Eval:
        """Prepare an operator that computes a real number from each complex one."""
        return complex_parts(context, node, function)


for _name, _function in _FUNCTIONS.items():
    _register(_name, _function)
