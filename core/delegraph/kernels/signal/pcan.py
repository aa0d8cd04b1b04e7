"""SignalPCAN: multiplies by a gain that depends on each band's noise, then compresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_rank, require_shape, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE_SIZE = 4 * 32 - 3
"""Size of the gain table: three coefficients and a gap for each bit length of a number."""

_SNR_BITS = 12
_OUTPUT_BITS = 6


@kernel("SignalPCAN")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalPCAN: bands normalised by their noise.

    Inputs 0 and 1 are the bands and the estimates of their noise, ``[n], uint32``. Input 2 is the
    table from which the gain for a noise is interpolated, ``[125], int16``. A band times its gain
    is shifted to the right by ``snr_shift``.

    Source:
        tflite-micro/signal/micro/kernels/pcan.cc, src/pcan_argc_fixed.cc.
    """
    x, noise, table, y = tensors_of(context, node, 3)
    for tensor in (x, noise, y):
        require_type(tensor, {TensorType.UINT32})
    require_type(table, {TensorType.INT16})
    for tensor in (x, table):
        require_rank(tensor, 1)
    require_shape(noise, x.shape)
    if table.shape[0] < TABLE_SIZE:
        raise OperatorError(f"{table!r} is too short, expected at least {TABLE_SIZE} numbers")
    shift = np.uint64(signal_option(node, "snr_shift", 0, 63))
    context.resize_tensor(y, x.shape)

    def run() -> None:
        gain = _gain(noise.data, table.data).astype(np.uint32)
        ratio = (x.data.astype(np.uint64) * gain >> shift).astype(np.uint32)
        y.data[...] = _shrunk(ratio)

    return run


def _gain(x: NDArray[np.uint32], table: NDArray[np.int16]) -> NDArray[np.int16]:
    """Return the gain for *x* from *table*, ``[125]``: a parabola between two powers of two.

    Source:
        WideDynamicFunction, tflite-micro/signal/src/pcan_argc_fixed.cc.
    """
    wide = x.astype(np.int64)
    length = np.frexp(x.astype(np.float64))[1].astype(np.int64)
    start = np.where(x <= 2, 0, 4 * length - 6)
    fraction = ((wide << 11) >> length & 0x3FF).astype(np.int32)
    constant, linear, square = (table[start + i].astype(np.int32) for i in range(3))
    curve = ((square * fraction >> 5) + (linear << 5)) * fraction
    curve = ((curve + (1 << 14)) >> 15) + constant
    return np.asarray(np.where(x <= 2, table[np.minimum(x, 2)], curve.astype(np.int16)))


def _shrunk(x: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return x^2 / 4 for x below 2, and x - 1 above; 12 fraction bits become 6.

    Source:
        PcanShrink, tflite-micro/signal/src/pcan_argc_fixed.cc.
    """
    low = x * x >> np.uint32(2 + 2 * _SNR_BITS - _OUTPUT_BITS)
    high = (x >> np.uint32(_SNR_BITS - _OUTPUT_BITS)) - np.uint32(1 << _OUTPUT_BITS)
    return np.asarray(np.where(x < 2 << _SNR_BITS, low, high))
