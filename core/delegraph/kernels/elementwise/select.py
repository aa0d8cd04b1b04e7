"""Kernels of SELECT and SELECT_V2."""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_shape
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import OBJECT_TYPES
from delegraph.operators.checks import adopt_type, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType


@kernel("SELECT")
def prepare_select(context: OpContext, node: Node) -> Eval:
    """Prepare SELECT: elements of *a* where the condition is true, else of *b*.

    The condition has the shape of *a* and *b*, or is a scalar, or a vector along their first axis.

    Source:
        tflite/kernels/select.cc.
    """
    condition, a, b, y = _operands(context, node)
    if _is_single(condition, a, b, y):
        return _run(context, condition, a, b, y, y.shape, ())
    if a.shape != b.shape:
        raise OperatorError(f"inputs have shapes {a.shape} and {b.shape}, expected the same")
    if condition.shape not in (a.shape, (), a.shape[:1]):
        raise OperatorError(
            f"condition has shape {condition.shape}, expected {a.shape}, {a.shape[:1]} or ()"
        )
    trailing = (1,) * (len(a.shape) - len(condition.shape))
    return _run(context, condition, a, b, y, a.shape, condition.shape + trailing)


@kernel("SELECT_V2")
def prepare_select_v2(context: OpContext, node: Node) -> Eval:
    """Prepare SELECT_V2: SELECT in which all three inputs are broadcast.

    Source:
        tflite/kernels/select.cc.
    """
    condition, a, b, y = _operands(context, node)
    if _is_single(condition, a, b, y):
        return _run(context, condition, a, b, y, y.shape, ())
    shape = broadcast_shape(condition.shape, broadcast_shape(a.shape, b.shape))
    return _run(context, condition, a, b, y, shape, condition.shape)


def _operands(context: OpContext, node: Node) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    condition, a, b, y = tensors_of(context, node, 3)
    require_type(condition, {TensorType.BOOL})
    require_same_type(a, b)
    adopt_type(y, a.type)
    if a.type in OBJECT_TYPES or a.is_packed:
        raise OperatorError(f"values have type {a.type.name}, expected BOOL or whole-byte numbers")
    return condition, a, b, y


def _is_single(*tensors: Tensor) -> bool:
    """Whether each of *tensors* has exactly one element.

    The operands of SELECT_V2 then need no broadcasting, and the output keeps its declared shape.
    """
    return all(math.prod(tensor.shape) == 1 for tensor in tensors)


def _run(
    context: OpContext,
    condition: Tensor,
    a: Tensor,
    b: Tensor,
    y: Tensor,
    shape: tuple[int, ...],
    mask_shape: tuple[int, ...],
) -> Eval:
    context.resize_tensor(y, shape)
    shapes = ((), ()) if math.prod(shape) == 1 else (a.shape, b.shape)

    def run() -> None:
        out = y.data
        np.copyto(out, b.data.reshape(shapes[1]))
        np.copyto(out, a.data.reshape(shapes[0]), where=condition.data.reshape(mask_shape))

    return run
