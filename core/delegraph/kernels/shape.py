"""SHAPE and RANK: a tensor's dimensions as values, known while preparing."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import fold_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import WIDE_INDEX, adopt_type, tensors_of, type_option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("SHAPE")
def prepare_shape(context: OpContext, node: Node) -> Eval:
    """Prepare SHAPE: dimensions as int32 or int64, computed while preparing.

    Source:
        tflite/kernels/shape.cc.
    """
    x, y = tensors_of(context, node, 1)
    type_ = type_option(node, "out_type", y.type)
    if type_ not in WIDE_INDEX:
        raise OperatorError(f"option out_type is {type_.name}, expected INT32 or INT64")
    y.adopt_type(type_)
    return fold_output(
        context, y, lambda: ((len(x.shape),), lambda: np.copyto(y.data, np.array(x.shape, y.dtype)))
    )


@kernel("RANK")
def prepare_rank(context: OpContext, node: Node) -> Eval:
    """Prepare RANK: the number of dimensions, int32.

    The number is computed already in prepare.

    Source:
        tflite/kernels/rank.cc.
    """
    x, y = tensors_of(context, node, 1)
    adopt_type(y, TensorType.INT32)
    return fold_output(context, y, lambda: ((), lambda: y.data.fill(len(x.shape))))
