"""Kernel of SEGMENT_SUM."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType


@kernel("SEGMENT_SUM")
def prepare_segment_sum(context: OpContext, node: Node) -> Eval:
    """Prepare SEGMENT_SUM: sums of the rows that have the same segment id.

    Types are float32 and int32. The ids in input 1, int32, start at 0; each id equals the previous
    id, or is larger by one.

    Source:
        tflite/kernels/segment_sum.cc.
    """
    x, ids_input, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.FLOAT32, TensorType.INT32})
    require_type(ids_input, {TensorType.INT32})
    check_type(y, x)
    if len(ids_input.shape) != 1 or not x.shape or ids_input.shape[0] != x.shape[0]:
        raise OperatorError(f"{list(ids_input.shape)} segment ids for rows of {list(x.shape)}")

    def plan() -> tuple[Shape, Eval]:
        ids = integers(ids_input)
        steps = [after - before for before, after in pairwise([-1, *ids])]
        if any(step not in (0, 1) for step in steps) or (ids and ids[0] != 0):
            raise OperatorError(f"segment ids {ids} are not ascending without gaps from 0")

        def add() -> None:
            y.data.fill(0)
            np.add.at(y.data, ids_input.data, x.data)

        return (ids[-1] + 1 if ids else 0, *x.shape[1:]), add

    return size_output(context, y, plan, shape_inputs=(ids_input,))
