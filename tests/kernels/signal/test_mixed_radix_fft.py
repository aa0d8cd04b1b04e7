import numpy as np
import pytest

from delegraph.kernels.signal.mixed_radix_fft import RealTransform, is_length

LENGTHS = [length for length in range(512) if is_length(length)]


@pytest.mark.parametrize(("type", "bound"), [("float32", 2e-6), ("int32", 5e-8), ("int16", 3e-3)])
def test_transforms_are_those_of_the_definition(type, bound):
    """The error, beside the largest number that fixed point holds or the loudest frequency.

    The sound is not loud: KISS FFT's sums of three overflow.
    """
    dtype, rng = np.dtype(type), np.random.default_rng(0)
    limit = 1.0 if dtype.kind == "f" else np.iinfo(dtype).max
    for length in LENGTHS:
        x = (rng.uniform(-0.3, 0.3, (2, length)) * limit).astype(dtype)
        expected = np.fft.rfft(x.astype(np.float64)) / (1 if dtype.kind == "f" else length)
        spectrum = RealTransform(length, dtype)(x).astype(np.float64)
        found = spectrum[:, ::2] + 1j * spectrum[:, 1::2]
        assert np.abs(found - expected).max() <= bound * max(limit, np.abs(expected).max()), length


def test_floats_come_back_as_often_as_the_length_is_long():
    rng = np.random.default_rng(1)
    for length in LENGTHS:
        x = rng.normal(size=(3, length)).astype(np.float32)
        there = RealTransform(length, x.dtype)(x)
        back = RealTransform(length, x.dtype, is_inverse=True)(there)
        np.testing.assert_allclose(back / length, x, atol=1e-5)


def test_lengths_are_twice_products_of_small_primes():
    def largest_factor(n):
        return max(p for p in range(2, n + 1) if n % p == 0 and all(p % q for q in range(2, p)))

    expected = [n for n in range(4, 512, 2) if largest_factor(n // 2) <= 5]
    assert expected == LENGTHS


def test_no_rows_give_no_rows():
    empty = np.zeros((0, 3, 8), np.float32)
    there = RealTransform(8, empty.dtype)(empty)
    assert RealTransform(8, empty.dtype, is_inverse=True)(there).shape == empty.shape
