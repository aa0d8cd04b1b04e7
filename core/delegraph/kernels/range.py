"""Kernel of RANGE: numbers from a start to a limit by a step."""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.output_shape import size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("RANGE")
def prepare_range(context: OpContext, node: Node) -> Eval:
    """Prepare RANGE: start, start + delta, ... before limit.

    With constant inputs, the output is computed in prepare.

    Raises:
        OperatorError: the inputs are not scalars of one type, or adding delta never leads to the
            limit.

    Source:
        tflite/kernels/range.cc.
    """
    *inputs, y = tensors_of(context, node, 3)
    require_type(inputs[0], {TensorType.FLOAT32, TensorType.INT32, TensorType.INT64})
    for tensor in inputs:
        require_same_type(inputs[0], tensor)
        if tensor.shape:
            raise OperatorError(f"tensor {tensor.name!r} has shape {tensor.shape}, expected ()")
    adopt_type(y, inputs[0].type)

    def plan() -> tuple[tuple[int, ...], Eval]:
        start, limit, delta = (tensor.data[()] for tensor in inputs)
        if not ((delta > 0 and start <= limit) or (delta < 0 and start >= limit)):
            raise OperatorError(f"range({start}, {limit}, {delta}) never ends, expected it to")
        if y.type is TensorType.FLOAT32:
            steps = abs((limit - start) / delta)
            if not math.isfinite(steps):
                raise OperatorError(f"range({start}, {limit}, {delta}) has no end")
            count = math.ceil(steps)
        else:
            count = -(-abs(int(limit) - int(start)) // abs(int(delta)))

        def run() -> None:
            y.data.fill(delta)
            y.data[:1] = start
            np.add.accumulate(y.data, out=y.data)

        return (count,), run

    return size_output(context, y, plan, shape_inputs=inputs, fold=inputs)
