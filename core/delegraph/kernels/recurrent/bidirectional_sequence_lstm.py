"""Kernel of BIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from enum import IntEnum

from delegraph.arithmetic.weights import once_if_constant
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.layers import Pass, bidirectional_eval, stacked_inputs
from delegraph.kernels.recurrent.lstm_cell import FloatLstmCell
from delegraph.operators.checks import option, require_counts, require_rank, require_type
from delegraph.operators.lstm_node import LstmOptions, LstmTensors, lstm_tensors
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
)
from delegraph.schema.enums import TensorType


class BidirectionalLstmInput(IntEnum):
    """Positions of the first input of each group; within a group the order is that of LstmInput.

    Source:
        tflite/kernels/bidirectional_sequence_lstm.cc.
    """

    INPUT = 0
    FW_WEIGHTS = 1
    BW_WEIGHTS = 18
    FW_OUTPUT_STATE = 35
    BW_OUTPUT_STATE = 37
    AUX_INPUT = 39
    FW_AUX_WEIGHTS = 40
    BW_AUX_WEIGHTS = 44


@kernel("BIDIRECTIONAL_SEQUENCE_LSTM", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare BIDIRECTIONAL_SEQUENCE_LSTM: one layer runs forwards and one backwards.

    If outputs are merged, the batch is the first axis and there are several sequences, the official
    kernel confuses the sequences' states; this kernel does not.

    Source:
        tflite/kernels/bidirectional_sequence_lstm.cc.
    """
    require_counts(node, 48, 1 if option(node, "merge_outputs", False) else 2)
    x = input_tensor(context, node, BidirectionalLstmInput.INPUT)
    aux = optional_input(context, node, BidirectionalLstmInput.AUX_INPUT)
    for tensor in (x, *(output_tensor(context, node, i) for i in range(len(node.outputs)))):
        require_type(tensor, {TensorType.FLOAT32})
    require_rank(x, 3)
    forward, backward = _directions(context, node)
    batch = x.shape[1] if option(node, "time_major", False) else x.shape[0]
    if bool(forward.aux_weights) != bool(backward.aux_weights):
        raise OperatorError("only one direction has weights for the auxiliary input")
    if forward.aux_weights and aux is None:
        raise OperatorError("weights for an auxiliary input, and no such input")
    if aux is not None:
        require_rank(aux, 3)
    for tensors in (forward, backward):
        tensors.check(batch, x.shape[2], n_aux=0 if aux is None else aux.shape[2])
    if aux is not None and not forward.aux_weights:
        backward.check(batch, aux.shape[2])
    options = LstmOptions.of(node)
    passes = _pass(forward, options), _pass(backward, options)
    inputs = stacked_inputs(x, aux, has_aux_weights=bool(forward.aux_weights))
    return bidirectional_eval(context, node, x, inputs, passes)


def _directions(context: OpContext, node: Node) -> tuple[LstmTensors, LstmTensors]:
    """Return the tensors of the forward and of the backward layer."""
    at = BidirectionalLstmInput
    forward = lstm_tensors(
        context,
        node,
        first=at.FW_WEIGHTS,
        states=at.FW_OUTPUT_STATE,
        aux_weights=_if_present(context, node, at.FW_AUX_WEIGHTS),
    )
    backward = lstm_tensors(
        context,
        node,
        first=at.BW_WEIGHTS,
        states=at.BW_OUTPUT_STATE,
        aux_weights=_if_present(context, node, at.BW_AUX_WEIGHTS),
    )
    return forward, backward


def _if_present(context: OpContext, node: Node, first: int) -> int | None:
    """Return *first* if the node has auxiliary weights from input *first* on; otherwise None.

    Input *first* has the weights of the input gate, and the next input those of the forget gate.
    The latter are never absent in a layer with auxiliary weights.
    """
    return None if optional_input(context, node, first + 1) is None else first


def _pass(tensors: LstmTensors, options: LstmOptions) -> Pass:
    cell = once_if_constant(lambda: FloatLstmCell(tensors, options), *tensors.weights())
    return Pass(cell, tensors.states, tensors.n_output)
