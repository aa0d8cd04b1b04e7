"""Table, a custom operator: integers looked up in a table."""

from __future__ import annotations

import numpy as np

from delegraph.operators.checks import (
    require_same_type,
    require_shape,
    require_type,
    require_zero_points,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("Table")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare Table: input 0 looked up in input 1.

    A table for int8 has an entry for each value. A table for int16 has 513 entries, between which
    values are interpolated.

    Source:
        tflite/kernels/table.cc; LUTLookup, tflite/kernels/internal/common.h.
    """
    x, table, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.INT8, TensorType.INT16})
    for tensor in (table, y):
        require_same_type(tensor, x)
    is_int8 = x.type is TensorType.INT8
    if not is_int8:
        require_zero_points(x, y)
    require_shape(table, (256,) if is_int8 else (513,))
    context.resize_tensor(y, x.shape)

    def run() -> None:
        np.take(table.data, x.data.astype(np.intp) + 128, out=y.data)

    def run_interpolated() -> None:
        entry, rest = (x.data >> 7).astype(np.intp) + 256, x.data & 127
        base = table.data[entry].astype(np.int32)
        slope = table.data[entry + 1] - base
        y.data[...] = base + (slope * rest + 64 >> 7)

    return run if is_int8 else run_interpolated
