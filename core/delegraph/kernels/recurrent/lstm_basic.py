"""The basic kernel of LSTM, with one matrix for input and previous output, but no options."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier_gemm,
    quantize_multiplier,
    rounding_divide_by_pot,
    scale_exponent,
)
from delegraph.arithmetic.gemmlowp import high_mul, logistic_table, tanh_table
from delegraph.arithmetic.weights import once_if_constant
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.lstm_cell import sigmoid
from delegraph.operators.checks import require_rank, require_shape, tensors_of
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BasicLstmInput(IntEnum):
    """Inputs of the basic kernel. Source: lstm::basic::InputTensor, tflite/kernels/lstm.cc."""

    DATA = 0
    PREV_ACTIVATION = 1
    WEIGHTS = 2
    BIASES = 3
    PREV_STATE = 4


class BasicLstmOutput(IntEnum):
    """Outputs of the basic kernel. Source: lstm::basic::OutputTensor, tflite/kernels/lstm.cc."""

    ACTIVATION = 0
    STATE = 1
    CONCAT_TEMP = 2
    ACTIVATION_TEMP = 3


_FLOAT_TYPES = (TensorType.FLOAT32,) * 9
_QUANTIZED_TYPES = (
    *(TensorType.UINT8, TensorType.UINT8, TensorType.UINT8, TensorType.INT32, TensorType.INT16),
    *(TensorType.UINT8, TensorType.INT16, TensorType.UINT8, TensorType.INT16),
)
_STATE_INTEGER_BITS = 4
_GATE_INTEGER_BITS = 3
_ACTIVATION_ZERO_POINT = 128


def prepare_basic(context: OpContext, node: Node) -> Eval:
    """Prepare an LSTM node of the basic kernel, and set the shapes of its outputs.

    Gates are in the order input, cell, forget, output. The new activation and state are copied to
    the inputs for the previous activation and state.

    Raises:
        OperatorError: a shape, type or scale does not fit.

    Source:
        lstm::basic::Prepare and Eval, tflite/kernels/lstm.cc.
    """
    tensors = tensors_of(context, node, len(BasicLstmInput), len(BasicLstmOutput))
    inputs, outputs = tensors[: len(BasicLstmInput)], tensors[len(BasicLstmInput) :]
    _check_shapes(*inputs)
    _, activation, weights, _, state = inputs
    batch, n = activation.shape
    shapes = ((batch, n), (batch, n), (batch, weights.shape[1]), (batch, 4 * n))
    for tensor, shape in zip(outputs, shapes, strict=True):
        context.resize_tensor(tensor, shape)
    for tensor in (activation, state):
        if tensor.is_constant:
            raise OperatorError(f"state {tensor.name!r} is constant, and the kernel writes it")
        tensor.allocation_type = AllocationType.ARENA_RW_PERSISTENT
    types = tuple(tensor.type for tensor in tensors)
    if types == _FLOAT_TYPES:
        return _float_eval(inputs, outputs)
    if types == _QUANTIZED_TYPES:
        return _quantized_eval(inputs, outputs)
    names = ", ".join(type_.name for type_ in types)
    raise OperatorError(f"tensor types are {names}, expected all FLOAT32 or the UINT8 combination")


def _check_shapes(
    x: Tensor, activation: Tensor, weights: Tensor, biases: Tensor, state: Tensor
) -> None:
    for tensor in (x, activation):
        require_rank(tensor, 2)
    batch, n = activation.shape
    require_shape(x, (batch, x.shape[1]))
    require_shape(weights, (4 * n, x.shape[1] + n))
    require_shape(biases, (4 * n,))
    require_shape(state, (batch, n))


def _float_eval(inputs: list[Tensor], outputs: list[Tensor]) -> Eval:
    """Return the evaluation for floats; *inputs* and *outputs* are the node's tensors in order.

    Source: optimized_ops::LstmCell, optimized_ops.h.
    """
    x, activation, weights, biases, state = inputs
    activation_out, state_out, concat, gates = outputs

    def run() -> None:
        np.concatenate([x.data, activation.data], axis=1, out=concat.data)
        np.matmul(concat.data, weights.data.T, out=gates.data)
        gates.data[...] += biases.data
        input_gate, new, forget, output_gate = np.split(gates.data, 4, axis=1)
        kept = sigmoid(forget) * state.data
        state_out.data[...] = sigmoid(input_gate) * np.tanh(new) + kept
        activation_out.data[...] = sigmoid(output_gate) * np.tanh(state_out.data)
        activation.data[...] = activation_out.data
        state.data[...] = state_out.data

    return run


def _quantized_eval(inputs: list[Tensor], outputs: list[Tensor]) -> Eval:
    """Return the evaluation for uint8; *inputs* and *outputs* are the node's tensors in order.

    Activations have zero point 128, gates are Q3.12, and the state is Q4.11.

    Source:
        optimized_ops::LstmCell<4>, tflite/kernels/internal/optimized/legacy_optimized_ops.h.
    """
    x, activation, weights, biases, state = inputs
    activation_out, state_out, concat, gates = outputs
    _check_state_scale(state_out)
    accumulate = _gate_sums(weights, biases)
    sigmoid_of, tanh_of = logistic_table(_GATE_INTEGER_BITS), tanh_table(_GATE_INTEGER_BITS)
    state_tanh = tanh_table(_STATE_INTEGER_BITS)

    def run() -> None:
        np.concatenate([x.data, activation.data], axis=1, out=concat.data)
        gates.data[...] = np.clip(accumulate(concat.data), -32768, 32767)
        input_gate, new, forget, output_gate = np.split(gates.data.view(np.uint16), 4, axis=1)
        added = high_mul(sigmoid_of[input_gate], tanh_of[new])
        total = np.add(
            rounding_divide_by_pot(added, _STATE_INTEGER_BITS),
            high_mul(sigmoid_of[forget], state.data),
            dtype=np.int32,
        )
        state_out.data[...] = np.clip(total, -32768, 32767)
        y = high_mul(sigmoid_of[output_gate], state_tanh[state_out.data.view(np.uint16)])
        y = np.clip(rounding_divide_by_pot(y, 8), -128, 127) + _ACTIVATION_ZERO_POINT
        activation_out.data[...] = y
        activation.data[...] = activation_out.data
        state.data[...] = state_out.data

    return run


def _check_state_scale(state: Tensor) -> None:
    exponent = scale_exponent(state)
    if 15 + exponent != _STATE_INTEGER_BITS:
        raise OperatorError(
            f"state has scale 2**{exponent}, expected 2**{_STATE_INTEGER_BITS - 15}"
        )


def _gate_sums(weights: Tensor, biases: Tensor) -> Callable[[NDArray[np.uint8]], NDArray[np.int32]]:
    """Return the function that multiplies by *weights*, adds *biases* and requantises.

    Its argument is input and previous output joined, ``[B, I + n], uint8``. It returns the four
    gates in Q3.12, ``[B, 4 n], int32``.
    """
    multiplier, shift = quantize_multiplier(4096 * biases.scale)
    # Products of 17 bits add up exactly in float64.
    rows = once_if_constant(
        lambda: np.subtract(weights.data, weights.zero_point, dtype=np.float64), weights
    )

    def sums(concat: NDArray[np.uint8]) -> NDArray[np.int32]:
        acc = np.subtract(concat, _ACTIVATION_ZERO_POINT, dtype=np.float64) @ rows().T
        acc = acc.astype(np.int64) + biases.data
        return multiply_by_quantized_multiplier_gemm(acc, multiplier, shift)

    return sums
