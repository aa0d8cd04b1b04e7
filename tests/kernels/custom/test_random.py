"""Custom random operators, which the official Python package does not register: statistics."""

import numpy as np
import pytest

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.testing import constant, one_op_model, tensor

COUNT = 20000


def drawn(op, inputs, output, times=1):
    interpreter = Interpreter(model_content=one_op_model(op, inputs, [tensor((), output)]))
    interpreter.allocate_tensors()
    index = interpreter.get_output_details()[0]["index"]
    values = []
    for _ in range(times):
        interpreter.invoke()
        values.append(interpreter.get_tensor(index))
    return values


def many(kind=np.int32):
    return constant(np.array([COUNT], kind))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("output", ["FLOAT32", "FLOAT64"])
def test_uniform_numbers_fill_their_interval_evenly(output, kind):
    (x,) = drawn("RandomUniform", [many(kind)], output)
    counts = np.histogram(x, 10, (0, 1))[0]
    assert counts.sum() == COUNT
    assert abs(counts - COUNT / 10).max() < 250


@pytest.mark.parametrize("output", ["FLOAT32", "FLOAT64"])
def test_normal_numbers_have_mean_0_and_deviation_1(output):
    (x,) = drawn("RandomStandardNormal", [many()], output)
    assert abs(x.mean()) < 0.05
    assert abs(x.std() - 1) < 0.05


@pytest.mark.parametrize("output", ["INT8", "INT32", "INT64"])
def test_uniform_integers_reach_both_ends(output):
    inputs = [many(), constant(np.array(-2, np.int32)), constant(np.array(3, np.int32))]
    (x,) = drawn("RandomUniformInt", inputs, output)
    assert sorted(set(x.tolist())) == [-2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize("logits", [np.float32, np.float64])
def test_multinomial_follows_the_odds(logits):
    odds = constant(np.log(np.array([[1, 2, 1], [1, 0.5, 2.5]], logits)))
    (x,) = drawn("Multinomial", [odds, constant(np.array(COUNT, np.int32))], "INT64")
    for row, expected in zip(x, [[0.25, 0.5, 0.25], [0.25, 0.125, 0.625]], strict=True):
        assert abs(np.bincount(row, minlength=3) / COUNT - expected).max() < 0.02


def test_every_interpreter_draws_the_same_numbers_and_no_invoke_does():
    first, second = drawn("RandomUniform", [many()], "FLOAT32", times=2)
    again = drawn("RandomUniform", [many()], "FLOAT32")[0]
    np.testing.assert_array_equal(first, again)
    assert (first != second).mean() > 0.99


def test_a_range_that_descends_is_refused():
    inputs = [many(), constant(np.array(3, np.int32)), constant(np.array(3, np.int32))]
    with pytest.raises(RuntimeError, match="from 3 to 3, expected an ascending range"):
        drawn("RandomUniformInt", inputs, "INT32")


def test_an_end_of_the_interval_that_is_empty_is_refused():
    ends = [constant(np.array(end, np.int32)) for end in ([], 5)]
    with pytest.raises(NodeError, match="expected one element"):
        drawn("RandomUniformInt", [many(), *ends], "INT32")
