"""Kernels of RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.activation import apply_activation
from delegraph.arithmetic.weights import once_if_constant
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.layers import (
    Direction,
    Pass,
    Sequence3D,
    as_rows,
    bidirectional_eval,
    sequence_eval,
)
from delegraph.kernels.recurrent.weights import recurrent_weights
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    option,
    require_counts,
    require_one_scale,
    require_rank,
    require_same_type,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
    variable_input,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType

Floats = NDArray[np.float32]


class RnnInput(IntEnum):
    """Inputs of RNN and UNIDIRECTIONAL_SEQUENCE_RNN. Source: tflite/kernels/basic_rnn.cc."""

    INPUT = 0
    WEIGHTS = 1
    RECURRENT_WEIGHTS = 2
    BIAS = 3
    HIDDEN_STATE = 4


class BidirectionalRnnInput(IntEnum):
    """Positions of the first input of each group; within a group the order is that of RnnInput.

    Source:
        tflite/kernels/bidirectional_sequence_rnn.cc.
    """

    INPUT = 0
    FW_WEIGHTS = 1
    BW_WEIGHTS = 5
    AUX_INPUT = 9
    FW_AUX_WEIGHTS = 10
    BW_AUX_WEIGHTS = 11


@dataclass(frozen=True, slots=True)
class RnnTensors:
    """The tensors of a layer, except its input and output.

    Attributes:
        weights: ``[units, n_input]``.
        recurrent_weights: ``[units, units]``.
        bias: ``[units]``.
        hidden_state: ``[B, units]``, the output of the last time step.
        aux_weights: ``[units, n_aux]``; None if there is no second input.
    """

    weights: Tensor
    recurrent_weights: Tensor
    bias: Tensor
    hidden_state: Tensor
    aux_weights: Tensor | None = None

    @property
    def units(self) -> int:
        """Number of units, the length of the hidden state."""
        return self.weights.shape[0]

    def check(self, batch: int, n_input: int, n_aux: int = 0) -> None:
        """Check that the tensors fit *batch* rows of *n_input* numbers.

        *n_aux* is the length of a row of the second input; 0 if there is none.

        Raises:
            OperatorError: a tensor does not fit.
        """
        require_type(self.weights, {TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8})
        require_one_scale(self.weights, self.recurrent_weights)
        require_rank(self.weights, 2)
        require_shape(self.weights, (self.units, n_input))
        require_same_type(self.weights, self.recurrent_weights)
        require_shape(self.recurrent_weights, (self.units, self.units))
        require_type(self.bias, {TensorType.FLOAT32})
        require_shape(self.bias, (self.units,))
        require_type(self.hidden_state, {TensorType.FLOAT32})
        require_shape(self.hidden_state, (batch, self.units))
        if self.aux_weights is not None:
            require_same_type(self.weights, self.aux_weights)
            require_one_scale(self.aux_weights)
            require_shape(self.aux_weights, (self.units, n_aux))


class RnnCell:
    """An RNN cell, ``h = activation(W_x x + W_h h + b)``, with float or 8-bit weights.

    Source:
        RnnBatchStep, tflite/kernels/internal/kernel_utils.cc.
    """

    def __init__(self, tensors: RnnTensors, activation: int, asymmetric: bool) -> None:
        self._input = recurrent_weights([tensors.weights], asymmetric=asymmetric)
        self._recurrent = recurrent_weights([tensors.recurrent_weights], asymmetric=asymmetric)
        aux = tensors.aux_weights
        self._aux = None if aux is None else recurrent_weights([aux], asymmetric=asymmetric)
        self._bias: Floats = tensors.bias.data
        self._activation = activation

    def project(self, x: Floats, aux: Floats | None) -> Floats:
        """Return the part of each time step that comes from *x* and *aux*: ``[T, B, units]``.

        *x* and the second input *aux* are ``[T, B, features]``; *aux* is None if there is none.
        """
        y = self._input.product(as_rows(x))
        if self._aux is not None and aux is not None:
            y += self._aux.product(as_rows(aux))
        y += self._bias
        return y.reshape(*x.shape[:2], len(self._bias))

    def step(self, projected: Floats, *states: Floats) -> None:
        """Update the hidden state ``[B, units]`` by the time step *projected*, in place."""
        (hidden,) = states
        np.add(projected, self._recurrent.product(hidden), out=hidden)
        apply_activation(self._activation, hidden)


@kernel("RNN", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare RNN: one time step of a fully connected recurrent layer.

    Source:
        tflite/kernels/basic_rnn.cc.
    """
    require_rank(input_tensor(context, node, RnnInput.INPUT), 2)
    return _one_direction(context, node, time_major=True)


@kernel("UNIDIRECTIONAL_SEQUENCE_RNN", uses_blas=True)
def prepare_unidirectional(context: OpContext, node: Node) -> Eval:
    """Prepare UNIDIRECTIONAL_SEQUENCE_RNN: a fully connected recurrent layer over a sequence.

    Source:
        tflite/kernels/unidirectional_sequence_rnn.cc.
    """
    require_rank(input_tensor(context, node, RnnInput.INPUT), 3)
    return _one_direction(context, node, time_major=bool(option(node, "time_major", False)))


@kernel("BIDIRECTIONAL_SEQUENCE_RNN", uses_blas=True)
def prepare_bidirectional(context: OpContext, node: Node) -> Eval:
    """Prepare BIDIRECTIONAL_SEQUENCE_RNN: one layer runs forwards and another backwards.

    Three peculiarities of the official kernel are reproduced. If an auxiliary input has no weights,
    the backward layer reads it if time is the first axis, but not if the batch is. The auxiliary
    input's time steps begin at the offsets of the input's time steps, except for floats with the
    batch first. With 8-bit weights and time first, the whole sequence is run as often as it has
    time steps.

    Raises:
        OperatorError: tensors do not fit, or the official kernel would read past an input's end.

    Source:
        tflite/kernels/bidirectional_sequence_rnn.cc.
    """
    require_counts(node, 12, 1 if option(node, "merge_outputs", False) else 2)
    at = BidirectionalRnnInput
    x = input_tensor(context, node, at.INPUT)
    aux = optional_input(context, node, at.AUX_INPUT)
    for tensor in (x, *(output_tensor(context, node, i) for i in range(len(node.outputs)))):
        require_type(tensor, {TensorType.FLOAT32})
    require_rank(x, 3)
    forward = _tensors(context, node, at.FW_WEIGHTS, at.FW_AUX_WEIGHTS)
    backward = _tensors(context, node, at.BW_WEIGHTS, at.BW_AUX_WEIGHTS)
    has_aux_weights = forward.aux_weights is not None
    if has_aux_weights != (backward.aux_weights is not None):
        raise OperatorError("only one direction has weights for the auxiliary input")
    if has_aux_weights and aux is None:
        raise OperatorError("weights for an auxiliary input, and no such input")
    if aux is not None:
        require_rank(aux, 3)
    time_major = bool(option(node, "time_major", False))
    batch = x.shape[1] if time_major else x.shape[0]
    for tensors in (forward, backward):
        tensors.check(batch, x.shape[2], 0 if aux is None else aux.shape[2])
    is_hybrid = forward.weights.type is not TensorType.FLOAT32
    passes = _pass(node, forward), _pass(node, backward)
    if aux is None or not (has_aux_weights or time_major):
        inputs: tuple[Sequence3D, Sequence3D | None] = x, None
    elif not has_aux_weights:
        inputs = Steps.of(aux, x.shape, (batch * x.shape[2], x.shape[2])), None
    else:
        require_shape(aux, (*x.shape[:2], aux.shape[2]))
        inputs = x, _auxiliary_steps(x, aux, is_hybrid=is_hybrid, time_major=time_major)
    rounds = x.shape[0] if is_hybrid and time_major else 1
    return bidirectional_eval(context, node, x, inputs, passes, rounds)


@dataclass(frozen=True, slots=True)
class Steps:
    """A view of a sequence as steps of its elements; steps may overlap.

    Attributes:
        tensor: the sequence, float32.
        shape: shape of the view, ``[T, B, I]`` or ``[B, T, I]``.
        strides: number of elements between neighbouring indices of the first and second axis.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, int]

    @classmethod
    def of(cls, tensor: Tensor, shape: tuple[int, ...], strides: tuple[int, int]) -> Steps:
        """Return *tensor* as time steps: a view of three axes, in the tensor's memory.

        Args:
            tensor: the sequence, float32.
            shape: shape of the view.
            strides: number of elements between neighbouring indices of the first and second axis;
                those of the third axis are neighbours in memory.

        Raises:
            OperatorError: the view would reach beyond the tensor.
        """
        ends = [(n - 1) * stride for n, stride in zip(shape, strides, strict=False)]
        if 0 not in shape and sum(ends) + shape[2] > math.prod(tensor.shape):
            raise OperatorError(
                f"auxiliary input is {list(tensor.shape)}, expected at least as many numbers at a "
                "time step as the input has"
            )
        return cls(tensor, shape, strides)

    @property
    def data(self) -> Floats:
        """Elements of the view, float32, read-only."""
        flat = np.ascontiguousarray(self.tensor.data).reshape(-1)
        size = flat.itemsize
        strides = (*(stride * size for stride in self.strides), size)
        return np.lib.stride_tricks.as_strided(flat, self.shape, strides, writeable=False)


def _auxiliary_steps(x: Tensor, aux: Tensor, *, is_hybrid: bool, time_major: bool) -> Steps:
    """Return the auxiliary input *aux* cut into time steps as in the official kernel.

    The distance of its steps may be that of the steps of *x*, the layer's input; it depends on
    *is_hybrid*, whether weights have 8 bits, and on *time_major*. So steps may overlap.

    Raises:
        OperatorError: the steps would reach past the input's end.
    """
    (_, second, n_input), n_aux = x.shape, aux.shape[2]
    if time_major:
        return Steps.of(aux, aux.shape, (second * n_input, n_aux))
    step = n_input if is_hybrid else n_aux
    return Steps.of(aux, aux.shape, (second * step, step))


def _one_direction(context: OpContext, node: Node, *, time_major: bool) -> Eval:
    require_counts(node, len(RnnInput))
    x, y = input_tensor(context, node, RnnInput.INPUT), output_tensor(context, node)
    for tensor in (x, y):
        require_type(tensor, {TensorType.FLOAT32})
    tensors = _tensors(context, node, RnnInput.WEIGHTS)
    batch = x.shape[1] if time_major and len(x.shape) == 3 else x.shape[0]
    tensors.check(batch, x.shape[-1])
    context.resize_tensor(y, (*x.shape[:-1], tensors.units))
    only = _pass(node, tensors)
    return sequence_eval([Direction(only.cell, x, None, only.states, y)], time_major)


def _tensors(
    context: OpContext, node: Node, first: int, aux_weights: int | None = None
) -> RnnTensors:
    """Return the tensors of one direction, whose weights begin at input *first*.

    *aux_weights* is the position of the weights of a second input; None if there is none.
    """
    return RnnTensors(
        input_tensor(context, node, first),
        input_tensor(context, node, first + 1),
        input_tensor(context, node, first + 2),
        variable_input(context, node, first + 3),
        None if aux_weights is None else optional_input(context, node, aux_weights),
    )


def _pass(node: Node, tensors: RnnTensors) -> Pass:
    activation = option(node, "fused_activation_function", ActivationFunctionType.NONE)
    asymmetric = option(node, "asymmetric_quantize_inputs", False)
    fixed = [tensors.weights, tensors.recurrent_weights, tensors.bias]
    if tensors.aux_weights is not None:
        fixed.append(tensors.aux_weights)
    cell = once_if_constant(lambda: RnnCell(tensors, activation, asymmetric), *fixed)
    return Pass(cell, (tensors.hidden_state,), tensors.units)
