"""What TFLM's integer LSTM refuses; its results are among those kept in tests/micro/wheel."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.micro import MicroInterpreter
from delegraph.testing import constant, one_op_model, tensor


def layer(type="INT8", change=None):
    """Return a sound layer of two states, with other inputs at the places of *change*."""
    bias_type = np.int32 if type == "INT8" else np.int64
    state = {"scale": 2.0**-7, "zero_point": 0}
    inputs = [
        tensor((1, 3, 4), type, **state),
        *(constant(np.ones((2, 4), np.int8), scale=0.01) for _ in range(4)),
        *(constant(np.ones((2, 2), np.int8), scale=0.01) for _ in range(4)),
        *[None] * 3,
        *(constant(np.zeros(2, bias_type)) for _ in range(4)),
        *[None] * 2,
        tensor((1, 2), type, is_variable=True, **state),
        tensor((1, 2), "INT16", is_variable=True, scale=2.0**-11),
        *[None] * 4,
    ]
    for place, other in (change or {}).items():
        inputs[place] = other
    y = tensor((1, 3, 2), type, **state)
    return one_op_model("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], version=3)


def allocated(model):
    interpreter = MicroInterpreter(model, bytearray(1 << 16))
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("type", ["INT8", "INT16"])
def test_a_layer_needs_no_intermediates(type):
    interpreter = allocated(layer(type))
    interpreter.invoke()
    assert interpreter.output(0).data.tolist() == [[[0, 0]] * 3]


REFUSED = {
    "a peephole": ({11: constant(np.ones(2, np.int16))}, "no LSTM with an input CELL_TO_OUTPUT"),
    "a projection": ({16: constant(np.ones((2, 2), np.int8))}, "an input PROJECTION_WEIGHTS"),
    "normalisation": ({21: constant(np.ones(2, np.int16))}, "FORGET_LAYER_NORM_COEFFICIENTS"),
    "coupled gates": ({1: None}, "input 1 is required and absent"),
    "a state of bytes": ({19: tensor((1, 2), "INT8", is_variable=True, scale=0.1)}, "type INT8"),
    "a large state": ({18: tensor((2, 2), "INT8", is_variable=True, scale=0.1)}, "another size"),
    "no variable": ({19: tensor((1, 2), "INT16", scale=0.1)}, "not a variable"),
    "an odd scale": (
        {19: tensor((1, 2), "INT16", is_variable=True, scale=0.3)}, "expected a power of two"
    ),
    "wide biases": ({12: constant(np.zeros(2, np.int64))}, "INT64, expected one of INT32"),
    "long biases": ({12: constant(np.zeros(3, np.int32))}, r"\[3\], expected \[2\]"),
    "wide weights": ({4: constant(np.ones((2, 4), np.int16), scale=0.1)}, "type INT16"),
    "short weights": ({4: constant(np.ones((2, 3), np.int8), scale=0.1)}, r"expected \[2, 4\]"),
    "many weights": ({8: constant(np.ones((2, 3), np.int8), scale=0.1)}, r"expected \[2, 2\]"),
    "no scale": ({4: constant(np.ones((2, 4), np.int8))}, "scale 0.0, expected a positive one"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_layer_that_tflm_does_not_know_is_refused(name):
    change, words = REFUSED[name]
    with pytest.raises(NodeError, match=words):
        allocated(layer(change=change))
