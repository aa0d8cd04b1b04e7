"""Factors that scale the accumulators of convolutions and matrix products to the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic.accumulator_scaling import (
    Scaling,
    fixed_point_scaling,
    int64_scaling,
    real_scaling,
)
from delegraph.arithmetic.fixed_point import require_multiplier
from delegraph.errors import OperatorError
from delegraph.graph.model import Quantization
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.operators.numerics import Numerics


def affine_quantization(tensor: Tensor, role: str) -> Quantization:
    """Return the quantization of *tensor*, which must have at least one scale.

    *role* names the tensor in the error.

    Raises:
        OperatorError: the tensor has no scale.
    """
    if tensor.quantization is None or len(tensor.quantization.scales) == 0:
        raise OperatorError(f"{role} has no scale, expected a quantized tensor")
    return tensor.quantization


def check_symmetric(weight: Tensor) -> None:
    """Check that every zero point of *weight* is 0.

    Raises:
        OperatorError: a zero point is not 0.
    """
    zero_points = affine_quantization(weight, "the filter").zero_points
    if np.any(zero_points != 0):
        raise OperatorError(
            f"filter zero points are {zero_points.tolist()}, expected 0 with {weight.type.name}"
        )


def per_channel_multipliers(
    x: Tensor, weight: Tensor, y: Tensor, channels: int
) -> NDArray[np.float64]:
    """Return ``x.scale * weight.scale / y.scale`` of each output channel: ``[channels], float64``.

    Raises:
        OperatorError: a scale is missing, uint8 weights have several scales, or the number of
            scales is not *channels*.

    Source:
        PopulateConvolutionQuantizationParams, tflite/kernels/kernel_util.cc.
    """
    affine_quantization(x, "the input")
    quantization = affine_quantization(weight, "the filter")
    scales = quantization.scales.astype(np.float64)
    if len(scales) > 1:
        _check_channels(x, weight, quantization, channels)
    with np.errstate(divide="ignore", invalid="ignore"):
        real = np.float64(np.float32(x.scale)) * scales / np.float64(np.float32(y.scale))
    return real if len(real) == channels else np.full(channels, real)


def per_tensor_multiplier(x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor) -> float:
    """Return ``x.scale * weight.scale / y.scale``, with the first product computed in float32.

    Raises:
        OperatorError: the bias scale is too far from ``x.scale * weight.scale``.

    Source:
        GetQuantizedConvolutionMultipler, tflite/kernels/kernel_util.cc.
    """
    affine_quantization(x, "the input")
    affine_quantization(weight, "the filter")
    y_scale = np.float64(y.scale)  # dividing by a scale of 0 gives infinity
    if bias is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = abs(x.scale * weight.scale - bias.scale) / y_scale
        if not gap <= 0.02:
            raise OperatorError(
                f"bias scale is {bias.scale}, expected input scale * filter scale "
                f"= {x.scale * weight.scale}"
            )
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(np.float32(x.scale) * np.float32(weight.scale)) / y_scale)


def _check_channels(x: Tensor, weight: Tensor, quantization: Quantization, channels: int) -> None:
    count, axis = len(quantization.scales), quantization.quantized_dimension
    if x.type not in (TensorType.INT8, TensorType.INT16):
        raise OperatorError(f"per-channel scales with {x.type.name} input, expected INT8 or INT16")
    if weight.type not in (TensorType.INT8, TensorType.INT4, TensorType.INT2, TensorType.INT16):
        raise OperatorError(f"per-channel scales with a {weight.type.name} filter, expected INT8")
    if axis >= len(weight.shape) or not count == channels == weight.shape[axis]:
        raise OperatorError(
            f"filter has {count} scales along dimension {axis} of {list(weight.shape)}, "
            f"expected one or {channels}"
        )


def scaling_of(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    y: Tensor,
    channels: int,
    numerics: Numerics,
    halves_away: NDArray[np.bool_] | bool,
    *,
    sums_int64: bool = False,
) -> Scaling:
    """Return the factors and the rounding that convert a convolution's accumulators to outputs.

    Args:
        x: input.
        weight: filters, with one scale or a scale for each output channel.
        bias: bias; None if absent.
        y: output.
        channels: number of output channels.
        numerics: official kernels whose rounding is reproduced; all reference kernels round halves
            away from zero.
        halves_away: channels in which builtin kernels also round halves away from zero; see
            :func:`fixed_point_scaling`.
        sums_int64: whether accumulators have 64 bits.

    Raises:
        OperatorError: scales are missing, too many or too large, or the bias scale is wrong.
    """
    multipliers = per_channel_multipliers(x, weight, y, channels)
    if x.type == TensorType.UINT8:
        multipliers[:] = per_tensor_multiplier(x, weight, bias, y)
    _require_shifts(multipliers, x, weight, y)
    if sums_int64:
        return int64_scaling(multipliers)
    return fixed_point_scaling(multipliers, numerics != "builtin" or halves_away)


def fully_connected_scaling(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    y: Tensor,
    quantized_bias_type: TensorType,
    numerics: Numerics,
) -> Scaling:
    """Return the factors and the rounding that convert a product's accumulators to outputs.

    Args:
        x: input.
        weight: ``[O, K]``.
        bias: bias; None if absent.
        y: output.
        quantized_bias_type: field of this name in the node's options.
        numerics: official kernels whose rounding is reproduced.

    Raises:
        OperatorError: scales are missing, too many or too large, the bias scale is wrong, or an
            int16 tensor has a zero point.
    """
    multipliers = per_channel_multipliers(x, weight, y, weight.shape[0])
    real = multipliers.copy()
    if len(affine_quantization(weight, "the weights").scales) == 1:
        multipliers[:] = per_tensor_multiplier(x, weight, bias, y)
    is_reference = numerics == "reference" and weight.sparsity is None
    if is_reference and x.type != TensorType.INT16:
        return real_scaling(real)
    _require_shifts(multipliers, x, weight, y)
    if x.type != TensorType.INT16:
        halves_away = numerics == "micro" or weight.sparsity is not None
        return fixed_point_scaling(multipliers, halves_away)
    if x.zero_point or y.zero_point:
        raise OperatorError(f"zero points {x.zero_point}, {y.zero_point}, expected 0 with INT16")
    if weight.type == TensorType.INT16:
        return int64_scaling(multipliers)
    has_wide_bias = bias is not None and bias.type == TensorType.INT64
    is_wide = quantized_bias_type == TensorType.INT64
    if has_wide_bias or is_wide or weight.zero_point or is_reference:
        return real_scaling(real)
    return fixed_point_scaling(multipliers, halves_away=False)


def _require_shifts(multipliers: NDArray[np.float64], x: Tensor, weight: Tensor, y: Tensor) -> None:
    finite = multipliers[np.isfinite(multipliers)]
    require_multiplier(float(finite.max(initial=0)), (x, weight), y)


def is_in_scalar_tail(channels: int) -> NDArray[np.bool_]:
    """Return a mask, ``[channels], bool``, of the channels after the last full group of 8.

    Builtin kernels compute eight channels at once in vector code, which rounds halves up. They
    compute the remaining channels one by one, and round halves away from zero.
    """
    return np.arange(channels) >= channels - channels % 8
