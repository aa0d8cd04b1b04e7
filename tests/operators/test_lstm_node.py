"""What an LSTM node holds."""

import numpy as np
import pytest

from delegraph import Node, Tensor, TensorType
from delegraph.errors import OperatorError
from delegraph.graph.model import Quantization
from delegraph.operators.lstm_node import LstmOptions, LstmTensors
from delegraph.schema.options import LSTMOptions


def tensors_of(gates, *, layer_norm):
    each = tuple(Tensor(i, TensorType.INT8, (2, 2)) for i in range(gates))
    state = Tensor(gates, TensorType.INT8, (1, 2))
    norm = each if layer_norm else ()
    return LstmTensors(each, each, (), each, None, None, state, state, layer_norm=norm)


def intermediates():
    scales = [np.float32([2.0**-k]) for k in range(5)]
    quantizations = [Quantization(scale, np.zeros(1, np.int32)) for scale in scales]
    return [Tensor(k, TensorType.INT16, (), quantization=q) for k, q in enumerate(quantizations)]


@pytest.mark.parametrize(
    ("gates", "expected"), [(4, [1, 0.5, 0.25, 0.125]), (3, [0.5, 0.25, 0.125])]
)
def test_gates_that_are_normalised_have_their_intermediates_scales(gates, expected):
    assert tensors_of(gates, layer_norm=True).gate_scales(intermediates()) == expected


@pytest.mark.parametrize("gates", [3, 4])
def test_gates_that_are_not_have_three_integer_bits(gates):
    assert tensors_of(gates, layer_norm=False).gate_scales(()) == [2.0**-12] * gates


@pytest.mark.parametrize("clip", [-1.0, np.nan])
@pytest.mark.parametrize("name", ["cell_clip", "proj_clip"])
def test_a_clip_that_is_no_limit_is_refused(name, clip):
    clips = {name: clip}
    with pytest.raises(OperatorError, match=r"clips are .*(-|nan).*, expected 0 or more"):
        LstmOptions.of(Node(0, (), (), options=LSTMOptions(**clips)))
