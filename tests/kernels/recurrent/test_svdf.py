"""SVDF, against a slow definition and the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import TensorType
from delegraph.schema.options import SVDFOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph.testing.recurrent_layers import Weights, state
from support.consecutive import assert_steps_agree, delegraph_run, official_run
from support.corpus import corpus_file, needs_corpus

BATCH, INPUT, FILTERS, MEMORY = 2, 3, 8, 5


class Sixteenths(Weights):
    """Multiples of 1/16: float32 holds the sums of their products, in whatever order BLAS adds."""

    def matrix(self, *shape):
        made = super().matrix(*shape)
        if made.type != TensorType.FLOAT32:
            return made
        values = made.data.view(np.float32).reshape(shape)
        return constant(np.round(values * 16) / np.float32(16))

    def inputs(self, shape, steps=3):
        return [[np.round(x * 16) / np.float32(16)] for (x,) in super().inputs(shape, steps)]


def float_model(
    weights,
    *,
    rank=2,
    memory=MEMORY,
    n_input=INPUT,
    bias=True,
    activation=Act.NONE,
    asymmetric=False,
):
    units = FILTERS // rank
    inputs = [
        tensor((BATCH, n_input)),
        weights.matrix(FILTERS, n_input),
        weights.matrix(FILTERS, memory),
        weights.vector(units) if bias else None,
        state(BATCH, FILTERS * memory),
    ]
    options = SVDFOptions(
        rank=rank, fused_activation_function=activation, asymmetric_quantize_inputs=asymmetric
    )
    return one_op_model("SVDF", inputs, [tensor((BATCH, units))], options, version=3)


CASES = {
    "rank 1": {"rank": 1},
    "rank 4": {"rank": 4},
    "no bias": {"bias": False, "activation": Act.RELU},
    "TANH": {"activation": Act.TANH},
    "one time step": {"memory": 1},
    "wide": {"n_input": 700, "activation": Act.RELU6},
}
KINDS = {"float": (False, False), "hybrid": (True, False), "asymmetric hybrid": (True, True)}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize(("hybrid", "asymmetric"), KINDS.values(), ids=KINDS.keys())
def test_consecutive_invokes_agree_with_the_official_kernel(hybrid, asymmetric, case):
    make = Sixteenths if case is CASES["wide"] else Weights
    weights = make(1, hybrid=hybrid)
    model = float_model(weights, asymmetric=asymmetric, **case)
    steps = weights.inputs((BATCH, case.get("n_input", INPUT)), 8)
    assert_steps_agree(model, steps, tolerance=2e-6)


def test_a_unit_is_the_weighted_window_of_its_filters():
    rng = np.random.default_rng(2)
    features, times = rng.normal(size=(4, INPUT)), rng.normal(size=(4, MEMORY))
    inputs = [tensor((1, INPUT)), constant(features.astype(np.float32))]
    inputs += [constant(times.astype(np.float32)), None, state(1, 4 * MEMORY)]
    model = one_op_model("SVDF", inputs, [tensor((1, 2))], SVDFOptions(rank=2))
    x = rng.normal(size=(9, INPUT)).astype(np.float32)
    outputs = delegraph_run(model, [[row[None]] for row in x])
    filtered = np.vstack([np.zeros((MEMORY - 1, 4)), x @ features.T])  # [T, F]
    for t, (y,) in enumerate(outputs):
        filters = (filtered[t : t + MEMORY].T * times).sum(axis=1)
        np.testing.assert_allclose(y[0], filters.reshape(2, 2).sum(axis=1), rtol=1e-5, atol=1e-5)


def integer_model(
    rng, *, rank=2, n_input=INPUT, filters=FILTERS, memory=MEMORY, activation=Act.RELU
):
    units = filters // rank
    features = rng.integers(-128, 128, (filters, n_input)).astype(np.int8)
    times = rng.integers(-32768, 32768, (filters, memory)).astype(np.int16)
    inputs = [
        tensor((BATCH, n_input), "INT8", scale=0.02, zero_point=-7),
        constant(features, scale=0.01),
        constant(times, scale=2e-5),
        constant(rng.integers(-5000, 5000, units).astype(np.int32), scale=1e-5),
        state(BATCH, filters * memory, type="INT16", scale=5e-4),
    ]
    y = tensor((BATCH, units), "INT8", scale=0.05, zero_point=-20)
    options = SVDFOptions(rank=rank, fused_activation_function=activation)
    return one_op_model("SVDF", inputs, [y], options, version=3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "size", [{}, {"rank": 1}, {"n_input": 600, "filters": 64, "memory": 20}], ids=str
)
def test_integer_layers_are_bit_exact(size, seed):
    rng = np.random.default_rng(seed)
    model = integer_model(rng, **size)
    shape = (BATCH, size.get("n_input", INPUT))
    assert_steps_agree(model, [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(8)])


def test_integer_layers_have_no_activation_but_relu():
    model = integer_model(np.random.default_rng(0), activation=Act.NONE)
    with pytest.raises(RuntimeError):
        official_run(model, [[np.zeros((BATCH, INPUT), np.int8)]])
    with pytest.raises(RuntimeError, match="expected RELU"):
        delegraph_run(model, [])


def test_both_refuse_a_rank_that_does_not_divide_the_filters():
    model = float_model(Weights(), rank=3)
    with pytest.raises(RuntimeError):
        official_run(model, [])
    with pytest.raises(RuntimeError, match="rank is 3, expected a divisor of 8"):
        delegraph_run(model, [])


@needs_corpus
def test_a_state_of_another_size_is_refused():
    model = corpus_file("LiteRT__svdf_calibrated").read_bytes()
    with pytest.raises(RuntimeError):
        official_run(model, [])
    with pytest.raises(RuntimeError, match=r"shape \[1, 9\], expected \[1, 42\]"):
        delegraph_run(model, [])
