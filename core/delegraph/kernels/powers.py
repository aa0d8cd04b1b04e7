"""POW, SQUARED_DIFFERENCE and ATAN2."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_operands
from delegraph.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from delegraph.arithmetic.lookup_table import BinaryFunction, Integers, binary_lookup
from delegraph.arithmetic.quantized_arithmetic import rescale
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    require_counts,
    require_same_type,
    require_scales,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_FLOATS = {TensorType.FLOAT32, TensorType.FLOAT64, TensorType.FLOAT16, TensorType.BFLOAT16}


@kernel("POW")
def prepare_pow(context: OpContext, node: Node) -> Eval:
    """Return the eval of POW, broadcast, on float32 and int32; int32 refuses negative exponents.

    Source:
        tflite/kernels/pow.cc.
    """
    a, b, y = broadcast_operands(context, node)
    require_type(a, {TensorType.FLOAT32, TensorType.INT32})

    def run() -> None:
        np.power(a.data, b.data, y.data)

    def run_integers() -> None:
        if b.data.size and b.data.min() < 0:
            raise OperatorError(f"exponents {b.name!r} hold negative values, expected none")
        powers = np.power(a.data, b.data, dtype=np.float64)  # as std::pow computes them
        np.copyto(y.data, powers, casting="unsafe")

    return run if a.type is TensorType.FLOAT32 else run_integers


@kernel("ATAN2")
def prepare_atan2(context: OpContext, node: Node) -> Eval:
    """Return the eval of ATAN2, the angle of (b, a), on floats of one shape.

    Source:
        tflite/kernels/atan2.cc, which checks the rank alone and reads beyond the smaller operand.
    """
    require_counts(node, 2)
    a, b = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    require_type(a, _FLOATS)
    require_same_type(a, b)
    require_same_type(a, y)
    require_shape(b, a.shape)
    context.resize_tensor(y, a.shape)

    def run() -> None:
        # Rounded once from float64, as the C library's float function is.
        np.arctan2(a.data, b.data, y.data, dtype=np.float64, casting="unsafe")

    def run_wide() -> None:
        y.data[...] = np.arctan2(a.data.astype(np.float32), b.data.astype(np.float32))

    return run_wide if a.dtype.itemsize == 2 else run


@kernel("SQUARED_DIFFERENCE", versions=(1, 2))
def prepare_squared_difference(context: OpContext, node: Node) -> Eval:
    """Return the eval of SQUARED_DIFFERENCE: (a - b)**2, broadcast, on float32, int32 and int8.

    Source:
        tflite/kernels/squared_difference.cc.
    """
    a, b, y = broadcast_operands(context, node)
    require_type(a, {TensorType.FLOAT32, TensorType.INT32, TensorType.INT8})
    if a.type is TensorType.INT8:
        return binary_lookup(context, a, b, y, _quantized_squared_difference(a, b, y))

    def run() -> None:
        out = y.data
        np.subtract(a.data, b.data, out)
        np.multiply(out, out, out)

    return run


def _quantized_squared_difference(a: Tensor, b: Tensor, y: Tensor) -> BinaryFunction:
    require_scales(a, b, y)
    left_shift = 7
    twice = 2 * max(a.scale, b.scale)
    a_scaling = quantize_multiplier(a.scale / twice)
    b_scaling = quantize_multiplier(b.scale / twice)
    multiplier, shift = quantize_multiplier(twice * twice / ((1 << left_shift * 2) * y.scale))
    a_zero, b_zero, y_zero = a.zero_point, b.zero_point, y.zero_point

    def function(qa: Integers, qb: Integers) -> Integers:
        difference = rescale(qa - a_zero, left_shift, *a_scaling)
        difference = difference - rescale(qb - b_zero, left_shift, *b_scaling)
        square = multiply_by_quantized_multiplier(difference * difference, multiplier, shift)
        return np.asarray((square.astype(np.int64) + y_zero).clip(-128, 127))

    return function
