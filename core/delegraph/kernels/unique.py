"""Kernel of UNIQUE: distinct values."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import check_type
from delegraph.errors import OperatorError
from delegraph.operators.checks import require_type, tensor_types, tensors_of, type_option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_TYPES = tensor_types("FLOAT32 UINT8 INT8 INT16 INT32 INT64")


@kernel("UNIQUE")
def prepare_unique(context: OpContext, node: Node) -> Eval:
    """Prepare UNIQUE: distinct values, and the index of each element's value.

    Types are float32, uint8, int8, int16, int32 and int64.

    Source:
        tflite/kernels/unique.cc.
    """
    x, values, places = tensors_of(context, node, 1, 2)
    require_type(x, _TYPES)
    check_type(values, x)
    wanted = type_option(node, "idx_out_type", TensorType.INT32)
    require_type(places, {wanted if wanted is TensorType.INT64 else TensorType.INT32})
    if len(x.shape) != 1:
        raise OperatorError(f"input has shape {list(x.shape)}, expected rank 1")
    context.set_dynamic(values)
    context.resize_tensor(places, x.shape)

    def find() -> None:
        distinct, first, inverse = np.unique(x.data, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        context.resize_tensor(values, distinct.shape)
        values.data[...] = distinct[order]
        places.data[...] = rank[inverse.reshape(-1)]

    return find
