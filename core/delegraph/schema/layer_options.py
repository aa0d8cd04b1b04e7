"""Options of layers: convolution, pooling, recurrent, normalising and dense operators.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.schema.enums import (
    ActivationFunctionType,
    CombinerType,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    Padding,
    TensorType,
)
from delegraph.schema.table import INT32, UINT8, Table, array, boolean, enum, float32, int32, vector

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


class ConcatEmbeddingsOptions(Table):
    """Options of ``CONCAT_EMBEDDINGS``."""

    num_channels: int = int32(0, default=0)
    num_columns_per_channel: tuple[int, ...] = vector(1, INT32, default=())
    embedding_dim_per_channel: tuple[int, ...] = vector(2, INT32, default=())


class LSHProjectionOptions(Table):
    """Options of ``LSH_PROJECTION``."""

    type: LSHProjectionType = enum(0, default=LSHProjectionType.UNKNOWN)


class Pool2DOptions(Table):
    """Options of ``AVERAGE_POOL_2D``, ``MAX_POOL_2D``, ``L2_POOL_2D``."""

    padding: Padding = enum(0, default=Padding.SAME)
    stride_w: int = int32(1, default=0)
    stride_h: int = int32(2, default=0)
    filter_width: int = int32(3, default=0)
    filter_height: int = int32(4, default=0)
    fused_activation_function: ActivationFunctionType = enum(5, default=ActivationFunctionType.NONE)


class SVDFOptions(Table):
    """Options of ``SVDF``."""

    rank: int = int32(0, default=0)
    fused_activation_function: ActivationFunctionType = enum(1, default=ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean(2, default=False)


class RNNOptions(Table):
    """Options of ``RNN``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean(1, default=False)


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


class LSTMOptions(Table):
    """Options of ``LSTM``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    cell_clip: float = float32(1, default=0.0)
    proj_clip: float = float32(2, default=0.0)
    kernel_type: LSTMKernelType = enum(3, default=LSTMKernelType.FULL)
    asymmetric_quantize_inputs: bool = boolean(4, default=False)


class ResizeBilinearOptions(Table):
    """Options of ``RESIZE_BILINEAR``."""

    align_corners: bool = boolean(2, default=False)
    half_pixel_centers: bool = boolean(3, default=False)


class SkipGramOptions(Table):
    """Options of ``SKIP_GRAM``."""

    ngram_size: int = int32(0, default=0)
    max_skip_size: int = int32(1, default=0)
    include_all_ngrams: bool = boolean(2, default=False)


class EmbeddingLookupSparseOptions(Table):
    """Options of ``EMBEDDING_LOOKUP_SPARSE``."""

    combiner: CombinerType = enum(0, default=CombinerType.SUM)


class SequenceRNNOptions(Table):
    """Options of ``UNIDIRECTIONAL_SEQUENCE_RNN``."""

    time_major: bool = boolean(0, default=False)
    fused_activation_function: ActivationFunctionType = enum(1, default=ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean(2, default=False)


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


class BidirectionalSequenceLSTMOptions(Table):
    """Options of ``BIDIRECTIONAL_SEQUENCE_LSTM``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    cell_clip: float = float32(1, default=0.0)
    proj_clip: float = float32(2, default=0.0)
    merge_outputs: bool = boolean(3, default=False)
    time_major: bool = boolean(4, default=True)
    asymmetric_quantize_inputs: bool = boolean(5, default=False)


class BidirectionalSequenceRNNOptions(Table):
    """Options of ``BIDIRECTIONAL_SEQUENCE_RNN``."""

    time_major: bool = boolean(0, default=False)
    fused_activation_function: ActivationFunctionType = enum(1, default=ActivationFunctionType.NONE)
    merge_outputs: bool = boolean(2, default=False)
    asymmetric_quantize_inputs: bool = boolean(3, default=False)


class UnidirectionalSequenceLSTMOptions(Table):
    """Options of ``UNIDIRECTIONAL_SEQUENCE_LSTM``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    cell_clip: float = float32(1, default=0.0)
    proj_clip: float = float32(2, default=0.0)
    time_major: bool = boolean(3, default=False)
    asymmetric_quantize_inputs: bool = boolean(4, default=False)
    diagonal_recurrent_tensors: bool = boolean(5, default=False)


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
