"""Kernels of MATRIX_DIAG and MATRIX_SET_DIAG."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import check_type, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext


@kernel("MATRIX_DIAG")
def prepare_matrix_diag(context: OpContext, node: Node) -> Eval:
    """Prepare MATRIX_DIAG: square matrices, zero except for the diagonals.

    Source:
        tflite/kernels/matrix_diag.cc.
    """
    x, y = tensors_of(context, node, 1)
    adopt_type(y, x.type)
    if not x.shape:
        raise OperatorError("input is a scalar, expected at least rank 1")

    def fill() -> None:
        i = np.arange(x.shape[-1])  # not before the output is checked against the limit
        y.data.fill(0)
        y.data[..., i, i] = x.data

    return size_output(context, y, lambda: ((*x.shape, x.shape[-1]), fill))


@kernel("MATRIX_SET_DIAG")
def prepare_matrix_set_diag(context: OpContext, node: Node) -> Eval:
    """Prepare MATRIX_SET_DIAG: a copy of the input with new main diagonals.

    Source:
        tflite/kernels/matrix_set_diag.cc.
    """
    x, diagonal, y = tensors_of(context, node, 2)
    adopt_type(y, x.type)
    check_type(diagonal, x, "diagonal")
    if len(x.shape) < 2 or diagonal.shape != (*x.shape[:-2], min(x.shape[-2:])):
        raise OperatorError(f"diagonal {list(diagonal.shape)} does not fit {list(x.shape)}")
    i = np.arange(diagonal.shape[-1])

    def fill() -> None:
        np.copyto(y.data, x.data)
        y.data[..., i, i] = diagonal.data

    return size_output(context, y, lambda: (x.shape, fill))
