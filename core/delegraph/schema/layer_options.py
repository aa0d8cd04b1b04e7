"""Options of layers: convolution, pooling, normalising and dense operators.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.schema.enums import (
    ActivationFunctionType,
    FullyConnectedOptionsWeightsFormat,
    Padding,
    TensorType,
)
from delegraph.schema.table import UINT8, Table, array, boolean, enum, float32, int32

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Conv2DOptions(Table):
    """Options of ``CONV_2D``."""

    padding: Padding = enum(0, default=Padding.SAME)
    stride_w: int = int32(1, default=0)
    stride_h: int = int32(2, default=0)
    fused_activation_function: ActivationFunctionType = enum(3, default=ActivationFunctionType.NONE)
    dilation_w_factor: int = int32(4, default=1)
    dilation_h_factor: int = int32(5, default=1)
    quantized_bias_type: TensorType = enum(6, default=TensorType.FLOAT32)


class DepthwiseConv2DOptions(Table):
    """Options of ``DEPTHWISE_CONV_2D``."""

    padding: Padding = enum(0, default=Padding.SAME)
    stride_w: int = int32(1, default=0)
    stride_h: int = int32(2, default=0)
    depth_multiplier: int = int32(3, default=0)
    fused_activation_function: ActivationFunctionType = enum(4, default=ActivationFunctionType.NONE)
    dilation_w_factor: int = int32(5, default=1)
    dilation_h_factor: int = int32(6, default=1)


class Pool2DOptions(Table):
    """Options of ``AVERAGE_POOL_2D``, ``MAX_POOL_2D``, ``L2_POOL_2D``."""

    padding: Padding = enum(0, default=Padding.SAME)
    stride_w: int = int32(1, default=0)
    stride_h: int = int32(2, default=0)
    filter_width: int = int32(3, default=0)
    filter_height: int = int32(4, default=0)
    fused_activation_function: ActivationFunctionType = enum(5, default=ActivationFunctionType.NONE)


class FullyConnectedOptions(Table):
    """Options of ``FULLY_CONNECTED``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    weights_format: FullyConnectedOptionsWeightsFormat = enum(
        1, default=FullyConnectedOptionsWeightsFormat.DEFAULT
    )
    keep_num_dims: bool = boolean(2, default=False)
    asymmetric_quantize_inputs: bool = boolean(3, default=False)
    quantized_bias_type: TensorType = enum(4, default=TensorType.FLOAT32)
    quant_spec: NDArray[np.uint8] | None = array(5, UINT8, default=None)


class SoftmaxOptions(Table):
    """Options of ``SOFTMAX``."""

    beta: float = float32(0, default=0.0)


class L2NormOptions(Table):
    """Options of ``L2_NORMALIZATION``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)


class LocalResponseNormalizationOptions(Table):
    """Options of ``LOCAL_RESPONSE_NORMALIZATION``."""

    radius: int = int32(0, default=0)
    bias: float = float32(1, default=0.0)
    alpha: float = float32(2, default=0.0)
    beta: float = float32(3, default=0.0)


class ResizeBilinearOptions(Table):
    """Options of ``RESIZE_BILINEAR``."""

    align_corners: bool = boolean(2, default=False)
    half_pixel_centers: bool = boolean(3, default=False)


class TransposeConvOptions(Table):
    """Options of ``TRANSPOSE_CONV``."""

    padding: Padding = enum(0, default=Padding.SAME)
    stride_w: int = int32(1, default=0)
    stride_h: int = int32(2, default=0)
    fused_activation_function: ActivationFunctionType = enum(3, default=ActivationFunctionType.NONE)
    quantized_bias_type: TensorType = enum(4, default=TensorType.FLOAT32)


class FakeQuantOptions(Table):
    """Options of ``FAKE_QUANT``."""

    min: float = float32(0, default=0.0)
    max: float = float32(1, default=0.0)
    num_bits: int = int32(2, default=0)
    narrow_range: bool = boolean(3, default=False)


class ResizeNearestNeighborOptions(Table):
    """Options of ``RESIZE_NEAREST_NEIGHBOR``."""

    align_corners: bool = boolean(0, default=False)
    half_pixel_centers: bool = boolean(1, default=False)


class LeakyReluOptions(Table):
    """Options of ``LEAKY_RELU``."""

    alpha: float = float32(0, default=0.0)


class BatchMatMulOptions(Table):
    """Options of ``BATCH_MATMUL``."""

    adj_x: bool = boolean(0, default=False)
    adj_y: bool = boolean(1, default=False)
    asymmetric_quantize_inputs: bool = boolean(2, default=False)


class Conv3DOptions(Table):
    """Options of ``CONV_3D`` and ``CONV_3D_TRANSPOSE``."""

    padding: Padding = enum(0, default=Padding.SAME)
    stride_d: int = int32(1, default=0)
    stride_w: int = int32(2, default=0)
    stride_h: int = int32(3, default=0)
    fused_activation_function: ActivationFunctionType = enum(4, default=ActivationFunctionType.NONE)
    dilation_d_factor: int = int32(5, default=1)
    dilation_w_factor: int = int32(6, default=1)
    dilation_h_factor: int = int32(7, default=1)


class GeluOptions(Table):
    """Options of ``GELU``."""

    approximate: bool = boolean(0, default=False)
