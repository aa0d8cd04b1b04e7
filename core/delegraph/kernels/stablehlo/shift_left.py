"""Kernel of STABLEHLO_SHIFT_LEFT."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

Integers = NDArray[np.int32]

_LANES = 8
_LEAST_SIZES = {TensorType.INT8: 8, TensorType.INT16: 16, TensorType.INT32: 12}
"""Number of elements from which on the official kernel runs its vector loop, by type."""


@kernel("STABLEHLO_SHIFT_LEFT")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare STABLEHLO_SHIFT_LEFT: 8- to 32-bit signed integers, shifted to the left.

    Shapes may differ; shift amounts are used in order, and surplus amounts are ignored. Shifts
    below 0 or above 31, which C++ does not define, give the results of the official kernel.

    Source:
        tflite/kernels/stablehlo_shift_left.cc, as compiled for x86.
    """
    a, b, y = tensors_of(context, node, 2)
    require_type(a, _LEAST_SIZES)
    require_same_type(a, b)
    size = math.prod(a.shape)
    if math.prod(b.shape) < size:
        raise OperatorError(f"{list(b.shape)} amounts for {list(a.shape)} elements")
    adopt_type(y, a.type)
    context.resize_tensor(y, a.shape)
    vector_end = size - size % _LANES if size >= _LEAST_SIZES[a.type] else 0

    def run() -> None:
        values = a.data.reshape(-1).astype(np.int32)
        amounts = b.data.reshape(-1)[:size].astype(np.int32)
        result = y.data.reshape(-1)
        factors = _powers_of_two(amounts[:vector_end])
        _put(values[:vector_end] * factors, result[:vector_end])
        _put(values[vector_end:] << (amounts[vector_end:] & 31), result[vector_end:])

    return run


def _put(values: Integers, result: NDArray[Any]) -> None:
    np.copyto(result, values, casting="unsafe")


def _powers_of_two(exponents: Integers) -> Integers:
    """Return 2 to the power of each exponent, computed as in the official kernel's vector loop.

    The loop writes exponents into the bits of floats and converts the floats to int32. Results that
    do not fit become the smallest int32.

    >>> _powers_of_two(np.array([0, 4, 40, -1], np.int32)).tolist()
    [1, 16, -2147483648, 0]
    """
    floats = ((exponents << 23) + np.int32(127 << 23)).view(np.float32)
    is_inside = np.abs(floats) < np.float32(1 << 31)
    return np.where(is_inside, floats, np.iinfo(np.int32).min).astype(np.int32)
