"""SignalFilterBankSquareRoot: the square root of each band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import require_rank, require_shape, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = 2**32 - 1
_HALF_WORD = 2**16 - 1


@kernel("SignalFilterBankSquareRoot")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalFilterBankSquareRoot: square roots, uint64 to uint32, shifted right.

    Input 1 is the number of bits of the shift.

    Source:
        tflite-micro/signal/micro/kernels/filter_bank_square_root.cc,
        src/filter_bank_square_root.cc.
    """
    x, bits, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.UINT64})
    require_type(bits, {TensorType.INT32})
    require_type(y, {TensorType.UINT32})
    require_rank(x, 1)
    require_shape(bits, ())
    context.resize_tensor(y, x.shape)

    def run() -> None:
        shift = int(bits.data[()])
        if not 0 <= shift < 32:
            raise OperatorError(f"{bits!r} is {shift}, expected a number of bits from 0 to 31")
        y.data[...] = rounded_root(x.data) >> np.uint64(shift)

    return run


def rounded_root(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the rounded square roots of *x*; at most 65535 for numbers below 2^32.

    Source:
        Sqrt32 and Sqrt64, tflite-micro/signal/src/square_root_32.cc and square_root_64.cc.

    >>> rounded_root(np.uint64([6, 7, 2**32 - 1, 2**32])).tolist()
    [2, 3, 65535, 65536]
    """
    one = np.uint64(1)
    root = np.minimum(np.sqrt(x.astype(np.float64)), _WORD).astype(np.uint64)
    root -= root * root > x  # float64 is off by one at most
    beyond = root < _WORD
    root += beyond & ((root + one) * (root + one) <= x)
    most = np.where(x >> np.uint64(32) == 0, _HALF_WORD, _WORD).astype(np.uint64)
    return np.asarray(root + ((x - root * root > root) & (root != most)))
