"""BIDIRECTIONAL_SEQUENCE_LSTM, against the official interpreter."""

import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import BidirectionalSequenceLSTMOptions
from delegraph.testing import one_op_model, tensor
from delegraph.testing.recurrent_layers import Weights, gates, lstm_weights, state
from support.consecutive import assert_steps_agree, delegraph_run

TIME, INPUT, CELL = 4, 3, 4


def bidirectional(
    weights,
    *,
    batch=2,
    time_major=True,
    merge=True,
    aux=None,
    n_aux=INPUT,
    n_output=CELL,
    asymmetric=False,
    **layer,
):
    leading = (TIME, batch) if time_major else (batch, TIME)
    cifg = layer.get("cifg", False)

    def aux_weights():
        if aux != "weighted":
            return [None] * 4
        return gates(lambda: weights.matrix(CELL, n_aux), cifg=cifg)

    inputs = [
        tensor((*leading, INPUT)),
        *lstm_weights(weights, INPUT, CELL, n_output, **layer),
        *lstm_weights(weights, INPUT, CELL, n_output, **layer),
        *(state(batch, n) for n in (n_output, CELL, n_output, CELL)),
        tensor((*leading, n_aux)) if aux else None,
        *aux_weights(),
        *aux_weights(),
    ]
    widths = [2 * n_output] if merge else [n_output, n_output]
    options = BidirectionalSequenceLSTMOptions(
        fused_activation_function=Act.TANH,
        cell_clip=0.8,
        proj_clip=0.7,
        merge_outputs=merge,
        time_major=time_major,
        asymmetric_quantize_inputs=asymmetric,
    )
    outputs = [tensor((*leading, n)) for n in widths]
    model = one_op_model("BIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs, options, version=3)
    steps = weights.inputs((*leading, INPUT))
    if aux:
        extra = weights.inputs((*leading, n_aux))
        steps = [x + y for x, y in zip(steps, extra, strict=True)]
    return model, steps


CASES = {
    "merged": {},
    "two outputs": {"merge": False},
    "batch first": {"merge": False, "time_major": False},
    "batch first, merged": {"batch": 1, "time_major": False},
    "everything": {
        "cifg": True,
        "peephole": True,
        "n_output": 3,
        "projection": True,
        "projection_bias": True,
    },
    "stacked with cross links": {"aux": "weighted", "n_aux": 6},
    "cross links, coupled": {"aux": "weighted", "n_aux": 6, "cifg": True},
    "stacked without cross links": {"aux": "plain"},
}
KINDS = {"float": (False, False), "hybrid": (True, False), "asymmetric hybrid": (True, True)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize(("hybrid", "asymmetric"), KINDS.values(), ids=KINDS.keys())
def test_consecutive_invokes_agree_with_the_official_kernel(hybrid, asymmetric, case):
    model, steps = bidirectional(Weights(3, hybrid=hybrid), asymmetric=asymmetric, **case)
    assert_steps_agree(model, steps, tolerance=1e-6)


def test_sequences_of_a_batch_do_not_mix():
    together, (step, *_) = bidirectional(Weights(4), batch=2, time_major=False)
    alone, _ = bidirectional(Weights(4), batch=1, time_major=False)
    ((both,),) = delegraph_run(together, [step])
    ((second,),) = delegraph_run(alone, [[step[0][1:]]])
    assert both[1:] == pytest.approx(second, rel=1e-6)


def test_aux_weights_without_an_aux_input_are_refused():
    weights = Weights()
    inputs = [tensor((TIME, 2, INPUT))]
    inputs += lstm_weights(weights, INPUT, CELL, CELL) + lstm_weights(weights, INPUT, CELL, CELL)
    inputs += [state(2, CELL) for _ in range(4)]
    inputs += [None, *(weights.matrix(CELL, INPUT) for _ in range(8))]
    options = BidirectionalSequenceLSTMOptions(merge_outputs=True, time_major=True)
    model = one_op_model(
        "BIDIRECTIONAL_SEQUENCE_LSTM", inputs, [tensor((TIME, 2, 2 * CELL))], options
    )
    with pytest.raises(RuntimeError, match="no such input"):
        delegraph_run(model, [])
