"""Weights of recurrent layers have one scale each."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.schema.options import RNNOptions, SVDFOptions, UnidirectionalSequenceLSTMOptions
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor
from delegraph.testing.recurrent_layers import Weights, lstm_weights, state

SEVERAL = constant(np.ones((3, 3), np.int8), scale=[0.1, 0.2, 0.3])
VECTOR = constant(np.zeros(3, np.float32))


def rnn():
    one = Weights(0, hybrid=True).matrix(3, 3)
    inputs = [tensor((1, 3)), one, SEVERAL, VECTOR, state(1, 3)]
    return one_op_model("RNN", inputs, [tensor((1, 3))], RNNOptions(), version=3)


def svdf():
    inputs = [tensor((1, 3)), SEVERAL, SEVERAL, None, state(1, 9)]
    return one_op_model("SVDF", inputs, [tensor((1, 3))], SVDFOptions(rank=1), version=3)


def lstm():
    inputs = [tensor((1, 2, 3)), *lstm_weights(Weights(0, hybrid=True), 3, 3, 3)]
    inputs[2] = SEVERAL
    inputs += [state(1, 3), state(1, 3)]
    options, outputs = UnidirectionalSequenceLSTMOptions(), [tensor((1, 2, 3))]
    return one_op_model("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, options, version=3)


@pytest.mark.parametrize("make", [rnn, svdf, lstm])
def test_several_are_refused(make):
    with pytest.raises(NodeError, match="has 3 scales, expected one"):
        delegraph_outputs(make(), [np.zeros((1, 3) if make is not lstm else (1, 2, 3), np.float32)])
