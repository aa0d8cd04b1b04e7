import numpy as np

from delegraph.kernels.signal.fft_auto_scale import largest_magnitude


def slow(values):
    """The definition, in 16 bits."""
    largest = 0
    for value in values:
        if value > largest:
            largest = value
        elif -value > largest:
            largest = (-value + 2**15) % 2**16 - 2**15
    return largest


def test_the_largest_magnitude_is_found_as_in_16_bits():
    rng = np.random.default_rng(0)
    for _ in range(500):
        x = rng.choice([-(2**15), -9, -3, -1, 0, 2, 7], rng.integers(1, 7)).astype(np.int16)
        assert largest_magnitude(x) == slow(x.tolist()), x
