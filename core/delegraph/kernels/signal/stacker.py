"""SignalStacker: joins each frame with the frames before and after it."""

from __future__ import annotations

import numpy as np

from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_shape, require_type, tensors_of
from delegraph.operators.kept_array import KeptArray
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("SignalStacker")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalStacker: frames ``[num_channels]``, stacked with their neighbours.

    The result has a frame, ``stacker_left_context`` frames before it, and ``stacker_right_context``
    frames after it. Copies of the first frame replace frames before the first. There is a result
    every ``stacker_step`` invokes, when output 1 is true; otherwise output 0 is not written.

    Source:
        tflite-micro/signal/micro/kernels/stacker.cc.
    """
    x, y, is_full = tensors_of(context, node, 1, 2)
    for tensor in (x, y):
        require_type(tensor, {TensorType.INT16})
    require_type(is_full, {TensorType.BOOL})
    channels = signal_option(node, "num_channels", 1)
    require_shape(x, (channels,))
    left = signal_option(node, "stacker_left_context")
    frames = left + 1 + signal_option(node, "stacker_right_context")
    step = signal_option(node, "stacker_step", 1, frames)
    context.resize_tensor(y, (frames * channels,))
    context.resize_tensor(is_full, ())
    stack = KeptArray(context, node, (frames, channels), np.int16, "stack")
    # Frames in the stack, and whether any frame has arrived.
    heard = KeptArray(context, node, (), np.int64, "heard")
    begun = KeptArray(context, node, (), np.bool_, "begun")

    def run() -> None:
        kept, count = stack.data, heard.data
        if begun.data:
            kept[:-1] = kept[1:].copy()
            kept[-1] = x.data
            count += 1
        else:
            kept[...] = x.data
            count += left + 1
            begun.data[...] = True
        is_full.data[...] = count >= frames
        if count >= frames:
            y.data[...] = kept.reshape(-1)
            count -= step

    return run
