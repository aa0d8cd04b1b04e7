"""Kernels of RELU and its variants, LEAKY_RELU, ELU, HARD_SWISH, LOGISTIC and TANH."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic import sigmoid_int16
from delegraph.arithmetic.activation import clip
from delegraph.arithmetic.fixed_point import (
    INT32_MIN,
    multiply_by_quantized_multiplier,
    power_of_two,
    quantize_multiplier,
    rounding_divide_by_pot,
    unlimited_multiplier,
)
from delegraph.arithmetic.lookup_table import (
    Integers,
    UnaryFunction,
    in_double,
    lookup,
    unary_lookup,
)
from delegraph.errors import OperatorError
from delegraph.kernels.elementwise.unary import run_transform, run_ufunc, unary_operands
from delegraph.operators.checks import option, require_scales, require_zero_points
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOAT_AND_8_BIT = {TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8}
_FLOAT_AND_QUANTIZED = _FLOAT_AND_8_BIT | {TensorType.INT16}
_QUANTIZED = {TensorType.UINT8, TensorType.INT8, TensorType.INT16}
_HALVES = {TensorType.FLOAT16, TensorType.BFLOAT16}
_FLOAT_AND_INT8 = {TensorType.FLOAT32, TensorType.INT8}

_ZERO, _ONE, _THREE, _SIX = (np.array(value, np.float32) for value in (0, 1, 3, 6))
_SIXTH = np.array(1 / 6, np.float32)


@kernel("RELU")
def prepare_relu(context: OpContext, node: Node) -> Eval:
    """Prepare RELU: max(x, 0), on float32, uint8, int8 and int16.

    Source:
        ReluEval, tflite/kernels/activations.cc.
    """
    return _relu(context, node, 0.0, np.inf, _FLOAT_AND_QUANTIZED)


@kernel("RELU6")
def prepare_relu6(context: OpContext, node: Node) -> Eval:
    """Prepare RELU6: x clamped to [0, 6], on float32, uint8, int8 and int16.

    TFLM's kernel clamps the stored integers of the input, and stores them in the output without
    rescaling.

    Source:
        Relu6Quantized, tflite-micro/micro/kernels/activations_common.cc.
    """
    x, y = unary_operands(context, node, _FLOAT_AND_QUANTIZED)
    if context.numerics == "micro" and x.type in (TensorType.INT8, TensorType.INT16):
        limits = np.iinfo(x.dtype)
        low, high = (min(_quantize(value, x), limits.max) for value in (0.0, 6.0))
        return unary_lookup(x, y, lambda q: q.clip(low, high))
    return _relu(context, node, 0.0, 6.0, _FLOAT_AND_QUANTIZED)


@kernel("RELU_N1_TO_1")
def prepare_relu_n1_to_1(context: OpContext, node: Node) -> Eval:
    """Prepare RELU_N1_TO_1: x clamped to [-1, 1], on float32, uint8 and int8."""
    return _relu(context, node, -1.0, 1.0, _FLOAT_AND_8_BIT)


@kernel("RELU_0_TO_1")
def prepare_relu_0_to_1(context: OpContext, node: Node) -> Eval:
    """Prepare RELU_0_TO_1: x clamped to [0, 1], on float32, uint8 and int8."""
    return _relu(context, node, 0.0, 1.0, _FLOAT_AND_8_BIT)


def _relu(
    context: OpContext, node: Node, low: float, high: float, allowed: Collection[TensorType]
) -> Eval:
    x, y = unary_operands(context, node, allowed)
    if x.type is not TensorType.FLOAT32:
        if x.type is TensorType.INT16:
            require_zero_points(x, y)
        return unary_lookup(x, y, _quantized_relu(x, y, low, high))
    lower, upper = np.array(low, np.float32), np.array(high, np.float32)

    def run_above() -> None:
        np.maximum(lower, x.data, out=y.data)  # of equal numbers, the second is kept: -0.0

    def run_between() -> None:
        clip(x.data, lower, upper, y.data)

    return run_above if high == np.inf else run_between


def _quantized_relu(x: Tensor, y: Tensor, low: float, high: float) -> UnaryFunction:
    """Return a function that requantises stored integers and clamps them to *low* and *high*.

    The bounds are real numbers; *high* may be infinite.

    Source:
        QuantizedReluX, tflite/kernels/activations.cc.
    """
    multiplier, shift = unlimited_multiplier(_float32_ratio(x, y))
    limits = np.iinfo(y.dtype)
    lower = max(limits.min, _quantize(low, y))
    upper = limits.max if high == np.inf else min(limits.max, _quantize(high, y))

    def function(q: Integers) -> Integers:
        result = multiply_by_quantized_multiplier(q - x.zero_point, multiplier, shift)
        return np.clip(result.astype(np.int64) + y.zero_point, lower, upper)

    return function


def _quantize(value: float, y: Tensor) -> int:
    """Return *y*'s stored integer nearest to *value*.

    As on x86, a quotient beyond int32 becomes the smallest int32, and the sum with the zero point
    wraps.
    """
    with np.errstate(over="ignore"):  # with a tiny scale it becomes infinite
        quantized = np.round(np.float32(value) / np.float32(y.scale) + np.copysign(1e-9, value))
    ratio = int(quantized) if abs(quantized) < -INT32_MIN else INT32_MIN
    return (ratio + y.zero_point - INT32_MIN) % (1 << 32) + INT32_MIN


@kernel("LEAKY_RELU")
def prepare_leaky_relu(context: OpContext, node: Node) -> Eval:
    """Prepare LEAKY_RELU: x, or alpha * x if x is below 0.

    Types are float32, uint8, int8 and int16.

    Source:
        LeakyReluEval, tflite/kernels/activations.cc.
    """
    x, y = unary_operands(context, node, _FLOAT_AND_QUANTIZED)
    alpha = np.array(option(node, "alpha", 0.0), np.float32)
    if x.type is not TensorType.FLOAT32:
        if x.type is TensorType.INT16:
            require_zero_points(x, y)
        return unary_lookup(x, y, _quantized_leaky_relu(x, y, alpha))
    larger = np.maximum if alpha <= 1 else np.minimum  # of x and alpha * x

    def run() -> None:
        out = y.data
        np.multiply(x.data, alpha, out)
        larger(x.data, out, out=out)

    def run_choosing() -> None:
        out = y.data
        np.multiply(x.data, alpha, out)
        np.copyto(out, x.data, where=x.data > 0)

    return run if np.isfinite(alpha) and alpha else run_choosing  # 0 * inf is NaN


def _quantized_leaky_relu(x: Tensor, y: Tensor, alpha: NDArray[np.float32]) -> UnaryFunction:
    """Return the function from stored integers of *x* to those of *y* for LEAKY_RELU.

    *alpha* is the slope below 0.

    Source:
        QuantizeLeakyRelu, tflite/kernels/internal/reference/leaky_relu.h.
    """
    identity = unlimited_multiplier(_float32_ratio(x, y))
    slope = np.float32(x.scale) * alpha / np.float32(y.scale)
    sloped = unlimited_multiplier(float(abs(slope)))
    limits = np.iinfo(y.dtype)

    def function(q: Integers) -> Integers:
        value = q - x.zero_point
        above = multiply_by_quantized_multiplier(value, *identity).astype(np.int64)
        below = multiply_by_quantized_multiplier(value, *sloped).astype(np.int64)
        result = np.where(value >= 0, above, -below if slope < 0 else below)
        return (result + y.zero_point).clip(limits.min, limits.max)

    return function


def _float32_ratio(x: Tensor, y: Tensor) -> float:
    """Return the scale of *x* divided by the scale of *y*, rounded to float32 as in the C code."""
    require_scales(x, y)
    return float(np.float32(x.scale) / np.float32(y.scale))


@kernel("ELU")
def prepare_elu(context: OpContext, node: Node) -> Eval:
    """Prepare ELU: x, or exp(x) - 1 below 0, on float32 and int8.

    Source:
        EluEval, tflite/kernels/activations.cc.
    """
    x, y = unary_operands(context, node, _FLOAT_AND_INT8)
    if x.type is TensorType.INT8:
        return run_transform(lambda v: np.where(v < 0, in_double(np.expm1)(v), v), x, y)

    def run() -> None:
        out = y.data
        np.minimum(x.data, _ZERO, out=out)
        np.expm1(out, out)
        np.copyto(out, x.data, where=x.data >= 0)  # -0.0 stays -0.0

    return run


@kernel("HARD_SWISH")
def prepare_hard_swish(context: OpContext, node: Node) -> Eval:
    """Prepare HARD_SWISH: x * relu6(x + 3) / 6, on float32, uint8 and int8.

    Source:
        HardSwishEval, tflite/kernels/activations.cc.
    """
    x, y = unary_operands(context, node, _FLOAT_AND_8_BIT)
    if x.type is not TensorType.FLOAT32:
        return unary_lookup(x, y, _quantized_hard_swish(x, y))

    def run() -> None:
        out = y.data
        np.add(x.data, _THREE, out)
        clip(out, _ZERO, _SIX, out)
        np.multiply(out, x.data, out)
        np.multiply(out, _SIXTH, out)

    return run


def _quantized_hard_swish(x: Tensor, y: Tensor) -> UnaryFunction:
    """Return the function from stored integers of *x* to those of *y* for HARD_SWISH.

    It computes in 16-bit fixed point.

    Raises:
        OperatorError: the output's scale is too small in comparison with the input's.

    Source:
        HardSwish, tflite/kernels/internal/reference/hard_swish.h.
    """
    require_scales(x, y)
    hires = np.float32(1 / 128) * np.float32(x.scale)
    multiplier, exponent = _int16_multiplier(float(hires / np.float32(y.scale)))
    if exponent > 0:
        raise OperatorError(
            f"output scale {y.scale} is below 1/128 of input scale {x.scale}, expected more"
        )
    relu_multiplier, relu_exponent = _int16_multiplier(float(hires / np.float32(3 / 32768)))
    limits = np.iinfo(y.dtype)

    def function(q: Integers) -> Integers:
        value = (q - x.zero_point) << 7
        preshift = _high_mul(value, multiplier)
        relu = value
        if relu_exponent > 0:
            relu = _saturate(relu << (relu_exponent - 1))
        relu = _high_mul(relu, relu_multiplier)
        if relu_exponent > 0:
            relu = _saturate(relu << 1)
        elif relu_exponent < 0:
            relu = rounding_divide_by_pot(relu, -relu_exponent)
        relu = (relu + (1 << 15)) >> 1
        product = np.trunc(relu * preshift / (1 << 15)).astype(np.int64)
        result = rounding_divide_by_pot(product, -exponent) + y.zero_point
        return result.clip(limits.min, limits.max)

    return function


def _int16_multiplier(real: float) -> tuple[int, int]:
    """Return a Q15 mantissa and a left shift for *real*.

    Source: DownScaleInt32ToInt16Multiplier, common.h.
    """
    mantissa, shift = quantize_multiplier(real)
    return min((mantissa + (1 << 15)) >> 16, 32767), shift


def _high_mul(x: Integers, y: int) -> Integers:
    """Return ``x * y / 2**15`` for int16, rounded to nearest."""
    return _saturate((x * y + (1 << 14)) >> 15)


def _saturate(x: Integers) -> Integers:
    return x.clip(-32768, 32767)


@kernel("LOGISTIC")
def prepare_logistic(context: OpContext, node: Node) -> Eval:
    """Prepare LOGISTIC: 1 / (1 + exp(-x)), on floats, uint8, int8 and int16.

    Raises:
        OperatorError: the scale of an 8-bit output is not 1/256. Or int16 tensors have a zero point
            that is not 0, or an output scale that is not 1/32768.

    Source:
        SigmoidEval, tflite/kernels/activations.cc.
    """
    x, y = unary_operands(context, node, _FLOAT_AND_QUANTIZED | _HALVES)
    if x.type in _HALVES:
        return partial(_half_logistic, x, y)
    if x.type is TensorType.FLOAT32:
        return run_ufunc(_logistic, x, y)
    if x.type is TensorType.INT16:
        _check_int16(x, y)
        return lookup(x, y, sigmoid_int16.logistic_table(x.scale, context.numerics))
    if y.scale != 1 / 256:
        raise OperatorError(f"output scale is {y.scale}, expected 1/256")
    return run_transform(lambda v: _ONE / (_ONE + in_double(np.exp)(-v)), x, y)


def _logistic(x: NDArray[Any], y: NDArray[Any]) -> None:
    np.negative(x, y)
    np.exp(y, y)
    np.add(y, _ONE, y)
    np.divide(_ONE, y, y)
    if not y.all():  # exp(-x) is infinite below -88.7, where exp(x) is not yet 0
        np.exp(x, out=y, where=y == 0)


def _half_logistic(x: Tensor, y: Tensor) -> None:
    """Fill *y* with ``e / (1 + e)``, where e is ``exp(x)``; each step is rounded to 16 bits.

    Source:
        The scalar logistic function of Eigen, for its 16-bit types.
    """
    e = np.exp(x.data.astype(np.float32)).astype(y.dtype)
    wide = e.astype(np.float32)
    ratio = wide / (_ONE + wide).astype(y.dtype).astype(np.float32)
    y.data[...] = np.where(np.isinf(wide), _ONE, ratio)


@kernel("TANH")
def prepare_tanh(context: OpContext, node: Node) -> Eval:
    """Prepare TANH: the hyperbolic tangent of floats, uint8, int8 and int16.

    Raises:
        OperatorError: an int16 output's scale is not 1/32768, or a zero point is not 0.

    Source:
        TanhEval, tflite/kernels/activations.cc.
    """
    x, y = unary_operands(context, node, _FLOAT_AND_QUANTIZED | _HALVES)
    if x.type not in _QUANTIZED:
        return run_ufunc(np.tanh, x, y)
    if x.type is TensorType.INT16:
        _check_int16(x, y)
        return lookup(x, y, sigmoid_int16.tanh_table(x.scale, context.numerics))
    return run_transform(in_double(np.tanh), x, y)


def _check_int16(x: Tensor, y: Tensor) -> None:
    require_zero_points(x, y)
    if power_of_two(y.scale) != -15:
        raise OperatorError(f"output scale is {y.scale}, expected 1/32768")
