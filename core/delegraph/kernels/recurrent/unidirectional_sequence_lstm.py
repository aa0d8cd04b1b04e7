"""UNIDIRECTIONAL_SEQUENCE_LSTM: runs an LSTM layer of ``recurrent.lstm`` over a sequence."""

from __future__ import annotations

from delegraph.kernels.recurrent.lstm import prepare_layer
from delegraph.kernels.recurrent.lstm_micro import prepare_micro
from delegraph.operators.checks import option, require_rank
from delegraph.operators.lstm_node import LstmInput
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor
from delegraph.schema.enums import TensorType


@kernel("UNIDIRECTIONAL_SEQUENCE_LSTM", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM layer over a sequence.

    Source:
        tflite/kernels/unidirectional_sequence_lstm.cc.
    """
    x = input_tensor(context, node, LstmInput.INPUT)
    require_rank(x, 3)
    if context.numerics == "micro" and x.type in (TensorType.INT8, TensorType.INT16):
        return prepare_micro(context, node)
    time_major = bool(option(node, "time_major", False))
    return prepare_layer(context, node, time_major=time_major)
