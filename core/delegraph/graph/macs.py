"""Number of multiply-accumulate operations, the measure of a model's arithmetic.

Operators that multiply by weights or multiply matrices are counted. Sparse weights count like dense
weights, and unknown dimensions as 1, so that the number is the least one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from delegraph.graph.model import OperatorSpec, TensorSpec

Tensors = Sequence[TensorSpec | None]
"""Inputs of an operator, followed by its outputs; None for absent operands."""


def macs_of(operator: OperatorSpec, tensors: Sequence[TensorSpec]) -> int:
    """Return the least number of multiply-accumulates of an operator, which may be 0.

    Args:
        operator: the operator.
        tensors: tensors of its subgraph, by index.
    """
    count = _COUNTS.get(operator.name)
    if count is None or operator.is_custom:
        return 0
    inputs = [tensors[i] if i >= 0 else None for i in operator.inputs]
    outputs = [tensors[i] for i in operator.outputs if i >= 0]
    if not outputs or not outputs[0].shape:  # the result of such an operator is no scalar
        return 0
    return count(operator, inputs, outputs[0])


def is_least(operator: OperatorSpec, tensors: Sequence[TensorSpec]) -> bool:
    """Whether :func:`macs_of` is only a least number, since the file lacks a shape.

    Args:
        operator: the operator.
        tensors: tensors of its subgraph, by index.
    """
    if operator.name not in _COUNTS or operator.is_custom:
        return False
    used = [tensors[i] for i in (*operator.inputs, *operator.outputs[:1]) if i >= 0]
    return any(-1 in tensor.shape_signature for tensor in used) or any(
        not tensors[i].shape for i in operator.outputs[:1] if i >= 0
    )


def _shape(inputs: Tensors, position: int) -> tuple[int, ...]:
    """Return the shape of the input at *position*; empty if the input is absent."""
    tensor = inputs[position] if position < len(inputs) else None
    return () if tensor is None else tensor.shape


def _conv(operator: OperatorSpec, inputs: Tensors, output: TensorSpec) -> int:
    """Return the number for CONV_2D or FULLY_CONNECTED: output elements times those of a filter."""
    return math.prod(output.shape) * math.prod(_shape(inputs, 1)[1:])


def _depthwise(operator: OperatorSpec, inputs: Tensors, output: TensorSpec) -> int:
    return math.prod(output.shape) * math.prod(_shape(inputs, 1)[1:-1])


def _conv_3d(operator: OperatorSpec, inputs: Tensors, output: TensorSpec) -> int:
    return math.prod(output.shape) * math.prod(_shape(inputs, 1)[:-1])


def _transposed(operator: OperatorSpec, inputs: Tensors, output: TensorSpec) -> int:
    """Return the number for TRANSPOSE_CONV: input elements times ``o * kh * kw`` of the weights."""
    x = _shape(inputs, 2)
    return math.prod(x) * math.prod(_shape(inputs, 1)[:-1]) if x else 0


def _batch_matmul(operator: OperatorSpec, inputs: Tensors, output: TensorSpec) -> int:
    """Return the number for BATCH_MATMUL: output elements times the inputs' common dimension.

    If the file has this dimension only for one of the inputs, that number counts.
    """
    left, right = _shape(inputs, 0), _shape(inputs, 1)
    if len(left) < 2 or len(right) < 2:
        return 0
    common = left[-2 if getattr(operator.options, "adj_x", False) else -1]
    same = right[-1 if getattr(operator.options, "adj_y", False) else -2]
    return math.prod(output.shape) * max(common, same)


def _recurrent(operator: OperatorSpec, inputs: Tensors, output: TensorSpec) -> int:
    """Return the number for a recurrent operator: elements of its matrices, times rows and steps.

    Rows are those of the batch, and steps those of time.
    """
    x = _shape(inputs, 0)
    weights = inputs[2:3] if operator.name == "LSTM" and len(inputs) == _BASIC_LSTM else inputs[1:]
    matrices = [t.shape for t in weights if t is not None and not t.is_variable]
    return math.prod(x[:-1]) * sum(math.prod(shape) for shape in matrices if len(shape) == 2)


_BASIC_LSTM = 5  # inputs of its kernel type BASIC; input 1 and 4 are activations


_COUNTS: Mapping[str, Callable[[OperatorSpec, Tensors, TensorSpec], int]] = {
    "BATCH_MATMUL": _batch_matmul,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _recurrent,
    "BIDIRECTIONAL_SEQUENCE_RNN": _recurrent,
    "CONV_2D": _conv,
    "CONV_3D": _conv_3d,
    "CONV_3D_TRANSPOSE": _transposed,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _conv,
    "LSTM": _recurrent,
    "RNN": _recurrent,
    "SVDF": _recurrent,
    "TRANSPOSE_CONV": _transposed,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _recurrent,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _recurrent,
}
