"""UNIDIRECTIONAL_SEQUENCE_LSTM, against a slow definition and the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import UnidirectionalSequenceLSTMOptions
from delegraph.testing import TensorDef, constant, one_op_model, tensor
from delegraph.testing.recurrent_layers import IntegerLstm, Weights, gates, lstm_weights, state
from support.consecutive import assert_steps_agree, delegraph_run, official_run
from support.corpus import CORPUS, corpus_file, needs_corpus

BATCH, TIME, INPUT, CELL = 2, 5, 3, 4
TOLERANCE = 1e-6  # absolute and relative; sums are added up in another order


def float_model(
    weights, *, n_output=CELL, n_input=INPUT, time_major=False, layer_norm=False, inputs=24, **layer
):
    options = UnidirectionalSequenceLSTMOptions(
        fused_activation_function=layer.pop("activation", Act.TANH),
        cell_clip=layer.pop("cell_clip", 0.0),
        proj_clip=layer.pop("proj_clip", 0.0),
        asymmetric_quantize_inputs=layer.pop("asymmetric", False),
        time_major=time_major,
    )
    cifg = layer.get("cifg", False)
    leading = (TIME, BATCH) if time_major else (BATCH, TIME)
    tensors = [
        tensor((*leading, n_input)),
        *lstm_weights(weights, n_input, CELL, n_output, **layer),
        state(BATCH, n_output),
        state(BATCH, CELL),
        *(gates(lambda: weights.vector(CELL), cifg=cifg) if layer_norm else [None] * 4),
    ]
    y = tensor((*leading, n_output))
    return one_op_model("UNIDIRECTIONAL_SEQUENCE_LSTM", tensors[:inputs], [y], options, version=4)


LAYERS = {
    "plain": {},
    "time major": {"time_major": True},
    "coupled input gate": {"cifg": True},
    "peepholes": {"peephole": True},
    "coupled, peepholes": {"cifg": True, "peephole": True},
    "projection": {"n_output": 3, "projection": True, "projection_bias": True},
    "clips": {"n_output": 6, "projection": True, "cell_clip": 0.2, "proj_clip": 0.3},
    "layer norm": {"layer_norm": True, "peephole": True},
    "layer norm, coupled": {"layer_norm": True, "cifg": True},
    "diagonal": {"diagonal": True},
    "20 inputs": {"inputs": 20},
    "RELU": {"activation": Act.RELU, "cell_clip": 1.5},
    "no activation": {"activation": Act.NONE, "layer_norm": True},
    "no activation, coupled": {"activation": Act.NONE, "cifg": True},
}
KINDS = {"float": (False, False), "hybrid": (True, False), "asymmetric hybrid": (True, True)}


@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
@pytest.mark.parametrize(("hybrid", "asymmetric"), KINDS.values(), ids=KINDS.keys())
def test_consecutive_invokes_agree_with_the_official_kernel(hybrid, asymmetric, layer):
    weights = Weights(7, hybrid=hybrid)
    model = float_model(weights, asymmetric=asymmetric, **layer)
    leading = (TIME, BATCH) if layer.get("time_major") else (BATCH, TIME)
    assert_steps_agree(model, weights.inputs((*leading, INPUT)), tolerance=TOLERANCE)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_hybrid_sums_that_leave_float32_are_exact(asymmetric):
    weights = Weights(1, hybrid=True)
    model = float_model(weights, n_input=1500, asymmetric=asymmetric)
    assert_steps_agree(model, weights.inputs((BATCH, TIME, 1500), 1), tolerance=TOLERANCE)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def values(definition: TensorDef) -> np.ndarray:
    return definition.data.view(np.float32).reshape(definition.shape).astype(np.float64)


def test_a_step_is_what_the_literature_says():
    weights = Weights(3)
    tensors = lstm_weights(weights, INPUT, CELL, CELL)
    wi, wf, wg, wo, ri, rf, rg, ro = (values(t) for t in tensors[:8])
    bi, bf, bg, bo = (values(t) for t in tensors[11:15])
    states = [state(1, CELL), state(1, CELL)]
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [tensor((1, TIME, INPUT)), *tensors, *states, *[None] * 4],
        [tensor((1, TIME, CELL))],
        UnidirectionalSequenceLSTMOptions(fused_activation_function=Act.TANH),
    )
    steps = weights.inputs((1, TIME, INPUT), 1)
    h = c = np.zeros(CELL)
    expected = []
    for x in steps[0][0][0].astype(np.float64):
        c = sigmoid(wf @ x + rf @ h + bf) * c + sigmoid(wi @ x + ri @ h + bi) * np.tanh(
            wg @ x + rg @ h + bg
        )
        h = sigmoid(wo @ x + ro @ h + bo) * np.tanh(c)
        expected.append(h)
    ((y,),) = delegraph_run(model, steps)
    np.testing.assert_allclose(y[0], expected, rtol=1e-5, atol=1e-6)


def test_weights_may_change_between_invokes():
    weights = Weights(5)
    tensors = lstm_weights(weights, INPUT, CELL, CELL)
    changing = tensor((CELL, INPUT))
    inputs = [tensor((BATCH, TIME, INPUT)), changing, *tensors[1:]]
    inputs += [state(BATCH, CELL), state(BATCH, CELL), *[None] * 4]
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [tensor((BATCH, TIME, CELL))],
        UnidirectionalSequenceLSTMOptions(fused_activation_function=Act.TANH),
    )
    steps = [
        [*x, w]
        for (x,), (w,) in zip(
            ((s,) for s in weights.inputs((BATCH, TIME, INPUT))),
            weights.inputs((CELL, INPUT)),
            strict=True,
        )
    ]
    assert_steps_agree(model, steps, tolerance=TOLERANCE)


INTEGER_LAYERS = {
    "plain": ({}, {}),
    "coupled input gate": ({}, {"cifg": True}),
    "peepholes": ({}, {"peephole": True}),
    "projection": ({"n_output": 5}, {"projection": True}),
    "projection, peepholes": ({"n_output": 6}, {"projection": True, "peephole": True}),
    "layer norm": ({}, {"layer_norm": True}),
    "layer norm of odd size": ({"n_cell": 5, "n_output": 5}, {"layer_norm": True}),
    "all": ({"n_output": 6}, dict.fromkeys(("cifg", "peephole", "projection", "layer_norm"), True)),
    "coarse cell": ({"cell_log2": -9}, {}),
    "fine cell": ({"cell_log2": -15}, {}),
    "finer cell": ({"cell_log2": -16}, {}),
    "finer cell, peepholes": ({"cell_log2": -17}, {"peephole": True}),
    "finest cell, layer norm": ({"cell_log2": -29}, {"layer_norm": True}),
    "wide": ({"n_input": 1100, "n_cell": 64, "n_output": 64}, {}),
}


def integer_model(lstm, shape, *, time_major=False, cell_clip=0.0, proj_clip=0.0, **layer):
    options = UnidirectionalSequenceLSTMOptions(
        fused_activation_function=Act.TANH,
        cell_clip=cell_clip,
        proj_clip=proj_clip,
        time_major=time_major,
    )
    return one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [lstm.input(shape), *lstm.inputs(**layer)],
        [lstm.output((*shape[:2], lstm.sizes[3]))],
        options,
        intermediates=lstm.intermediates(),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("sizes", "layer"), INTEGER_LAYERS.values(), ids=INTEGER_LAYERS.keys())
def test_integer_layers_are_bit_exact(sizes, layer, seed):
    lstm = IntegerLstm(seed, **sizes)
    shape = (BATCH, TIME, lstm.sizes[1])
    assert_steps_agree(integer_model(lstm, shape, **layer), lstm.steps(shape))


@pytest.mark.parametrize("seed", range(3))
def test_integer_clips_are_bit_exact(seed):
    lstm = IntegerLstm(seed, n_output=9)
    shape = (TIME, BATCH, lstm.sizes[1])
    clips = {"cell_clip": 0.4, "proj_clip": 0.3}
    model = integer_model(lstm, shape, time_major=True, projection=True, **clips)
    assert_steps_agree(model, lstm.steps(shape))


@pytest.mark.parametrize("seed", range(3))
def test_integer_peepholes_of_steps_are_bit_exact(seed):
    lstm = IntegerLstm(seed, n_output=5)
    shape = (TIME, BATCH, lstm.sizes[1])
    model = integer_model(lstm, shape, time_major=True, projection=True, peephole=True)
    assert_steps_agree(model, lstm.steps(shape))


def refused(change):
    weights = Weights()
    inputs = [tensor((BATCH, TIME, INPUT)), *lstm_weights(weights, INPUT, CELL, CELL)]
    inputs += [state(BATCH, CELL), state(BATCH, CELL), *[None] * 4]
    options = UnidirectionalSequenceLSTMOptions(fused_activation_function=Act.TANH)
    inputs = change(inputs, options) or inputs
    return one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [tensor((BATCH, TIME, CELL))], options
    )


def put(i, definition):
    def change(inputs, options):
        inputs[i] = definition

    return change


REFUSALS = {
    "18 inputs": (lambda inputs, options: inputs[:18], "18 inputs"),
    "wrong columns": (put(3, constant(np.zeros((CELL, 9), np.float32))), r"shape \[4, 9\]"),
    "wrong rows": (put(5, constant(np.zeros((9, CELL), np.float32))), r"shape \[9, 4\]"),
    "half an input gate": (put(5, None), "input gate"),
    "one peephole": (put(10, constant(np.zeros(CELL, np.float32))), "1 peephole weights"),
    "lonely projection bias": (
        put(17, constant(np.zeros(CELL, np.float32))),
        "bias without projection",
    ),
    "state of another size": (put(19, state(BATCH, 5)), "expected 8 elements"),
    "state that is no variable": (
        put(18, constant(np.zeros((BATCH, CELL), np.float32))),
        "not a variable",
    ),
    "integer bias": (put(12, constant(np.zeros(CELL, np.int32))), "INT32"),
    "no forget weights": (put(2, None), "input 2 is required"),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_both_interpreters_refuse(change, message):
    model = refused(change)
    with pytest.raises(RuntimeError):
        official_run(model, [])
    with pytest.raises(RuntimeError, match=message):
        delegraph_run(model, [])


def test_integer_cell_states_need_a_power_of_two_as_scale():
    lstm = IntegerLstm(cell_log2=-11.3)
    shape = (BATCH, TIME, lstm.sizes[1])
    with pytest.raises(RuntimeError, match="power of two"):
        delegraph_run(integer_model(lstm, shape), [])


@pytest.mark.parametrize(("log2", "cifg"), [(-16, True), (-30, False), (-8, False)])
def test_integer_cell_states_of_other_scales_are_refused(log2, cifg):
    lstm = IntegerLstm(cell_log2=log2)
    shape = (BATCH, TIME, lstm.sizes[1])
    with pytest.raises(RuntimeError, match=rf"scale 2\*\*{log2}, expected"):
        delegraph_run(integer_model(lstm, shape, cifg=cifg), [])


def test_integer_layers_need_five_intermediates():
    lstm = IntegerLstm()
    shape = (BATCH, TIME, lstm.sizes[1])
    model = one_op_model(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [lstm.input(shape), *lstm.inputs()],
        [lstm.output((*shape[:2], 8))],
        UnidirectionalSequenceLSTMOptions(fused_activation_function=Act.TANH),
        intermediates=lstm.intermediates()[:4],
    )
    with pytest.raises(RuntimeError, match="4 intermediates"):
        delegraph_run(model, [])


@needs_corpus
def test_a_real_model_gives_its_golden_outputs():
    with np.load(CORPUS / "golden" / "LiteRT__unidirectional_sequence_lstm.npz") as archive:
        golden = dict(archive)
    steps = [[golden[f"{prefix}in_0"]] for prefix in ("", "s1_", "s2_")]
    outputs = delegraph_run(corpus_file("LiteRT__unidirectional_sequence_lstm").read_bytes(), steps)
    for prefix, (y,) in zip(("", "s1_", "s2_"), outputs, strict=True):
        np.testing.assert_allclose(y, golden[f"{prefix}out_0"], rtol=1e-5, atol=5e-6)
