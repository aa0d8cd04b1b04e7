"""SignalFramer: cuts a stream of sound into frames that overlap."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.kept_array import KeptArray
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("SignalFramer")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalFramer: ``[..., n * frame_step]`` cut into ``[..., n, frame_size]``.

    A frame begins ``frame_step`` samples after the previous one. Output 1 says whether all frames
    are full. A frame that is not full, because the stream has just begun, is not written to the
    output. With ``prefill``, zeros precede the stream, so that the first frame is full.

    Source:
        tflite-micro/signal/micro/kernels/framer.cc.
    """
    x, y, is_full = tensors_of(context, node, 1, 2)
    for tensor in (x, y):
        require_type(tensor, {TensorType.INT16})
    require_type(is_full, {TensorType.BOOL})
    size, step = signal_option(node, "frame_size", 1), signal_option(node, "frame_step", 1)
    if not x.shape or not x.shape[-1] or x.shape[-1] % step:
        raise OperatorError(f"{x!r} is no whole number of steps of {step} samples")
    is_prefilled = bool(signal_option(node, "prefill", 0, 1))
    if is_prefilled and size < step:
        raise OperatorError(f"option 'frame_size' is {size}, less than 'frame_step', {step}")
    outer, count = x.shape[:-1], x.shape[-1] // step
    context.resize_tensor(y, (*outer, count, size))
    context.resize_tensor(is_full, ())
    missing = 0 if is_prefilled else -(-size // step) - 1
    span = size if is_prefilled else (missing + 1) * step
    stream = KeptArray(context, node, (*outer, span), np.int16, "stream")
    steps = KeptArray(context, node, (), np.int64, "steps")

    def run() -> None:
        window, heard = stream.data, steps.data
        is_full.data[...] = heard >= missing
        for i in range(count):
            window[..., : span - step] = window[..., step:].copy()
            window[..., span - step :] = x.data[..., i * step : (i + 1) * step]
            if heard >= missing:
                y.data[..., i, :] = window[..., :size]
            heard += 1

    return run
