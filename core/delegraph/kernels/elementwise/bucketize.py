"""Kernel of BUCKETIZE: the index of the interval in which each element lies."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, option, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_TYPES = {TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64}


@kernel("BUCKETIZE")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare BUCKETIZE: for each element the number of boundaries at or below it, int32.

    Source:
        tflite/kernels/bucketize.cc.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, _TYPES)
    given = option(node, "boundaries", None)
    boundaries = np.zeros(0, np.float32) if given is None else np.asarray(given, np.float32)
    if (np.diff(boundaries) < 0).any():
        raise OperatorError(f"boundaries are {boundaries.tolist()}, expected them sorted")
    adopt_type(y, TensorType.INT32)
    context.resize_tensor(y, x.shape)
    # C++ converts integers to floats to compare them, which rounds large integers.
    dtype = np.float64 if x.type == TensorType.FLOAT64 else np.float32
    limits = boundaries.astype(dtype)

    def run() -> None:
        y.data[...] = np.searchsorted(limits, x.data.astype(dtype, copy=False), side="right")

    return run
