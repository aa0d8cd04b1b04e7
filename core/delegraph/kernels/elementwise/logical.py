"""Kernels of LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from delegraph.kernels.elementwise.binary import binary_operands, run_binary
from delegraph.kernels.elementwise.unary import run_ufunc, unary_operands
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("LOGICAL_AND")
def prepare_logical_and(context: OpContext, node: Node) -> Eval:
    """Prepare LOGICAL_AND: ``y = a and b`` on bool, broadcast.

    Source: tflite/kernels/logical.cc.
    """
    return _prepare(context, node, np.logical_and)


@kernel("LOGICAL_OR")
def prepare_logical_or(context: OpContext, node: Node) -> Eval:
    """Prepare LOGICAL_OR: ``y = a or b`` on bool, broadcast.

    Source: tflite/kernels/logical.cc.
    """
    return _prepare(context, node, np.logical_or)


@kernel("LOGICAL_NOT")
def prepare_logical_not(context: OpContext, node: Node) -> Eval:
    """Prepare LOGICAL_NOT: the opposite of each bool. Source: tflite/kernels/elementwise.cc."""
    return run_ufunc(np.logical_not, *unary_operands(context, node, {TensorType.BOOL}))


def _prepare(context: OpContext, node: Node, operation: Callable[..., Any]) -> Eval:
    return run_binary(operation, *binary_operands(context, node, {TensorType.BOOL}))
