"""What recurrent operators share: empty sequences, and shapes that make no sense."""

import numpy as np
import pytest

from delegraph.schema import options as o
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.recurrent_layers import IntegerLstm, Weights, lstm_weights, state
from support.consecutive import delegraph_run

SIZES = [(0, 4, 3), (2, 0, 3), (2, 4, 0)]


@pytest.mark.parametrize(("batch", "time", "n_input"), SIZES)
def test_empty_lstm_sequences_run(batch, time, n_input):
    weights = Weights()
    layer = lstm_weights(weights, max(n_input, 1), 5, 5)
    if n_input == 0:
        layer[:4] = [constant(np.zeros((5, 0), np.float32)) for _ in range(4)]
    inputs = [tensor((batch, time, n_input)), *layer, state(batch, 5), state(batch, 5)]
    outputs = [tensor((batch, time, 5))]
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, o.UnidirectionalSequenceLSTMOptions()
    )
    ((y,),) = delegraph_run(model, [[np.zeros((batch, time, n_input), np.float32)]])
    assert y.shape == (batch, time, 5)


def test_an_empty_batch_of_integers_runs():
    lstm = IntegerLstm(batch=0)
    shape = (0, 3, lstm.sizes[1])
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [lstm.input(shape), *lstm.inputs(layer_norm=True, peephole=True)],
        [lstm.output((0, 3, 8))],
        o.UnidirectionalSequenceLSTMOptions(),
        intermediates=lstm.intermediates(),
    )
    ((y,),) = delegraph_run(model, [[np.zeros(shape, np.int8)]])
    assert y.shape == (0, 3, 8)


@pytest.mark.parametrize(("batch", "time", "n_input"), SIZES[:2])
def test_empty_rnn_sequences_run(batch, time, n_input):
    weights = Weights()
    inputs = [tensor((batch, time, n_input)), weights.matrix(5, n_input), weights.matrix(5, 5)]
    inputs += [weights.vector(5), state(batch, 5)]
    outputs = [tensor((batch, time, 5))]
    model = one_op_model("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, o.SequenceRNNOptions())
    ((y,),) = delegraph_run(model, [[np.zeros((batch, time, n_input), np.float32)]])
    assert y.shape == (batch, time, 5)


def test_an_empty_batch_of_svdf_runs():
    weights = Weights()
    inputs = [tensor((0, 3)), weights.matrix(4, 3), weights.matrix(4, 2), None, state(0, 8)]
    model = one_op_model("SVDF", inputs, [tensor((0, 2))], o.SVDFOptions(rank=2))
    ((y,),) = delegraph_run(model, [[np.zeros((0, 3), np.float32)]])
    assert y.shape == (0, 2)


@pytest.mark.parametrize("position", [4, 8])
def test_scalar_weights_are_refused(position):
    weights = Weights()
    inputs = [tensor((2, 4, 3)), *lstm_weights(weights, 3, 5, 5), state(2, 5), state(2, 5)]
    inputs[position] = constant(np.float32(1))
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [tensor((2, 4, 5))],
        o.UnidirectionalSequenceLSTMOptions(),
    )
    with pytest.raises(RuntimeError, match="expected 2 dimensions"):
        delegraph_run(model, [])


def test_states_of_another_type_are_refused():
    lstm = IntegerLstm()
    inputs = [lstm.input((2, 3, 7)), *lstm.inputs()]
    inputs[19] = state(2, 8, scale=2.0**-11)
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [lstm.output((2, 3, 8))],
        o.UnidirectionalSequenceLSTMOptions(),
        intermediates=lstm.intermediates(),
    )
    with pytest.raises(RuntimeError, match="type FLOAT32, expected one of INT16"):
        delegraph_run(model, [])
