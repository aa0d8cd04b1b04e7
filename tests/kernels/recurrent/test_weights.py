"""Weights of recurrent layers."""

import numpy as np
import pytest

from delegraph.errors import NodeError, OperatorError
from delegraph.graph.model import Quantization
from delegraph.kernels.recurrent.weights import IntegerMatrix, recurrent_weights
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType
from delegraph.schema.options import RNNOptions, SVDFOptions, UnidirectionalSequenceLSTMOptions
from delegraph.testing import constant, delegraph_outputs, one_op_model, tensor
from delegraph.testing.recurrent_layers import Weights, lstm_weights, state

ROWS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def weights(values, *, type=None, scale=None):
    kind = type or {"f4": TensorType.FLOAT32, "i1": TensorType.INT8}[values.dtype.str[1:]]
    quantization = None
    if scale is not None:
        quantization = Quantization(np.array([scale], np.float32), np.zeros(1, np.int32))
    return Tensor(0, kind, values.shape, data=values, quantization=quantization)


def test_matrices_are_stacked():
    a, b = np.eye(4, dtype=np.float32), np.full((2, 4), 2, np.float32)
    got = recurrent_weights([weights(a), weights(b)], asymmetric=False).product(ROWS)
    np.testing.assert_allclose(got, np.hstack([ROWS, ROWS @ b.T]), rtol=1e-6)


def test_matrices_of_several_widths_are_refused():
    diagonal, wide = np.ones(4, np.float32), np.ones((4, 6), np.float32)
    with pytest.raises(OperatorError, match=r"recurrent weights have widths \[4, 6\]"):
        recurrent_weights([weights(diagonal), weights(wide)], asymmetric=False)


def test_a_vector_is_a_diagonal_matrix():
    diagonal = np.array([1, 2, 3, 4], np.float32)
    got = recurrent_weights([weights(diagonal)], asymmetric=False).product(ROWS)
    np.testing.assert_allclose(got, ROWS * diagonal)


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("kind", [TensorType.INT8, TensorType.UINT8])
def test_hybrid_products_are_near_the_real_ones(kind, asymmetric):
    values = np.random.default_rng(1).integers(-127, 128, (5, 4)).astype(np.int8)
    stored = values.view(np.uint8) if kind == TensorType.UINT8 else values
    tensor = weights(stored, type=kind, scale=0.01)
    got = recurrent_weights([tensor], asymmetric=asymmetric).product(ROWS)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, ROWS @ (values * 0.01).T, atol=0.03)


@pytest.mark.parametrize("columns", [8, 5000])
def test_integer_products_are_exact(columns):
    matrix = IntegerMatrix(np.full((2, columns), -128, np.int8))
    rows = np.full((1, columns), -128, np.int8)
    assert matrix.product(rows).tolist() == [[128 * 128 * columns] * 2]
    assert matrix.row_sums.tolist() == [-128 * columns] * 2


def test_diagonal_and_hybrid_weights_do_not_mix():
    pair = [weights(np.ones(4, np.float32)), weights(np.ones((4, 4), np.int8), scale=1.0)]
    with pytest.raises(OperatorError, match="some recurrent weights are diagonal"):
        recurrent_weights(pair, asymmetric=False)


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
