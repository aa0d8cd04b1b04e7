"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import (
    BidirectionalSequenceRNNOptions,
    RNNOptions,
    SequenceRNNOptions,
)
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.recurrent_layers import Weights, state
from support.consecutive import assert_steps_agree, delegraph_run, official_run

BATCH, TIME, INPUT, UNITS = 2, 4, 3, 5
TOLERANCE = 1e-6
KINDS = {"float": (False, False), "hybrid": (True, False), "asymmetric hybrid": (True, True)}
KINDS_OF_WEIGHTS = pytest.mark.parametrize(
    ("hybrid", "asymmetric"), KINDS.values(), ids=KINDS.keys()
)


def layer(weights, units=UNITS):
    return [
        weights.matrix(units, INPUT),
        weights.matrix(units, units),
        weights.vector(units),
        state(BATCH, units),
    ]


@pytest.mark.parametrize("activation", [Act.TANH, Act.RELU, Act.NONE])
@KINDS_OF_WEIGHTS
def test_rnn_steps_agree_with_the_official_kernel(hybrid, asymmetric, activation):
    weights = Weights(1, hybrid=hybrid)
    options = RNNOptions(
        fused_activation_function=activation, asymmetric_quantize_inputs=asymmetric
    )
    inputs = [tensor((BATCH, INPUT)), *layer(weights)]
    model = one_op_model("RNN", inputs, [tensor((BATCH, UNITS))], options, version=3)
    assert_steps_agree(model, weights.inputs((BATCH, INPUT), 4), tolerance=TOLERANCE)


@pytest.mark.parametrize("time_major", [False, True])
@KINDS_OF_WEIGHTS
def test_sequences_agree_with_the_official_kernel(hybrid, asymmetric, time_major):
    weights = Weights(2, hybrid=hybrid)
    leading = (TIME, BATCH) if time_major else (BATCH, TIME)
    options = SequenceRNNOptions(
        time_major=time_major,
        fused_activation_function=Act.TANH,
        asymmetric_quantize_inputs=asymmetric,
    )
    inputs = [tensor((*leading, INPUT)), *layer(weights)]
    outputs = [tensor((*leading, UNITS))]
    model = one_op_model("UNIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, options, version=3)
    assert_steps_agree(model, weights.inputs((*leading, INPUT)), tolerance=TOLERANCE)


def bidirectional(weights, *, time_major=True, merge=True, aux=None):
    leading, widths = (TIME, BATCH) if time_major else (BATCH, TIME), (UNITS, UNITS + 1)
    inputs = [tensor((*leading, INPUT)), *layer(weights), *layer(weights, UNITS + 1)]
    inputs.append(tensor((*leading, INPUT)) if aux else None)
    weighted = aux == "weighted"
    inputs += [weights.matrix(n, INPUT) if weighted else None for n in widths]
    outputs = [tensor((*leading, n)) for n in ([sum(widths)] if merge else widths)]
    options = BidirectionalSequenceRNNOptions(
        time_major=time_major, merge_outputs=merge, fused_activation_function=Act.TANH
    )
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, options, version=3)
    extra = weights.inputs((*leading, INPUT)) if aux else [[]] * 3
    both = zip(weights.inputs((*leading, INPUT)), extra, strict=True)
    return model, [x + y for x, y in both]


CASES = {
    "merged": {},
    "two outputs": {"merge": False},
    "batch first": {"time_major": False},
    "batch first, two outputs": {"time_major": False, "merge": False},
    "stacked with cross links": {"aux": "weighted"},
    "stacked without cross links": {"aux": "plain"},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_both_directions_agree_with_the_official_kernel(case):
    model, steps = bidirectional(Weights(3), **case)
    assert_steps_agree(model, steps, tolerance=TOLERANCE)


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("hybrid", [False, True])
def test_a_second_input_without_weights_is_read_in_both_orders(hybrid, merge):
    """Which LiteRT does with the time first alone."""
    results = []
    for time_major in (False, True):
        model, _ = bidirectional(
            Weights(3, hybrid=hybrid), time_major=time_major, merge=merge, aux="plain"
        )
        steps = [np.random.default_rng(i).normal(size=(BATCH, TIME, INPUT)) for i in (1, 2)]
        steps = [np.float32(x.swapaxes(0, 1) if time_major else x) for x in steps]
        outputs = delegraph_run(model, [steps])[0]
        results.append([y.swapaxes(0, 1) if time_major else y for y in outputs])
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_hybrid_directions_agree_where_the_official_kernel_is_sound():
    model, steps = bidirectional(Weights(4, hybrid=True), time_major=False, merge=False)
    assert_steps_agree(model, steps, tolerance=TOLERANCE)


def test_both_refuse_recurrent_weights_that_do_not_fit():
    inputs = [tensor((BATCH, INPUT)), *layer(Weights())]
    inputs[2] = constant(np.zeros((UNITS + 1, UNITS), np.float32))
    model = one_op_model("RNN", inputs, [tensor((BATCH, UNITS))], RNNOptions())
    with pytest.raises(RuntimeError):
        official_run(model, [])
    with pytest.raises(RuntimeError, match=r"shape \[6, 5\], expected \[5, 5\]"):
        delegraph_run(model, [])


def test_one_weighted_direction_is_refused():
    weights = Weights()
    inputs = [tensor((TIME, BATCH, INPUT)), *layer(weights), *layer(weights)]
    inputs += [tensor((TIME, BATCH, INPUT)), weights.matrix(UNITS, INPUT), None]
    options = BidirectionalSequenceRNNOptions(time_major=True, merge_outputs=True)
    outputs = [tensor((TIME, BATCH, 2 * UNITS))]
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_RNN", inputs, outputs, options)
    with pytest.raises(RuntimeError, match="only one direction"):
        delegraph_run(model, [])
