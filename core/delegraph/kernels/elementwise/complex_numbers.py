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


@kernel("COMPLEX_ABS")
def prepare_complex_abs(context: OpContext, node: Node) -> Eval:
    """Prepare COMPLEX_ABS: the magnitudes of complex64 as float32, of complex128 as float64.

    Source:
        tflite/kernels/complex_support.cc.
    """
    return _prepare(context, node, np.abs)


@kernel("REAL")
def prepare_real(context: OpContext, node: Node) -> Eval:
    """Prepare REAL: the real parts of complex numbers.

    Source: tflite/kernels/complex_support.cc.
    """
    return _prepare(context, node, lambda x, y: np.copyto(y, x.real))


@kernel("IMAG")
def prepare_imag(context: OpContext, node: Node) -> Eval:
    """Prepare IMAG: the imaginary parts of complex numbers.

    Source: tflite/kernels/complex_support.cc.
    """
    return _prepare(context, node, lambda x, y: np.copyto(y, x.imag))


def _prepare(context: OpContext, node: Node, function: Callable[..., Any]) -> Eval:
    x, y = tensors_of(context, node, 1)
    require_type(x, _PARTS)
    if y.type is not _PARTS[x.type]:
        raise OperatorError(f"output has type {y.type.name}, expected {_PARTS[x.type].name}")
    context.resize_tensor(y, x.shape)

    def run() -> None:
        function(x.data, y.data)

    return run
