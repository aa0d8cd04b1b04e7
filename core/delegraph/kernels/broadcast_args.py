"""BROADCAST_ARGS."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_shape
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Shape


@kernel("BROADCAST_ARGS")
def prepare_broadcast_args(context: OpContext, node: Node) -> Eval:
    """Return the eval of BROADCAST_ARGS: the shape to which two shapes, its inputs, broadcast.

    Source:
        tflite/kernels/broadcast_args.cc.
    """
    a, b = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    check_type(b, a, "second shape")
    check_type(y, a)
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise OperatorError(f"inputs are {list(a.shape)} and {list(b.shape)}, expected vectors")

    def plan() -> tuple[Shape, Eval]:
        def join() -> None:
            np.copyto(y.data, np.array(broadcast_shape(integers(a), integers(b)), y.dtype))

        return (max(a.shape[0], b.shape[0]),), join

    return size_output(context, y, plan, fold=(a, b))
