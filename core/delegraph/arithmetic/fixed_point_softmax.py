"""8-bit SOFTMAX and LOG_SOFTMAX in fixed point, rounded as in the official reference kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic import gemmlowp
from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from delegraph.errors import OperatorError
from delegraph.operators.registration import Eval
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INPUT_BITS = 5  # integer bits of differences: exp(-32) is negligible
_SUM_BITS = 12  # integer bits of sums of exponentials
_LOG_BITS = 4  # integer bits of logarithms in the output


def softmax(x: Tensor, y: Tensor, beta: float) -> Eval:
    """Return the evaluation that stores 8-bit SOFTMAX of ``beta * x`` in *y*.

    The quantization of *y* is not used.

    Source:
        Softmax, tflite/kernels/internal/reference/softmax.h.
    """
    _, exps_of = _tables(*_input_scaling(x.scale, beta))
    limits = np.iinfo(y.dtype)

    def run() -> None:
        exps = exps_of[_distances(x)]
        inverse, exponent = gemmlowp.reciprocal(_sums(exps))
        right = (exponent + _SUM_BITS - limits.bits).astype(np.int32)
        rounded = rounding_divide_by_pot(gemmlowp.high_mul(exps, inverse), right)
        y.data[...] = (rounded.astype(np.int64) + limits.min).clip(limits.min, limits.max)

    return run


def log_softmax(x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that stores 8-bit LOG_SOFTMAX of *x* in *y*.

    Source:
        LogSoftmax, tflite/kernels/internal/reference/{log_softmax,integer_ops/log_softmax}.h.
    """
    multiplier, shift = _input_scaling(x.scale, 1.0)
    inverse = quantize_multiplier((1 << (31 - shift)) / multiplier)
    scaled_of, exps_of = _tables(multiplier, shift)
    radius, limits = _radius(shift), np.iinfo(y.dtype)

    def run() -> None:
        distances = _distances(x)
        log = gemmlowp.log(_sums(exps_of[distances]), _SUM_BITS, _INPUT_BITS)
        lowest = multiply_by_quantized_multiplier(log.astype(np.int64) - (1 << 31), *inverse)
        is_kept = -distances > np.maximum(lowest, -radius - 1)
        rounded = rounding_divide_by_pot(scaled_of[distances] - log, 31 - _INPUT_BITS - _LOG_BITS)
        quantized = (rounded.astype(np.int64) + limits.max).clip(limits.min, limits.max)
        y.data[...] = np.where(is_kept, quantized, limits.min)

    return run


def _input_scaling(scale: float, beta: float) -> tuple[int, int]:
    """Return the mantissa and left shift that convert differences of stored integers to Q5.26.

    *scale* is the input's scale, and *beta* the node's factor.

    Raises:
        OperatorError: the multiplier is not above 1; the official kernel would end the process.

    Source:
        PreprocessSoftmaxScaling, tflite/kernels/internal/quantization_util.cc.
    """
    real = float(np.float32(beta)) * scale * (1 << (31 - _INPUT_BITS))
    if not real > 1:
        raise OperatorError(f"input scale {scale:.6g} times beta {beta:.6g} is not above 2**-26")
    return quantize_multiplier(min(real, float((1 << 31) - 1)))


def _radius(shift: int) -> int:
    """Return the largest difference of stored integers that fits into Q5.26 after *shift*.

    Source: CalculateInputRadius, ibid.
    """
    return math.floor(((1 << _INPUT_BITS) - 1) * 2.0 ** (31 - _INPUT_BITS - shift))


def _tables(multiplier: int, shift: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return tables, by distance to a row's maximum, of scaled negative distance and exponential.

    *multiplier* is the mantissa and *shift* the left shift of the factor that converts stored
    differences to Q5.26.

    Returns:
        Q5.26 and Q0.31, ``[256], int32`` each; exponentials of distances that do not fit Q5.26 are
        0.
    """
    distances = np.arange(256)
    scaled = multiply_by_quantized_multiplier(-distances, multiplier, shift)
    fits = distances <= _radius(shift)
    exps = gemmlowp.exp_on_negative_values(np.where(fits, scaled, np.int32(-1)), _INPUT_BITS)
    return scaled, np.where(fits, exps, np.int32(0))


def _distances(x: Tensor) -> NDArray[np.int16]:
    """Return the distance of each value of *x* to the largest value of its row: 0 to 255."""
    values = x.data.astype(np.int16)
    return np.asarray(values.max(-1, keepdims=True, initial=-128) - values)


def _sums(exps: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the sum of each row of *exps*, Q0.31, in Q12.19: ``[..., 1], int32``."""
    rounded = rounding_divide_by_pot(exps, _SUM_BITS)
    return np.asarray(rounded.sum(-1, np.int32, keepdims=True))
