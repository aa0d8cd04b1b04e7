"""Custom operator Roll: rotates elements along axes; the last elements move to the front."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import check_rank, integers, normalized_axis
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_same_type, require_type, tensor_types, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import element_count
from delegraph.schema.enums import TensorType

_TYPES = tensor_types("BOOL FLOAT32 INT8 INT16 INT32 INT64 STRING UINT8")


@kernel("Roll")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare Roll: input 0, rotated by input 1 along the axes in input 2.

    Shifts along one axis add up.

    Source:
        tflite/kernels/roll.cc.
    """
    x, shift, axis, y = tensors_of(context, node, 3)
    require_type(x, _TYPES)
    require_same_type(x, y)
    for tensor in (shift, axis):
        require_type(tensor, {TensorType.INT32, TensorType.INT64})
        check_rank(tensor, (0, 1), tensor.name)
    if element_count(shift.shape) != element_count(axis.shape):
        raise OperatorError(f"{list(shift.shape)} shifts along {list(axis.shape)} axes")
    context.resize_tensor(y, x.shape)

    def run() -> None:
        axes = [normalized_axis(a, len(x.shape)) for a in integers(axis)]
        y.data[...] = np.roll(x.data, integers(shift), axes)

    return run
