"""Kernel of LSTM, and the code that it shares with UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from collections.abc import Callable

from delegraph.arithmetic.weights import once_if_constant
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.layers import Cell, Direction, sequence_eval
from delegraph.kernels.recurrent.lstm_basic import prepare_basic
from delegraph.kernels.recurrent.lstm_cell import FloatLstmCell
from delegraph.kernels.recurrent.lstm_integer_cell import IntegerLstmCell
from delegraph.operators.checks import (
    option,
    require_rank,
    require_same_type,
    require_scales,
    require_type,
)
from delegraph.operators.lstm_node import LstmInput, LstmOptions, LstmTensors, lstm_tensors
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
)
from delegraph.schema.enums import LSTMKernelType, TensorType


@kernel("LSTM", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare LSTM: one time step of a layer.

    Source:
        tflite/kernels/lstm.cc.
    """
    if option(node, "kernel_type", LSTMKernelType.FULL) == LSTMKernelType.BASIC:
        return prepare_basic(context, node)
    require_rank(input_tensor(context, node, LstmInput.INPUT), 2)
    return prepare_layer(context, node, time_major=True)


def prepare_layer(context: OpContext, node: Node, *, time_major: bool) -> Eval:
    """Prepare an LSTM node of 20 or 24 inputs, and set the output's shape.

    Args:
        context: context of the subgraph.
        node: LSTM (full kernel) or UNIDIRECTIONAL_SEQUENCE_LSTM.
        time_major: whether sequences are ``[T, B, n]`` rather than ``[B, T, n]``.

    Raises:
        OperatorError: a tensor does not fit.
    """
    if len(node.inputs) not in (20, 24) or len(node.outputs) != 1:
        found = f"{len(node.inputs)} inputs and {len(node.outputs)} outputs"
        raise OperatorError(f"node has {found}, expected 20 or 24 and 1")
    x, y = input_tensor(context, node, LstmInput.INPUT), output_tensor(context, node)
    tensors = lstm_tensors(context, node, layer_norm=_layer_norm_inputs(context, node))
    options = LstmOptions.of(node)
    require_type(x, {TensorType.FLOAT32, TensorType.INT8})
    require_same_type(x, y)
    batch = x.shape[1] if time_major and len(x.shape) == 3 else x.shape[0]
    tensors.check(batch, x.shape[-1], integer=x.type == TensorType.INT8)
    context.resize_tensor(y, (*x.shape[:-1], tensors.n_output))

    if x.type == TensorType.INT8:
        cell = _integer_cell(context, node, tensors, options, whole_batch=time_major)
    else:
        cell = once_if_constant(lambda: FloatLstmCell(tensors, options), *tensors.weights())
    return sequence_eval([Direction(cell, x, None, tensors.states, y)], time_major)


def _layer_norm_inputs(context: OpContext, node: Node) -> int | None:
    """Return the position of the first layer normalisation input; None if there is none.

    Raises:
        OperatorError: the forget gate lacks the input, but other gates have it. The official
            kernels check only the forget gate, and then read each gate's input.
    """
    first = LstmInput.INPUT_LAYER_NORM_COEFFICIENTS
    if optional_input(context, node, LstmInput.FORGET_LAYER_NORM_COEFFICIENTS) is not None:
        return first
    found = [i for i in range(first, first + 4) if optional_input(context, node, i) is not None]
    if found:
        raise OperatorError(f"inputs {found} normalise gates, but none normalises the forget gate")
    return None


def _integer_cell(
    context: OpContext,
    node: Node,
    tensors: LstmTensors,
    options: LstmOptions,
    *,
    whole_batch: bool,
) -> Callable[[], Cell]:
    """Return a function that returns the cell of an integer layer with these tensors and options.

    *whole_batch* is the argument of :class:`IntegerLstmCell`.

    Raises:
        OperatorError: weights are no constants, or intermediates are missing or not quantized.
    """
    for tensor in tensors.weights():
        if not tensor.is_constant_or_persistent:
            raise OperatorError(f"weights {tensor.name!r} of an integer layer are not constant")
    if len(node.intermediates) != 5:
        raise OperatorError(f"node has {len(node.intermediates)} intermediates, expected 5")
    intermediates = [context.tensors[i] for i in node.intermediates]
    x, y = input_tensor(context, node, LstmInput.INPUT), output_tensor(context, node)
    hidden = intermediates[4 - len(tensors.layer_norm) :]  # the others have none without norm
    weights = tensors.input_weights + tensors.recurrent_weights + tensors.layer_norm
    require_scales(x, y, *tensors.states, *weights, *tensors.peephole, *hidden)
    cell = IntegerLstmCell(context, tensors, options, x, y, intermediates, whole_batch)
    return lambda: cell
