"""Options of recurrent operators.

Source:
    tflite/converter/schema/schema.fbs.
"""

from __future__ import annotations

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.operator_enums import LSTMKernelType
from delegraph.schema.table import Table, boolean, enum, float32, int32


class SVDFOptions(Table):
    """Options of ``SVDF``."""

    rank: int = int32(0, default=0)
    fused_activation_function: ActivationFunctionType = enum(1, default=ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean(2, default=False)


class RNNOptions(Table):
    """Options of ``RNN``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean(1, default=False)


class LSTMOptions(Table):
    """Options of ``LSTM``."""

    fused_activation_function: ActivationFunctionType = enum(0, default=ActivationFunctionType.NONE)
    cell_clip: float = float32(1, default=0.0)
    proj_clip: float = float32(2, default=0.0)
    kernel_type: LSTMKernelType = enum(3, default=LSTMKernelType.FULL)
    asymmetric_quantize_inputs: bool = boolean(4, default=False)


class SequenceRNNOptions(Table):
    """Options of ``UNIDIRECTIONAL_SEQUENCE_RNN``."""

    time_major: bool = boolean(0, default=False)
    fused_activation_function: ActivationFunctionType = enum(1, default=ActivationFunctionType.NONE)
    asymmetric_quantize_inputs: bool = boolean(2, default=False)


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
