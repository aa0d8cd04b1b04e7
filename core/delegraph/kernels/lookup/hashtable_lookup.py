"""HASHTABLE_LOOKUP: values by integer key."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import require_counts, require_rank, require_same_type, require_type
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.schema.enums import TensorType


@kernel("HASHTABLE_LOOKUP")
def prepare(context: OpContext, node: Node) -> Eval:
    """Return the values of keys, and which keys there are; absent ones give zeros or b"".

    Keys must be sorted.

    Source:
        tflite/kernels/hashtable_lookup.cc.
    """
    require_counts(node, 3, 2)
    lookup, keys, values = (input_tensor(context, node, i) for i in range(3))
    y, hits = output_tensor(context, node, 0), output_tensor(context, node, 1)
    for tensor in (lookup, keys):
        require_rank(tensor, 1)
        require_type(tensor, {TensorType.INT32})
    if not values.shape or values.shape[0] != keys.shape[0]:
        raise OperatorError(f"{keys.shape[0]} keys for values of shape {list(values.shape)}")
    if values.type == TensorType.STRING:
        require_rank(values, 1)
    require_same_type(values, y)
    require_type(hits, {TensorType.UINT8})
    context.resize_tensor(y, (*lookup.shape, *values.shape[1:]))
    context.resize_tensor(hits, lookup.shape)
    absent = b"" if values.type == TensorType.STRING else 0

    def run() -> None:
        if not keys.shape[0]:
            raise OperatorError("the table is empty")
        at = np.searchsorted(keys.data, lookup.data).clip(max=keys.shape[0] - 1)
        found = keys.data[at] == lookup.data
        y.data[...] = values.data[at]
        y.data[~found] = absent
        hits.data[...] = found

    return run
