"""Quantized ADD, SUB, MUL and DIV in the fixed-point arithmetic of the official kernels.

Each operator is a function from stored integers to stored integers. For 8-bit operands, results
come from a table of this function. For int16 operands, the function is called at each invoke,
except for sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    power_of_two,
    quantize_multiplier,
    require_multiplier,
    rounding_divide_by_any_pot,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    unlimited_multiplier,
)
from delegraph.arithmetic.int16_sum import ScaledSum, int16_sum
from delegraph.arithmetic.lookup_table import BinaryFunction, Integers, binary_lookup
from delegraph.arithmetic.vector_loop import inner_loop, run_vector_loop, wrap_int16
from delegraph.errors import OperatorError
from delegraph.operators.checks import option, require_scales, require_zero_points
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rescale = Callable[[Integers, int, int, int], Integers]
"""Function that scales an operand to the common scale; see :func:`rescale`."""

Narrow = Callable[[Integers], Integers]
"""Function that converts numbers to integers with fewer bits."""

_BLOCK = 1 << 13  # int16 elements handled at a time, so that their int64 products stay in cache


def sub(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that sets *y* to the quantized difference *a* - *b*.

    Source:
        SubElementwise and Sub16, tflite/kernels/internal/reference/sub.h.
    """
    function = power_of_two_sum(node, a, b, y, -1)
    if function is not None:
        return run_int16(a, b, y, function)
    return run_sum(context, a, b, y, scaled_sum(node, a, b, y, -1, rescale))


def scaled_sum(
    node: Node, a: Tensor, b: Tensor, y: Tensor, sign: int, rescaled: Rescale
) -> ScaledSum:
    """Return the parameters of ``y = a + sign * b`` in fixed point: scales, shift and limits.

    Args:
        node: the node, for its fused activation.
        a: first operand.
        b: second operand.
        y: output.
        sign: 1, or -1 for a difference.
        rescaled: function that scales stored integers of both operands to one scale.

    Raises:
        OperatorError: a scale is missing, the fused activation cannot be quantized, or the scales
            are too far apart.
    """
    require_scales(a, b, y)
    left_shift = 15 if a.type is TensorType.INT16 else 20
    low, high = quantized_activation_range(_activation(node), y)
    twice = 2 * max(a.scale, b.scale)

    def scale(x: Tensor) -> Callable[[Integers], Integers]:
        zero_point, scaling = x.zero_point, quantize_multiplier(x.scale / twice)
        return lambda q: rescaled(q - zero_point, left_shift, *scaling)

    real = twice / ((1 << left_shift) * y.scale)
    require_multiplier(real, (a, b), y)
    multiplier, shift = quantize_multiplier(real)
    return ScaledSum(scale(a), scale(b), sign, multiplier, shift, y.zero_point, low, high)


def _unchanged(x: Integers) -> Integers:
    return x


def sum_function(total: ScaledSum, narrow: Narrow = _unchanged) -> BinaryFunction:
    """Return the function of stored integers that *total* describes.

    Args:
        total: parameters of the sum.
        narrow: function that converts numbers to the integers that the official kernel's loop uses.
    """

    def function(qa: Integers, qb: Integers) -> Integers:
        raw = total.scale_a(qa) + total.sign * total.scale_b(qb)
        result = multiply_by_quantized_multiplier(raw, total.multiplier, total.shift)
        shifted = narrow(narrow(result.astype(np.int64)) + total.zero_point)
        return shifted.clip(total.low, total.high)

    return function


def run_sum(context: OpContext, a: Tensor, b: Tensor, y: Tensor, total: ScaledSum) -> Eval:
    """Return the evaluation that sets *y* to the sum or difference of *a* and *b*, broadcast.

    *total* has the parameters of the sum.
    """
    if a.type is TensorType.INT16 and total.shift <= 0:
        return int16_sum(context, a, b, y, total)
    return run_integers(context, a, b, y, sum_function(total))


def rescale(q: Integers, left_shift: int, multiplier: int, shift: int) -> Integers:
    """Return ``(q << left_shift)`` times a multiplier below 1, rounded twice.

    The multiplier below 1 has the mantissa *multiplier* and the shift *shift*.
    """
    return multiply_by_quantized_multiplier(q << left_shift, multiplier, shift).astype(np.int64)


def power_of_two_sum(
    node: Node, a: Tensor, b: Tensor, y: Tensor, sign: int
) -> BinaryFunction | None:
    """Return the function ``y = a + sign * b`` for int16 with power-of-two scales.

    Older LSTM cells use ADD and SUB of this kind.

    Returns:
        The function; None if the node does not request power-of-two scales, or the scales are no
        powers of two.

    Raises:
        OperatorError: a zero point is not 0, or the input scales do not fit the output's.
    """
    if a.type is not TensorType.INT16 or not option(node, "pot_scale_int16", False):
        return None
    exponents = power_of_two(a.scale), power_of_two(b.scale), power_of_two(y.scale)
    if exponents[0] is None or exponents[1] is None or exponents[2] is None:
        return None
    require_zero_points(a, b, y)
    a_shift, b_shift = exponents[2] - exponents[0], exponents[2] - exponents[1]
    if min(a_shift, b_shift) != 0:
        raise OperatorError(
            f"scales are {a.scale} and {b.scale} into {y.scale}, expected the larger input scale "
            "to equal the output's"
        )
    low, high = quantized_activation_range(_activation(node), y)

    def function(qa: Integers, qb: Integers) -> Integers:
        total: Integers = rounding_divide_by_pot(qa, a_shift)
        total = total + sign * rounding_divide_by_pot(qb, b_shift)
        return total.clip(max(low, -32768), min(high, 32767))

    return function


def mul(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that sets *y* to the quantized product of *a* and *b*.

    Raises:
        OperatorError: an int16 tensor has a zero point.

    Source:
        MulElementwise and MulSimpleBroadcast, tflite/kernels/internal/optimized/{optimized_ops,
        integer_ops/mul}.h. The vector loops use int16, which changes products far beyond the
        output's range.
    """
    scalar = product_function(node, a, b, y)
    fits_int16 = a.type is TensorType.INT16 or 255 * 255 * _product_scale(a, b, y) < 32000
    if fits_int16 or context.numerics != "builtin":
        return run_integers(context, a, b, y, scalar)
    loop = inner_loop(a.shape, b.shape)
    is_uint8 = a.type is TensorType.UINT8
    truncates = is_uint8 and loop is not None and loop.repeats_scalar
    vector = product_function(node, a, b, y, wrap_int16 if truncates else _saturate_int16)
    return run_vector_loop(context, (a, b, y), (vector, scalar), loop, 8 if is_uint8 else 16)


def product_function(
    node: Node, a: Tensor, b: Tensor, y: Tensor, narrow: Narrow = _unchanged
) -> BinaryFunction:
    """Return the function that computes the product of stored integers.

    Args:
        node: the node, for its fused activation.
        a: first operand.
        b: second operand.
        y: output.
        narrow: function that converts products to the integers that the official kernel's loop
            uses.

    Raises:
        OperatorError: an int16 tensor has a zero point, or a scale is missing.
    """
    if a.type is TensorType.INT16:
        require_zero_points(a, b, y)
    require_scales(a, b, y)
    low, high = quantized_activation_range(_activation(node), y)
    multiplier, shift = unlimited_multiplier(float(_product_scale(a, b, y)))
    a_zero, b_zero, y_zero = a.zero_point, b.zero_point, y.zero_point
    wrap_or_not = _unchanged if narrow is _unchanged else wrap_int16
    if shift > 31 and narrow is not _unchanged:
        multiplier, shift = 0, 0  # a vector loop shifts all bits out

    def function(qa: Integers, qb: Integers) -> Integers:
        product = (qa - a_zero) * (qb - b_zero)
        result = multiply_by_quantized_multiplier(product, multiplier, shift).astype(np.int64)
        return wrap_or_not(narrow(result) + y_zero).clip(low, high)

    return function


def _product_scale(a: Tensor, b: Tensor, y: Tensor) -> np.float32:
    """Return ``a.scale * b.scale / y.scale``, computed in float32."""
    with np.errstate(all="ignore"):
        return np.float32(a.scale) * np.float32(b.scale) / np.float32(y.scale)


def _saturate_int16(x: Integers) -> Integers:
    return x.clip(-32768, 32767)


def mul_int16_to_8_bit(node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    """Return the evaluation of MUL of *a* and *b*, both Q0.15, to 8-bit *y* (old LSTM cells).

    Source:
        Mul(int16_t, int16_t, int8_t), tflite/kernels/internal/reference/integer_ops/mul.h.
    """
    low, high = quantized_activation_range(_activation(node), y)
    zero_point = y.zero_point

    def function(qa: Integers, qb: Integers) -> Integers:
        product = np.minimum((qa * qb + (1 << 14)) >> 15, 32767)  # Q0.15
        result = np.minimum(high - zero_point, rounding_divide_by_pot(product, 8))
        return zero_point + np.maximum(low - zero_point, result)

    return run_int16(a, b, y, function)


def div(context: OpContext, node: Node, a: Tensor, b: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that sets *y* to the quantized quotient *a* / *b*.

    A divisor of zero is an error when the evaluation runs.

    Source:
        DivElementwise, tflite/kernels/internal/reference/div.h.
    """
    require_scales(a, b, y)
    low, high = quantized_activation_range(_activation(node), y)
    from delegraph.arithmetic import gemmlowp  # lazy import: few models divide integers

    with np.errstate(all="ignore"):  # the multiplier is computed in float32
        real = np.float32(a.scale) / (np.float32(b.scale) * np.float32(y.scale))
    multiplier, shift = unlimited_multiplier(float(real))
    a_zero, b_zero, y_zero = a.zero_point, b.zero_point, y.zero_point

    def function(qa: Integers, qb: Integers) -> Integers:
        divisor = qb - b_zero
        dividend = np.where(divisor < 0, -(qa - a_zero), qa - a_zero)
        inverse, inverse_shift = gemmlowp.reciprocal(np.maximum(np.abs(divisor), 1))
        headroom = _leading_sign_bits(dividend)
        quotient = saturating_rounding_doubling_high_mul(dividend << headroom, inverse)
        scaled = saturating_rounding_doubling_high_mul(quotient, multiplier).astype(np.int64)
        result = rounding_divide_by_any_pot(scaled, headroom + inverse_shift - shift)
        return (result + y_zero).clip(low, high)

    run = run_integers(context, a, b, y, function)

    def check_and_run() -> None:
        if (b.data == b_zero).any():
            raise OperatorError(
                f"division by zero: tensor {b.name!r} holds its zero point {b_zero}"
            )
        run()

    return check_and_run


def _leading_sign_bits(x: Integers) -> Integers:
    """Return the number of bits by which int32 values can be shifted left without overflow."""
    return 31 - _bit_length(np.where(x < 0, ~x, x))


def _bit_length(x: Integers) -> Integers:
    """Return the bit lengths of *x*, integers from 0 to below 2**52; the bit length of 0 is 0."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def run_integers(
    context: OpContext, a: Tensor, b: Tensor, y: Tensor, function: BinaryFunction
) -> Eval:
    """Return the evaluation that sets *y* to *function* of *a* and *b*, broadcast."""
    if a.dtype.itemsize == 1:
        return binary_lookup(context, a, b, y, function)
    return run_int16(a, b, y, function)


def run_int16(a: Tensor, b: Tensor, y: Tensor, function: BinaryFunction) -> Eval:
    """Return the evaluation that sets *y* to *function* of *a* and *b*, block by block."""
    same_shape = a.shape == b.shape == y.shape
    if not same_shape or math.prod(y.shape) <= _BLOCK:

        def run() -> None:
            y.data[...] = function(_wide(a.data), _wide(b.data))

        return run

    def run_blocks() -> None:
        qa, qb, out = a.data.reshape(-1), b.data.reshape(-1), y.data.reshape(-1)
        for start in range(0, out.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = function(_wide(qa[block]), _wide(qb[block]))

    return run_blocks


def _wide(q: NDArray[Any]) -> Integers:
    """Return *q* as an int64 array with at least one dimension.

    NumPy would turn arrays without dimensions into scalars.
    """
    return np.atleast_1d(q.astype(np.int64))


def _activation(node: Node) -> int:
    return int(option(node, "fused_activation_function", 0))
