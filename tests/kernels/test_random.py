"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL, against the official interpreter."""

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.schema.options import RandomOptions
from delegraph.testing import constant, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse

SEEDS = [(1, 0), (0, 1), (7, -3), (-(1 << 40) + 5, (1 << 50) + 1)]
DISTRIBUTIONS = [("RANDOM_UNIFORM", 0.0), ("RANDOM_STANDARD_NORMAL", 1e-6)]


def seeds(seed, seed2):
    return RandomOptions(seed=seed, seed2=seed2)


def drawn(op, inputs, options, times=1, output="FLOAT32"):
    """Return what a model of *op* on constants gives at each of several invokes."""
    interpreter = Interpreter(model_content=one_op_model(op, inputs, [tensor((), output)], options))
    interpreter.allocate_tensors()
    output = interpreter.get_output_details()[0]["index"]
    values = []
    for _ in range(times):
        interpreter.invoke()
        values.append(interpreter.get_tensor(output))
    return values


@pytest.mark.parametrize("given", [fed, constant])
@pytest.mark.parametrize(("seed", "seed2"), SEEDS)
@pytest.mark.parametrize(("op", "tolerance"), DISTRIBUTIONS)
def test_seeds_give_the_official_numbers(op, tolerance, seed, seed2, given):
    shape = given(np.array([3, 7, 2], np.int32))
    assert_agrees(op, [shape], ["FLOAT32"], seeds(seed, seed2), tolerance=tolerance)


@pytest.mark.parametrize("op", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_each_invoke_goes_on_where_the_last_one_ended(op):
    long = drawn(op, [constant(np.array([16], np.int32))], seeds(3, 4))[0]
    short = drawn(op, [constant(np.array([8], np.int32))], seeds(3, 4), times=2)
    np.testing.assert_array_equal(np.concatenate(short), long)


def test_without_seeds_no_two_interpreters_draw_the_same():
    shape = constant(np.array([8], np.int32))
    a, b = (drawn("RANDOM_UNIFORM", [shape], seeds(0, 0))[0] for _ in range(2))
    assert (a != b).any()


def test_uniform_numbers_fill_their_interval_evenly():
    (x,) = drawn("RANDOM_UNIFORM", [constant(np.array([20000], np.int32))], seeds(0, 0))
    counts = np.histogram(x, 10, (0, 1))[0]
    assert counts.sum() == 20000
    assert abs(counts - 2000).max() < 250  # over five standard deviations


def test_normal_numbers_have_mean_0_and_deviation_1():
    (x,) = drawn("RANDOM_STANDARD_NORMAL", [constant(np.array([20000], np.int32))], seeds(0, 0))
    assert abs(x.mean()) < 0.05
    assert abs(x.std() - 1) < 0.05


@pytest.mark.parametrize("kind", ["INT32", "INT64"])
@pytest.mark.parametrize("given", [fed, constant])
def test_multinomial_draws_the_official_classes(given, kind):
    logits = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32) * 2
    logits[1, 2], logits[2, 0] = -np.inf, np.nan
    inputs = [given(logits), constant(np.array(101, np.int32))]
    assert_agrees("MULTINOMIAL", inputs, [kind], seeds(5, 6))


def test_multinomial_goes_on_where_the_official_one_does():
    from ai_edge_litert.interpreter import Interpreter as Official

    inputs = [constant(np.zeros((2, 9), np.float32)), constant(np.array(7, np.int32))]
    model = one_op_model("MULTINOMIAL", inputs, [tensor((), "INT64")], seeds(1, 2))
    both = [Interpreter(model_content=model), Official(model_content=model)]
    for interpreter in both:
        interpreter.allocate_tensors()
    for _ in range(3):
        values = []
        for interpreter in both:
            interpreter.invoke()
            output = interpreter.get_output_details()[0]["index"]
            values.append(interpreter.get_tensor(output))
        np.testing.assert_array_equal(*values)


def test_multinomial_follows_the_odds():
    logits = constant(np.log(np.array([[1, 2, 1]], np.float32)))
    inputs = [logits, constant(np.array(20000, np.int32))]
    (x,) = drawn("MULTINOMIAL", inputs, seeds(0, 0), output="INT64")
    assert abs(np.bincount(x[0], minlength=3) / 20000 - [0.25, 0.5, 0.25]).max() < 0.02


def test_logits_without_classes_are_refused():
    inputs = [fed(np.zeros((2, 0), np.float32)), constant(np.array(3, np.int32))]
    message = "no classes"
    assert_both_refuse("MULTINOMIAL", inputs, ["INT64"], seeds(1, 2), match=message)


def test_a_shape_of_int64_is_refused():
    shape = fed(np.array([3], np.int64))
    message = "INT64, expected one of INT32"
    assert_both_refuse("RANDOM_UNIFORM", [shape], ["FLOAT32"], seeds(1, 2), match=message)
