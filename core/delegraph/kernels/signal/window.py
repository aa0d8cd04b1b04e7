"""SignalWindow: multiplies frames of sound by a window function."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import element_count
from delegraph.schema.enums import TensorType

_LIMITS = np.iinfo(np.int16)


@kernel("SignalWindow")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalWindow: frames, multiplied by weights and shifted by ``shift`` bits.

    Source:
        tflite-micro/signal/micro/kernels/window.cc, src/window.cc.
    """
    x, weights, y = tensors_of(context, node, 2)
    for tensor in (x, weights, y):
        require_type(tensor, {TensorType.INT16})
    require_rank(weights, 1)
    shift, size = signal_option(node, "shift", 0, 31), weights.shape[0]
    if not x.shape or not size or element_count(x.shape) % size:
        raise OperatorError(f"{x!r} is no whole number of windows of {size} samples")
    context.resize_tensor(y, x.shape)
    wide = context.scratch((element_count(x.shape) // size, size), np.int32)

    def run() -> None:
        np.multiply(x.data.reshape(-1, size), weights.data, out=wide.data, dtype=np.int32)
        np.right_shift(wide.data, shift, out=wide.data)
        np.clip(wide.data, _LIMITS.min, _LIMITS.max, out=wide.data)
        y.data[...] = wide.data.reshape(y.data.shape)

    return run
