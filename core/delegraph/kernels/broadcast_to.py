"""Kernels of BROADCAST_TO and BROADCAST_ARGS."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_shape
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType


@kernel("BROADCAST_TO")
def prepare_broadcast_to(context: OpContext, node: Node) -> Eval:
    """Prepare BROADCAST_TO: x repeated to a given shape; any type except strings.

    Source:
        tflite/kernels/broadcast_to.cc.
    """
    x, dims, y = tensors_of(context, node, 2)
    require_type(dims, {TensorType.INT32, TensorType.INT64})
    require_same_type(x, y)
    if x.type is TensorType.STRING or len(dims.shape) != 1:
        raise OperatorError(
            f"input is {x.type.name} and the shape has shape {dims.shape}, expected no STRING "
            "and a vector"
        )

    def plan() -> tuple[tuple[int, ...], Eval]:
        shape = tuple(integers(dims))
        if len(shape) < len(x.shape) or broadcast_shape(x.shape, shape) != shape:
            raise OperatorError(f"shape {x.shape} does not broadcast to {shape}")

        def run() -> None:
            np.copyto(y.data, x.data)

        return shape, run

    return size_output(context, y, plan, shape_inputs=(dims,))


@kernel("BROADCAST_ARGS")
def prepare_broadcast_args(context: OpContext, node: Node) -> Eval:
    """Prepare BROADCAST_ARGS: the common shape to which two shapes broadcast.

    Source:
        tflite/kernels/broadcast_args.cc. The official kernel uses the lower 32 bits of int64.
    """
    a, b, y = tensors_of(context, node, 2)
    require_type(a, (TensorType.INT32, TensorType.INT64))
    check_type(b, a, "second shape")
    check_type(y, a)
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise OperatorError(f"inputs are {list(a.shape)} and {list(b.shape)}, expected vectors")

    def plan() -> tuple[Shape, Eval]:
        def join() -> None:
            shapes = (tensor.data.astype(np.int32).tolist() for tensor in (a, b))
            np.copyto(y.data, np.array(broadcast_shape(*shapes), y.dtype))

        return (max(a.shape[0], b.shape[0]),), join

    return size_output(context, y, plan, fold=(a, b))
