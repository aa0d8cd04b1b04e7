"""Kernel of GELU, the Gaussian error linear unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.lookup_table import in_double
from delegraph.kernels.elementwise.unary import run_transform, unary_operands
from delegraph.operators.checks import option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_QUANTIZED = {TensorType.UINT8, TensorType.INT8, TensorType.INT16}
_TYPES = _QUANTIZED | {TensorType.FLOAT32, TensorType.FLOAT16}
_BLOCK = 1 << 13  # floats handled at a time, so that the many temporaries stay in cache

_HALF, _ONE, _TWO = (np.array(value, np.float32) for value in (0.5, 1, 2))
_MINUS_SQRT_HALF = np.array(-math.sqrt(0.5), np.float32)
_SQRT_2_OVER_PI = np.array(math.sqrt(2 / math.pi), np.float32)
_CUBIC = np.array(0.044715, np.float32)


@kernel("GELU")
def prepare_gelu(context: OpContext, node: Node) -> Eval:
    """Prepare GELU: x times the normal distribution function; exact or by tanh.

    Types are float32, float16, uint8, int8 and int16. With float16, the result of each step is
    rounded to float16.

    Source:
        GeluEval, tflite/kernels/activations.cc; GeluTransform, internal/reference/gelu.h.
    """
    x, y = unary_operands(context, node, _TYPES)
    approximate = bool(option(node, "approximate", False))
    if x.type in _QUANTIZED:
        return run_transform(_by_tanh_rounded if approximate else _exact_rounded, x, y)
    if x.type is TensorType.FLOAT16:
        function = _by_tanh_in_half if approximate else _exact_in_half
    else:
        function = _by_tanh if approximate else _by_fit

    def run() -> None:
        values, out = x.data.reshape(-1), y.data.reshape(-1)
        for start in range(0, out.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = function(values[block])

    return run


def _by_tanh(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(_HALF * x * (_ONE + np.tanh(_inner(x))))


def _by_tanh_rounded(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(_HALF * x * (_ONE + in_double(np.tanh)(_inner(x))))


def _inner(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(_SQRT_2_OVER_PI * (x + _CUBIC * x * x * x))


def _exact_rounded(x: NDArray[Any]) -> NDArray[Any]:
    erfc = [math.erfc(v) for v in (x * _MINUS_SQRT_HALF).tolist()]
    return np.asarray(_HALF * x * np.array(erfc, x.dtype))


def _by_tanh_in_half(x: NDArray[Any]) -> NDArray[Any]:
    scale, cubic, half = np.float16(_SQRT_2_OVER_PI), np.float16(_CUBIC), np.float16(0.5)
    inner = scale * (x + cubic * (x * x * x))
    tanh = np.tanh(inner, dtype=np.float32).astype(np.float16)
    return np.asarray(half * x * (np.float16(1) + tanh))


def _exact_in_half(x: NDArray[Any]) -> NDArray[Any]:
    erfc = [math.erfc(v) for v in (x * np.float16(_MINUS_SQRT_HALF)).tolist()]
    return np.asarray(np.float16(0.5) * x * np.array(erfc, np.float16))


def _by_fit(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(_HALF * x * erfc(x * _MINUS_SQRT_HALF))


_ERFC = [
    np.array(coefficient, np.float32)
    for coefficient in (
        0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
        -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223,
    )
]  # fmt: skip


def erfc(x: NDArray[Any]) -> NDArray[Any]:
    """Return the complementary error function of *x* in float32; the relative error is below 2e-6.

    Source:
        Press et al., Numerical Recipes, section 6.2: a Chebyshev fit in 1 / (1 + |x| / 2).
    """
    z = np.abs(x)
    t = _ONE / (_ONE + _HALF * z)
    fit = np.full_like(t, _ERFC[0])
    for coefficient in _ERFC[1:]:
        fit *= t
        fit += coefficient
    value = t * np.exp(fit - z * z)
    return np.asarray(np.where(x >= 0, value, _TWO - value))
