"""LSTM: the full and the basic kernel, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import LSTMKernelType
from delegraph.schema.options import LSTMOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.recurrent_layers import IntegerLstm, Weights, gates, lstm_weights, state
from support.consecutive import assert_steps_agree, delegraph_run, official_run

BATCH, INPUT, CELL = 2, 3, 4
TOLERANCE = 1e-6

LAYERS = {
    "plain": {},
    "coupled, peepholes": {"cifg": True, "peephole": True},
    "projection": {"n_output": 3, "projection": True, "projection_bias": True},
    "layer norm": {"layer_norm": True, "peephole": True},
}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
@pytest.mark.parametrize("hybrid", [False, True])
def test_float_steps_agree_with_the_official_kernel(hybrid, layer):
    weights, layer = Weights(2, hybrid=hybrid), dict(layer)
    n_output, norm = layer.pop("n_output", CELL), layer.pop("layer_norm", False)
    cifg = layer.get("cifg", False)
    inputs = [
        tensor((BATCH, INPUT)),
        *lstm_weights(weights, INPUT, CELL, n_output, **layer),
        state(BATCH, n_output),
        state(BATCH, CELL),
        *(gates(lambda: weights.vector(CELL), cifg=cifg) if norm else [None] * 4),
    ]
    options = LSTMOptions(fused_activation_function=Act.TANH, cell_clip=1.0)
    model = one_op_model("LSTM", inputs, [tensor((BATCH, n_output))], options, version=4)
    assert_steps_agree(model, weights.inputs((BATCH, INPUT), 4), tolerance=TOLERANCE)


def assert_integer_steps_agree(lstm, batch, clip=0.0, **inputs):
    shape, n_output = (batch, lstm.sizes[1]), lstm.sizes[3]
    model = one_op_model(
        "LSTM",
        [lstm.input(shape), *lstm.inputs(projection=True, **inputs)],
        [lstm.output((batch, n_output))],
        LSTMOptions(fused_activation_function=Act.TANH, cell_clip=clip, proj_clip=clip),
        intermediates=lstm.intermediates(),
    )
    assert_steps_agree(model, lstm.steps(shape, 5))


@pytest.mark.parametrize(("seed", "clip"), [(0, 0), (1, 0), (2, 0), (0, np.inf), (0, 1e30)])
def test_integer_steps_are_bit_exact_also_with_clips_beyond_every_value(seed, clip):
    assert_integer_steps_agree(IntegerLstm(seed, n_output=5), 2, clip, layer_norm=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_output", [1, 4, 8])
def test_integer_peepholes_of_a_batch_are_bit_exact(n_output, seed):
    assert_integer_steps_agree(IntegerLstm(seed, n_cell=9, n_output=n_output), BATCH, peephole=True)


def test_gates_that_are_normalised_without_the_forget_gate_are_refused():
    weights = Weights()
    inputs = [tensor((BATCH, INPUT)), *lstm_weights(weights, INPUT, CELL, CELL)]
    norm = gates(lambda: weights.vector(CELL), cifg=False)
    inputs += [state(BATCH, CELL), state(BATCH, CELL), norm[0], None, *norm[2:]]
    model = one_op_model("LSTM", inputs, [tensor((BATCH, CELL))], LSTMOptions())
    with pytest.raises(RuntimeError, match=r"inputs \[20, 22, 23\] normalise gates"):
        delegraph_run(model, [])


def test_the_full_kernel_takes_single_steps_only():
    weights = Weights()
    inputs = [tensor((BATCH, 5, INPUT)), *lstm_weights(weights, INPUT, CELL, CELL)]
    inputs += [state(BATCH, CELL), state(BATCH, CELL), *[None] * 4]
    model = one_op_model("LSTM", inputs, [tensor((BATCH, CELL))], LSTMOptions())
    with pytest.raises(RuntimeError, match="expected 2 dimensions"):
        delegraph_run(model, [])


BASIC = LSTMOptions(fused_activation_function=Act.TANH, kernel_type=LSTMKernelType.BASIC)


def basic_float_model(weights, *, is_variable):
    inputs = [
        tensor((BATCH, INPUT)),
        tensor((BATCH, CELL), is_variable=is_variable),
        weights.matrix(4 * CELL, INPUT + CELL),
        weights.vector(4 * CELL),
        tensor((BATCH, CELL), is_variable=is_variable),
    ]
    shapes = [(BATCH, CELL), (BATCH, CELL), (BATCH, INPUT + CELL), (BATCH, 4 * CELL)]
    return one_op_model("LSTM", inputs, [tensor(s) for s in shapes], BASIC, version=2)


def test_the_basic_kernel_agrees_in_all_four_outputs():
    weights = Weights(4)
    model = basic_float_model(weights, is_variable=True)
    assert_steps_agree(model, weights.inputs((BATCH, INPUT), 4), tolerance=TOLERANCE)


def test_the_basic_kernel_takes_its_state_as_graph_inputs():
    weights = Weights(5)
    model = basic_float_model(weights, is_variable=False)
    shapes = (BATCH, INPUT), (BATCH, CELL), (BATCH, CELL)
    steps = [[weights.inputs(shape, 1)[0][0] for shape in shapes] for _ in range(2)]
    assert_steps_agree(model, steps, tolerance=TOLERANCE)


def basic_quantized_model(rng, multiplier, state_scale=2.0**-11):
    n, total = 16, 36
    activations = {"type": "UINT8", "scale": 1 / 128, "zero_point": 128}
    inputs = [
        tensor((BATCH, total - n), **activations),
        state(BATCH, n, **activations),
        constant(rng.integers(0, 256, (4 * n, total)).astype(np.uint8), scale=0.01, zero_point=115),
        constant(rng.integers(-9000, 9000, 4 * n).astype(np.int32), scale=multiplier),
        state(BATCH, n, type="INT16", scale=2.0**-11),
    ]
    outputs = [
        tensor((BATCH, n), **activations),
        tensor((BATCH, n), "INT16", scale=state_scale),
        tensor((BATCH, total), **activations),
        tensor((BATCH, 4 * n), "INT16", scale=2.0**-12),
    ]
    return one_op_model("LSTM", inputs, outputs, BASIC, version=2)


@pytest.mark.parametrize("multiplier", [1e-4, 3e-5, 1.3e-6])
@pytest.mark.parametrize("seed", range(3))
def test_the_quantized_basic_kernel_is_bit_exact(seed, multiplier):
    rng = np.random.default_rng(seed)
    model = basic_quantized_model(rng, multiplier)
    steps = [[rng.integers(0, 256, (BATCH, 20)).astype(np.uint8)] for _ in range(5)]
    assert_steps_agree(model, steps)


def test_the_quantized_basic_kernel_wants_four_integer_bits_in_its_state():
    model = basic_quantized_model(np.random.default_rng(0), 1e-4, state_scale=2.0**-10)
    with pytest.raises(RuntimeError, match=r"2\*\*-10, expected 2\*\*-11"):
        delegraph_run(model, [])


def test_both_refuse_a_basic_kernel_with_a_bias_of_another_size():
    weights = Weights()
    inputs = [tensor((BATCH, INPUT)), state(BATCH, CELL)]
    inputs += [weights.matrix(4 * CELL, INPUT + CELL), weights.vector(CELL), state(BATCH, CELL)]
    outputs = [
        tensor((BATCH, CELL)),
        tensor((BATCH, CELL)),
        tensor((BATCH, 7)),
        tensor((BATCH, 16)),
    ]
    model = one_op_model("LSTM", inputs, outputs, BASIC)
    with pytest.raises(RuntimeError):
        official_run(model, [])
    with pytest.raises(RuntimeError, match=r"shape \[4\], expected \[16\]"):
        delegraph_run(model, [])


def test_the_basic_kernel_names_types_that_do_not_go_together():
    inputs = [tensor((BATCH, INPUT)), state(BATCH, CELL, type="UINT8")]
    weights = Weights()
    inputs += [weights.matrix(4 * CELL, INPUT + CELL), weights.vector(16), state(BATCH, CELL)]
    outputs = [
        tensor((BATCH, CELL)),
        tensor((BATCH, CELL)),
        tensor((BATCH, 7)),
        tensor((BATCH, 16)),
    ]
    with pytest.raises(RuntimeError, match="FLOAT32, UINT8, FLOAT32"):
        delegraph_run(one_op_model("LSTM", inputs, outputs, BASIC), [])


def test_the_basic_kernel_cannot_write_a_constant_state():
    weights = Weights()
    inputs = [tensor((BATCH, INPUT)), constant(np.zeros((BATCH, CELL), np.float32))]
    inputs += [weights.matrix(4 * CELL, INPUT + CELL), weights.vector(16), state(BATCH, CELL)]
    shapes = [(BATCH, CELL), (BATCH, CELL), (BATCH, INPUT + CELL), (BATCH, 4 * CELL)]
    model = one_op_model("LSTM", inputs, [tensor(s) for s in shapes], BASIC)
    with pytest.raises(RuntimeError, match="is constant"):
        delegraph_run(model, [])
