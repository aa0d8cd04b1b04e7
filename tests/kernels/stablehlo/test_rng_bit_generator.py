"""STABLEHLO_RNG_BIT_GENERATOR, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.enums import RngAlgorithm
from delegraph.schema.options import StablehloRngBitGeneratorOptions
from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

OP = "STABLEHLO_RNG_BIT_GENERATOR"
STATES = [[0, 0], [1, 2], [(1 << 64) - 1, (1 << 64) - 2], [5, (1 << 32) - 2]]
CASES = [
    *((algorithm, state) for algorithm in RngAlgorithm for state in STATES),
    (RngAlgorithm.PHILOX, [1, 2, 3]),
    (RngAlgorithm.DEFAULT, [1, (1 << 32) - 1, 1 << 63]),
]


def options(algorithm):
    return StablehloRngBitGeneratorOptions(algorithm=algorithm)


def outputs(state, shape, kind):
    return [tensor(np.shape(state), "UINT64"), tensor(shape, kind)]


@pytest.mark.parametrize("kind", ["INT32", "INT64", "UINT32", "UINT64"])
@pytest.mark.parametrize(("algorithm", "state"), CASES)
def test_bits_and_states_are_the_official_ones(algorithm, state, kind):
    x = fed(np.array(state, np.uint64))
    assert_agrees(OP, [x], outputs(state, (3, 5), kind), options(algorithm))


def test_scalars_and_nothing_can_be_drawn():
    for shape in [(), (0, 3)]:
        x = fed(np.array([1, 2], np.uint64))
        assert_agrees(OP, [x], outputs([1, 2], shape, "INT32"), options(RngAlgorithm.PHILOX))


def test_a_threefry_state_of_three_numbers_is_refused():
    x, y = fed(np.array([1, 2, 3], np.uint64)), outputs([1, 2, 3], (4,), "INT32")
    message = r"THREEFRY state has 3 numbers, expected \(2,\)"
    assert_both_refuse(OP, [x], y, options(RngAlgorithm.THREEFRY), match=message)


def test_float_bits_are_refused():
    x, y = fed(np.array([1, 2], np.uint64)), outputs([1, 2], (4,), "FLOAT32")
    assert_both_refuse(OP, [x], y, options(RngAlgorithm.PHILOX), match="type FLOAT32")


def test_a_node_without_an_algorithm_is_refused():
    x, y = fed(np.array([1, 2], np.uint64)), outputs([1, 2], (4,), "INT32")
    assert_both_refuse(OP, [x], y, match="expected an algorithm")
