"""SignalEnergy: the energy of each frequency of a spectrum."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("SignalEnergy")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalEnergy: powers ``[n], uint32`` of complex numbers ``[2 n], int16``.

    Real and imaginary parts alternate.

    Only powers from ``start_index`` to before ``end_index`` are computed. All other powers are 0;
    TFLM does not write them.

    Source:
        tflite-micro/signal/micro/kernels/energy.cc, src/energy.cc.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, {TensorType.INT16})
    require_type(y, {TensorType.UINT32})
    require_rank(x, 1)
    if x.shape[0] % 2:
        raise OperatorError(f"{x!r} is no spectrum: real and imaginary parts come in pairs")
    n = x.shape[0] // 2
    end = signal_option(node, "end_index", 0, n)
    start = signal_option(node, "start_index", 0, n)
    context.resize_tensor(y, (n,))

    def run() -> None:
        parts = x.data.reshape(n, 2)[start:end].astype(np.int32)
        y.data[...] = 0
        squares = parts * parts
        y.data[start:end] = (squares[:, 0] + squares[:, 1]).view(np.uint32)

    return run
