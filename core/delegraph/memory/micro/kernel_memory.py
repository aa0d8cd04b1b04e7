"""What TFLM's reference kernels keep in the arena, by operator.

Parameters are what the operator's options become; operator data is what its kernel works out and
keeps. Vendors' kernels (CMSIS-NN, Xtensa, Ethos-U) keep other data and ask for more scratch memory;
nothing is known here of them.

Source:
    Structures TfLite*Params of tflite/core/c/builtin_op_data.h and OpData* of
    tflite-micro/micro/kernels/, with the Init and Prepare functions that allocate them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from delegraph.graph.model import Operator, TensorSpec
from delegraph.memory.micro.targets import MicroTarget
from delegraph.schema.enums import TensorType

UNKNOWN_KERNEL_BYTES = 64
"""What an operator that is not listed is taken to keep; 0 to 128 is common among those that are."""


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """What one operator's kernel takes.

    Attributes:
        parameters: bytes of its options; 0 without any.
        persistent: bytes of each of its persistent buffers.
        scratch: bytes of each of its scratch buffers.
        temp_tensors: temporary tensors that it looks at while preparing; indices in the subgraph.
        is_known: whether its kernel is listed here.
    """

    parameters: int = 0
    persistent: Sequence[int] = ()
    scratch: Sequence[int] = ()
    temp_tensors: Sequence[int] = ()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes of an operator's structures: ``fixed`` bytes and pointers."""

    parameters: int = 0
    data: int = 0
    data_pointers: int = 0
    passes: int = 1  # how often the kernel's Prepare fetches its tensors
    aligned_to: int = field(default=4)

    def data_bytes(self, target: MicroTarget) -> int:
        """Return the operator data's size, padded as a compiler would."""
        if not self.data_pointers:
            return -(-self.data // self.aligned_to) * self.aligned_to
        step = max(target.pointer, self.aligned_to)
        before = -(-self.data // target.pointer) * target.pointer
        return -(-(before + self.data_pointers * target.pointer) // step) * step


_ELEMENTWISE = _Layout(parameters=8, data=64)
_ACTIVATION = _Layout(data=24)
_POOL = _Layout(parameters=40, data=32)
_NOTHING = _Layout()
_REDUCE = _Layout(parameters=4, data=40)
_COMPARE = _Layout(data=28)
_LAYOUTS = {
    # Two pointers amid integers; the fields behind them fill one more word of 64-bit data.
    "CONV_2D": _Layout(parameters=40, data=48, data_pointers=2, passes=2),
    "DEPTHWISE_CONV_2D": _Layout(parameters=40, data=48, data_pointers=2, passes=2),
    "FULLY_CONNECTED": _Layout(parameters=16, data=40, data_pointers=2),
    "SVDF": _Layout(parameters=12, data=36),
    "SOFTMAX": _Layout(parameters=4, data=36, data_pointers=5, aligned_to=8),
    "LOGISTIC": _Layout(data=16),
    "TANH": _Layout(data=16),
    "QUANTIZE": _Layout(data=28, aligned_to=8),
    "DEQUANTIZE": _Layout(data=32, aligned_to=8),
    "RESHAPE": _NOTHING,
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "ADD": _Layout(parameters=8, data=72),
    "SUB": _Layout(parameters=8, data=64),
    "MUL": _Layout(parameters=4, data=36),
    "RELU": _ACTIVATION,
    "RELU6": _ACTIVATION,
    "LEAKY_RELU": _Layout(parameters=4, data=24),
    "HARD_SWISH": _Layout(data=24),
    "PRELU": _Layout(data=36),
    "CONCATENATION": _Layout(parameters=8, data=100),
    "PAD": _Layout(data=44),
    "PADV2": _Layout(data=44),
    "MEAN": _REDUCE,
    "SUM": _REDUCE,
    "REDUCE_MAX": _REDUCE,
    "MAXIMUM": _NOTHING,
    "MINIMUM": _NOTHING,
    "TRANSPOSE": _NOTHING,
    "STRIDED_SLICE": _Layout(parameters=24, data=80),
    "SLICE": _NOTHING,
    "SPLIT": _Layout(parameters=4),
    "PACK": _Layout(parameters=8),
    "UNPACK": _Layout(parameters=8),
    "SQUEEZE": _Layout(parameters=36),
    "EXPAND_DIMS": _NOTHING,
    "SHAPE": _Layout(parameters=4),
    "CAST": _Layout(parameters=8),
    "GATHER": _Layout(parameters=8),
    "ARG_MAX": _Layout(parameters=4),
    "ARG_MIN": _Layout(parameters=4),
    "RESIZE_NEAREST_NEIGHBOR": _Layout(parameters=2),
    "RESIZE_BILINEAR": _Layout(parameters=2),
    "EQUAL": _COMPARE,
    "NOT_EQUAL": _COMPARE,
    "GREATER": _COMPARE,
    "GREATER_EQUAL": _COMPARE,
    "LESS": _COMPARE,
    "LESS_EQUAL": _COMPARE,
    "ABS": _Layout(data=28),
    "RSQRT": _Layout(data=28),
    "NEG": _NOTHING,
    "EXP": _NOTHING,
    "LOG": _NOTHING,
    "SQRT": _NOTHING,
    "SQUARE": _NOTHING,
    "SIN": _NOTHING,
    "COS": _NOTHING,
    "FLOOR": _NOTHING,
    "CEIL": _NOTHING,
    "ROUND": _NOTHING,
    "IF": _Layout(parameters=8, data=8),
    "WHILE": _Layout(parameters=8, data=8),
    "CALL_ONCE": _Layout(parameters=4, data=8),
    "VAR_HANDLE": _Layout(data=4, parameters=16),
    "READ_VARIABLE": _NOTHING,
    "ASSIGN_VARIABLE": _NOTHING,
}

_PER_CHANNEL = ("CONV_2D", "DEPTHWISE_CONV_2D")
_LUT_BYTES = 513 * 2  # of 16-bit SOFTMAX, which has two
_PACKED = (TensorType.INT4, TensorType.INT2)


def kernel_memory(
    operator: Operator, tensors: Sequence[TensorSpec], target: MicroTarget
) -> KernelMemory:
    """Return what TFLM's reference kernel of *operator* takes.

    Operators that are not listed get :data:`UNKNOWN_KERNEL_BYTES` and no scratch memory.
    """
    layout = _LAYOUTS.get(operator.name)
    fetched = [i for i in (*operator.inputs, *operator.outputs) if i >= 0]
    if layout is None:
        return KernelMemory(0, (UNKNOWN_KERNEL_BYTES,), (), fetched, is_known=False)
    data = layout.data_bytes(target)
    return KernelMemory(
        parameters=layout.parameters,
        persistent=[*([data] if data else []), *_tables(operator, tensors)],
        scratch=_scratch(operator, tensors),
        temp_tensors=fetched * layout.passes,
    )


def _tables(operator: Operator, tensors: Sequence[TensorSpec]) -> list[int]:
    """Return the bytes of the arrays that a kernel keeps besides its data."""
    inputs = [tensors[i] if i >= 0 else None for i in operator.inputs]
    if operator.name in _PER_CHANNEL and len(inputs) > 1 and inputs[1] is not None:
        shape = inputs[1].shape
        channels = shape[-1] if operator.name == "DEPTHWISE_CONV_2D" else shape[0]
        return [4 * channels] * 2  # multipliers and shifts
    if operator.name == "SOFTMAX" and inputs and inputs[0] is not None:
        return [_LUT_BYTES] * 2 if inputs[0].type == TensorType.INT16 else []
    return []


def _scratch(operator: Operator, tensors: Sequence[TensorSpec]) -> list[int]:
    inputs = [tensors[i] if i >= 0 else None for i in operator.inputs]
    if operator.name == "SVDF" and len(inputs) > 1 and inputs[0] and inputs[1]:
        batches, filters = inputs[0].shape[0], inputs[1].shape[0]
        work = 4 * batches * filters
        if inputs[0].type == TensorType.FLOAT32:
            return [work]
        rank = getattr(operator.options, "rank", 1)
        return [work, 4 * batches * (filters // max(rank, 1))]
    unpacks = (*_PER_CHANNEL, "FULLY_CONNECTED")
    if operator.name in unpacks and len(inputs) > 1 and inputs[1] and inputs[1].type in _PACKED:
        return [math.prod(inputs[1].shape)]
    return []
