"""SignalFftAutoScale: shifts samples to the left, so that they use all 16 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = -(2**15)


@kernel("SignalFftAutoScale")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalFftAutoScale: samples, shifted to the left as far as the largest allows.

    Output 1 is the number of bits.

    Source:
        tflite-micro/signal/micro/kernels/fft_auto_scale_kernel.cc, src/fft_auto_scale.cc.
    """
    x, y, bits = tensors_of(context, node, 1, 2)
    for tensor in (x, y):
        require_type(tensor, {TensorType.INT16})
        require_rank(tensor, 1)
    require_type(bits, {TensorType.INT32})
    context.resize_tensor(y, x.shape)
    context.resize_tensor(bits, ())

    def run() -> None:
        largest = largest_magnitude(x.data)
        shift = max(15 - largest.bit_length(), 0) if largest > 0 else 0
        np.left_shift(x.data, np.int16(shift), out=y.data)
        bits.data[...] = shift

    return run


def largest_magnitude(x: NDArray[np.int16]) -> int:
    """Return the largest magnitude of *x*, ``[n], int16``, with TFLM's 16-bit overflow.

    The magnitude of -32768 does not fit. So it becomes -32768, and the search starts again with the
    next element.

    Source:
        MaxAbs16, tflite-micro/signal/src/max_abs.cc.

    >>> largest_magnitude(np.int16([3, -7])), largest_magnitude(np.int16([9, -32768, -4]))
    (7, -4)
    """
    lows = np.flatnonzero(x == _LEAST)
    if not lows.size:
        return int(np.abs(x).max(initial=0))
    largest = _LEAST
    rest = x[lows[-1] + 1 :]
    for i, value in enumerate(rest.tolist()):
        largest = int(value if value > largest else max(largest, -value))
        if largest >= 0:
            return max(largest, int(np.abs(rest[i:]).max()))
    return largest
