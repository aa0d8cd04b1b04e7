"""RFFT2D, against the official interpreter and the definition of the transform."""

import numpy as np
import pytest

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

SIZES = [
    ((8, 16), (8, 16)),
    ((3, 5, 7), (4, 8)),
    ((2, 3, 9, 20), (8, 16)),
    ((1, 1, 512), (1, 512)),
    ((4, 6), (2, 2)),
    ((4, 6), (1, 2)),
    ((3, 1, 7), (4, 8)),
]


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize(("shape", "length"), SIZES)
def test_transforms_agree_with_the_official_kernel(shape, length, given):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    inputs = [fed(x), given(np.array(length, np.int32))]
    assert_agrees("RFFT2D", inputs, ["COMPLEX64"], tolerance=1e-6)


def test_a_transform_is_a_sum_of_waves():
    x = np.random.default_rng(1).normal(size=(4, 8)).astype(np.float32)
    inputs = [fed(x), constant(np.array((4, 8), np.int32))]
    (y,) = assert_agrees("RFFT2D", inputs, ["COMPLEX64"], tolerance=1e-6)
    rows, columns = np.meshgrid(np.arange(4), np.arange(8), indexing="ij")
    for u in range(4):
        for v in range(5):
            wave = np.exp(-2j * np.pi * (u * rows / 4 + v * columns / 8))
            assert y[u, v] == pytest.approx((x * wave).sum(), abs=1e-5)


@pytest.mark.parametrize("length", [(6, 16), (8, 0), (-4, 4)])
def test_lengths_are_powers_of_two(length):
    inputs = [fed(np.zeros((8, 16), np.float32)), constant(np.array(length, np.int32))]
    message = "expected powers of two"
    assert_both_refuse("RFFT2D", inputs, ["COMPLEX64"], match=message)


def test_a_vector_is_refused():
    inputs = [fed(np.zeros(8, np.float32)), constant(np.array((1, 8), np.int32))]
    message = "expected 2 dimensions or more"
    assert_both_refuse("RFFT2D", inputs, ["COMPLEX64"], match=message)
