"""SignalDelay: delays a sound signal by a fixed number of samples."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.kept_array import KeptArray
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("SignalDelay")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalDelay: the last axis, delayed by ``delay_length`` samples.

    The output begins with zeros.

    Source:
        tflite-micro/signal/micro/kernels/delay.cc.
    """
    x, y = tensors_of(context, node, 1)
    for tensor in (x, y):
        require_type(tensor, {TensorType.INT16})
    if not x.shape:
        raise OperatorError(f"{x!r} is a scalar, expected frames")
    delay, samples = signal_option(node, "delay_length"), x.shape[-1]
    context.resize_tensor(y, x.shape)
    line = KeptArray(context, node, (*x.shape[:-1], delay + samples), np.int16)

    def run() -> None:
        kept = line.data  # samples for the next outputs, then room for new samples
        kept[..., delay:] = x.data
        y.data[...] = kept[..., :samples]
        kept[..., :delay] = kept[..., samples:].copy()

    return run
