"""RFFT2D, against the official interpreter and the definition; IRFFT2D, against NumPy.

The official Python package does not register IRFFT2D.
"""

import numpy as np
import pytest

from delegraph.testing import constant, delegraph_outputs, fed
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays

SIZES = [
    ((8, 16), (8, 16)),
    ((3, 5, 7), (4, 8)),
    ((2, 3, 9, 20), (8, 16)),
    ((1, 1, 512), (1, 512)),
    ((4, 6), (2, 2)),
    ((4, 6), (1, 2)),
    ((3, 1, 7), (4, 8)),
]


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


def inverse(x, length, given=constant):
    inputs = [fed(x), given(np.array(length, np.int32))]
    return delegraph_outputs(*model_and_arrays("IRFFT2D", inputs, ["FLOAT32"]))[0]


def image(shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(8, 16), (4, 4), (1, 8), (2, 2), (3, 2, 8, 4)])
def test_the_inverse_of_a_transform_is_the_image(shape, given):
    x = image(shape)
    frequencies = np.fft.rfft2(x).astype(np.complex64)
    y = inverse(frequencies, shape[-2:], given)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-5)


def test_frequencies_are_cut_or_padded():
    frequencies = np.fft.rfft2(image((8, 8))).astype(np.complex64)
    padded = np.zeros((16, 9), np.complex64)
    padded[:8, :5] = frequencies
    np.testing.assert_array_equal(inverse(frequencies, (16, 16)), inverse(padded, (16, 16)))
    np.testing.assert_array_equal(
        inverse(frequencies, (4, 4)), inverse(frequencies[:4, :3].copy(), (4, 4))
    )


def test_what_contradicts_a_real_image_is_not_read():
    frequencies = np.fft.rfft2(image((8, 8))).astype(np.complex64)
    expected = inverse(frequencies, (8, 8))
    frequencies[5:, 0] = 99  # the first column counts down to the middle
    frequencies[1:4, -1] = 99  # the last one from the middle on
    frequencies[[0, 4], 0] += 99j
    np.testing.assert_array_equal(inverse(frequencies, (8, 8)), expected)


def test_sizes_that_are_no_powers_of_two_are_refused():
    with pytest.raises(RuntimeError, match=r"fft_length is \[8, 6\]"):
        inverse(np.zeros((8, 4), np.complex64), (8, 6))
