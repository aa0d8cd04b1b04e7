"""SignalOverlapAdd: joins frames that overlap into a stream of sound."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option, type_option
from delegraph.operators.checks import require_type, tensors_of
from delegraph.operators.kept_array import KeptArray
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_LIMITS = np.iinfo(np.int16)


@kernel("SignalOverlapAdd")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalOverlapAdd: frames ``[..., n, samples]`` to ``[..., n * frame_step]``.

    16-bit sums saturate at each addition of a frame.

    Source:
        tflite-micro/signal/micro/kernels/overlap_add.cc, src/overlap_add.cc.
    """
    x, y = tensors_of(context, node, 1)
    type_ = type_option(node, (TensorType.INT16, TensorType.FLOAT32))
    for tensor in (x, y):
        require_type(tensor, {type_})
    if len(x.shape) < 2:
        raise OperatorError(f"{x!r} has {len(x.shape)} dimensions, expected frames of samples")
    *outer, count, samples = x.shape
    step = signal_option(node, "frame_step", 1, samples)
    context.resize_tensor(y, (*outer, count * step))
    is_fixed = type_ == TensorType.INT16
    tail = KeptArray(context, node, (*outer, samples), x.dtype)

    def run() -> None:
        kept = tail.data
        for i in range(count):
            frame = x.data[..., i, :]
            if is_fixed:
                kept[...] = np.clip(frame.astype(np.int32) + kept, _LIMITS.min, _LIMITS.max)
            else:
                kept += frame
            y.data[..., i * step : (i + 1) * step] = kept[..., :step]
            kept[..., : samples - step] = kept[..., step:].copy()
            kept[..., samples - step :] = 0

    return run
