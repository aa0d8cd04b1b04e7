"""Kernel of TRANSPOSE: permutes axes."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.elements import on_elements
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import INDEX, require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape
from delegraph.schema.enums import TensorType


@kernel("TRANSPOSE")
def prepare_transpose(context: OpContext, node: Node) -> Eval:
    """Prepare TRANSPOSE: the axes in the order of input 1.

    Source:
        tflite/kernels/transpose.cc.
    """
    x, perm_input, y = tensors_of(context, node, 2)
    if x.type is TensorType.STRING:
        raise OperatorError("input is STRING, expected numbers")
    check_type(y, x)
    require_type(perm_input, INDEX)
    require_rank(perm_input, 1)

    def plan() -> tuple[Shape, Eval]:
        rank = len(x.shape)
        perm = [axis + rank if axis < 0 else axis for axis in integers(perm_input)]
        if sorted(perm) != list(range(rank)):
            raise OperatorError(f"{integers(perm_input)} is no permutation of {rank} axes")
        shape = [x.shape[axis] for axis in perm]
        return shape, on_elements(x, y, lambda a, b: np.copyto(b, a.transpose(perm)))

    return size_output(context, y, plan, shape_inputs=(perm_input,), fold=(x,), packed=True)
