"""Arena memory that TFLM's reference kernels need, by operator.

Parameters are the operator's options as a C structure; operator data is the structure that the
kernel computes in prepare and keeps. Vendors' kernels (CMSIS-NN, Xtensa) keep other data and need
more scratch memory; they are not listed here. Sizes are exact, counted from the declarations, for
convolutions, SVDF, FULLY_CONNECTED, pooling, SOFTMAX, ADD, MUL, LOGISTIC, CONCATENATION,
reductions, (de)quantization and ethos-u. Sizes of other operators are approximate, and small.

Source:
    Structures TfLite*Params of tflite/core/c/builtin_op_data.h and OpData* of
    tflite-micro/micro/kernels/, with the Init and Prepare functions that allocate them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delegraph.graph.dtypes import byte_size
from delegraph.graph.model import OperatorSpec, TensorSpec
from delegraph.micro.signal_memory import signal_memory
from delegraph.micro.targets import MicroTarget
from delegraph.operators.lstm_node import LstmInput
from delegraph.schema.enums import TensorType

UNKNOWN_KERNEL_BYTES = 64
"""Assumed number of bytes that an unlisted operator stores; most listed ones store 0 to 128."""


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """Arena memory of the kernel of one operator.

    Attributes:
        parameters: number of bytes of the structure of its options; 0 if it has none.
        persistent: number of bytes of each persistent buffer.
        scratch: number of bytes of each scratch buffer.
        temp_tensors: indices of tensors that the kernel allocates as temporary tensors while
            preparing.
        is_known: whether its kernel is listed in this module.
    """

    parameters: int = 0
    persistent: Sequence[int] = ()
    scratch: Sequence[int] = ()
    temp_tensors: Sequence[int] = ()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes of the structures that TFLM keeps for a node of one operator.

    Attributes:
        parameters: bytes of the structure of its options.
        data: bytes of its operator data with 32-bit pointers; 0 if it has none.
        data_64: bytes of its operator data with 64-bit pointers; None if they are as many.
        passes: number of times that the kernel's Prepare fetches its tensors.
    """

    parameters: int = 0
    data: int = 0
    data_64: int | None = None
    passes: int = 1

    def data_bytes(self, target: MicroTarget) -> int:
        """Return the bytes of the operator's data on *target*."""
        return self.data if self.data_64 is None or target.bits == 32 else self.data_64


_SAME: dict[str, _Layout] = {
    "ABS RSQRT EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL": _Layout(data=28),
    "ADD": _Layout(parameters=8, data=60),
    "ARG_MAX ARG_MIN SHAPE SPLIT": _Layout(parameters=4),
    "ASSIGN_VARIABLE CEIL COS EXP EXPAND_DIMS FLOOR LOG MAXIMUM MINIMUM NEG": _Layout(),
    "AVERAGE_POOL_2D MAX_POOL_2D": _Layout(parameters=40, data=32),
    "CALL_ONCE": _Layout(parameters=4, data=8),
    "CAST GATHER PACK UNPACK": _Layout(parameters=8),
    "CONCATENATION": _Layout(parameters=8, data=24, data_64=40, passes=2),
    "CONV_2D DEPTHWISE_CONV_2D": _Layout(parameters=40, data=56, data_64=72, passes=2),
    "DEQUANTIZE QUANTIZE": _Layout(data=32),
    "FULLY_CONNECTED": _Layout(parameters=16, data=48, data_64=64),
    "HARD_SWISH RELU RELU6": _Layout(data=24),
    "IF WHILE": _Layout(parameters=8, data=8),
    "LEAKY_RELU": _Layout(parameters=4, data=24),
    "LOGISTIC TANH": _Layout(data=16),
    "MEAN SUM REDUCE_MAX MUL": _Layout(parameters=4, data=36),
    "PAD PADV2": _Layout(data=44),
    "PRELU": _Layout(data=36),
    "READ_VARIABLE RESHAPE ROUND SIN SLICE SQRT SQUARE TRANSPOSE": _Layout(),
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR": _Layout(parameters=2),
    "SOFTMAX": _Layout(parameters=4, data=56, data_64=80),
    "SQUEEZE": _Layout(parameters=36),
    "STRIDED_SLICE": _Layout(parameters=24, data=80),
    "SUB": _Layout(parameters=8, data=52),
    "SVDF": _Layout(parameters=12, data=36),
    "TRANSPOSE_CONV": _Layout(parameters=20, data=72, data_64=80, passes=2),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _Layout(parameters=16, data=688),
    "VAR_HANDLE": _Layout(parameters=16, data=4),
}
"""Layouts, by the names of the operators that have the same one."""

_LAYOUTS = {name: layout for names, layout in _SAME.items() for name in names.split()}

_LUT_BYTES = 513 * 2  # bytes of the two tables of 16-bit SOFTMAX
_PACKED = (TensorType.INT4, TensorType.INT2)
_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

_Tensors = Sequence[TensorSpec | None]  # an operator's inputs, then its outputs
_Sizes = Callable[[OperatorSpec, _Tensors], list[int]]


def kernel_memory(
    operator: OperatorSpec, tensors: Sequence[TensorSpec], target: MicroTarget
) -> KernelMemory:
    """Return the arena memory of TFLM's reference kernel for *operator* on *target*.

    *tensors* are all tensors of the subgraph.

    Operators that are not listed get :data:`UNKNOWN_KERNEL_BYTES` and no scratch memory.
    """
    layout = _LAYOUTS.get(operator.name)
    indices = (*operator.inputs, *operator.outputs)
    fetched = [i for i in indices if i >= 0]
    own = [tensors[i] if i >= 0 else None for i in indices]
    signal = signal_memory(operator, own, target)
    if signal is not None:
        return KernelMemory(0, *signal, fetched)
    if operator.name == "ethos-u":
        return _ethos_u(operator, target)
    if layout is None:
        return KernelMemory(0, (UNKNOWN_KERNEL_BYTES,), (), fetched, is_known=False)
    data = layout.data_bytes(target)
    return KernelMemory(
        parameters=layout.parameters,
        persistent=[*([data] if data else []), *_TABLES.get(operator.name, _none)(operator, own)],
        scratch=_SCRATCH.get(operator.name, _none)(operator, own),
        temp_tensors=fetched * layout.passes,
    )


def _ethos_u(operator: OperatorSpec, target: MicroTarget) -> KernelMemory:
    """Return the memory of the kernel of Vela's operator: addresses and sizes of its tensors.

    The kernel passes these to the chip. The memory that the chip itself uses is a tensor of the
    model, so it is not counted here.

    Source:
        OpData and Prepare of tflite-micro/micro/kernels/ethos_u/ethosu.cc.
    """
    count = len(operator.inputs) + len(operator.outputs)
    scratch = [8 * count, target.pointer * count]
    return KernelMemory(persistent=[12], scratch=scratch, temp_tensors=operator.inputs[:1])


def _none(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    return []


# -- arrays that a kernel keeps besides its data -------------------------------------------------


def _per_channel(axis: int) -> _Sizes:
    """Return a function that gives the sizes of a node's tables of multipliers and shifts.

    There is one multiplier and one shift for each output channel, along
    *axis* of the weights.
    """

    def sizes(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
        weights = tensors[1]
        return [] if weights is None else [4 * weights.shape[axis]] * 2

    return sizes


def _softmax_tables(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    x = tensors[0]
    return [_LUT_BYTES] * 2 if x is not None and x.type == TensorType.INT16 else []


def _concatenation_tables(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    x = tensors[0]
    is_int8 = x is not None and x.type == TensorType.INT8
    return [4 * len(operator.inputs)] * 2 if is_int8 else []  # scales and zero points


_TABLES: dict[str, _Sizes] = {
    "CONV_2D": _per_channel(0),
    "DEPTHWISE_CONV_2D": _per_channel(-1),
    "TRANSPOSE_CONV": _per_channel(0),
    "SOFTMAX": _softmax_tables,
    "CONCATENATION": _concatenation_tables,
}


# -- scratch buffers -----------------------------------------------------------------------------


def _svdf_scratch(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    x, weights = tensors[0], tensors[1]
    if x is None or weights is None:
        return []
    batches, filters = x.shape[0], weights.shape[0]
    work = 4 * batches * filters
    if x.type == TensorType.FLOAT32:
        return [work]
    rank = max(getattr(operator.options, "rank", 1), 1)
    return [work, 4 * batches * (filters // rank)]


def _unpacked_weights(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    weights = tensors[1]
    is_packed = weights is not None and weights.type in _PACKED
    return [math.prod(weights.shape)] if weights is not None and is_packed else []


def _transpose_conv_scratch(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    y = tensors[-1]
    if y is None or y.type not in _QUANTIZED:
        return []
    return [math.prod(y.shape) * (8 if y.type == TensorType.INT16 else 4)]


def _lstm_scratch(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    cell = tensors[LstmInput.CELL_STATE] if len(tensors) > LstmInput.CELL_STATE else None
    return [] if cell is None else [byte_size(cell.type, cell.shape)] * 4


def _sum_scratch(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    x, y = tensors[0], tensors[-1]
    is_quantized = x is not None and x.type in _QUANTIZED
    return [4 * math.prod(y.shape)] if y is not None and is_quantized else []


def _maximum_scratch(operator: OperatorSpec, tensors: _Tensors) -> list[int]:
    x, axes = tensors[0], tensors[1]
    return [] if x is None or axes is None else [4 * len(x.shape), 4 * math.prod(axes.shape)]


_SCRATCH: dict[str, _Sizes] = {
    "SVDF": _svdf_scratch,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm_scratch,
    "CONV_2D": _unpacked_weights,
    "DEPTHWISE_CONV_2D": _unpacked_weights,
    "FULLY_CONNECTED": _unpacked_weights,
    "TRANSPOSE_CONV": _transpose_conv_scratch,
    "MEAN": _sum_scratch,
    "SUM": _sum_scratch,
    "REDUCE_MAX": _maximum_scratch,
}
