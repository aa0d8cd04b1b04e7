"""Kernel of ADD_N: the sum of two or more tensors."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_counts, require_same_type, require_type
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.schema.enums import TensorType


@kernel("ADD_N")
def prepare_add_n(context: OpContext, node: Node) -> Eval:
    """Prepare ADD_N: the sum of tensors of one shape, float32 or int32.

    Source:
        tflite/kernels/add_n.cc.
    """
    require_counts(node, None)
    if len(node.inputs) < 2:
        raise OperatorError(f"node has {len(node.inputs)} inputs, expected two or more")
    first, *others = (input_tensor(context, node, i) for i in range(len(node.inputs)))
    y = output_tensor(context, node)
    require_type(first, {TensorType.FLOAT32, TensorType.INT32})
    adopt_type(y, first.type)
    for x in others:
        require_same_type(first, x)
        if x.shape != first.shape:
            raise OperatorError(f"inputs have shapes {first.shape} and {x.shape}, expected one")
    context.resize_tensor(y, first.shape)

    def run() -> None:
        out = y.data
        np.add(first.data, others[0].data, out)
        for x in others[1:]:
            np.add(out, x.data, out)

    return run
