"""Per-channel constants over long runs."""

import numpy as np
import pytest

from delegraph.arithmetic.channelwise import TILE, by_pattern, repeated


@pytest.mark.parametrize("channels", [1, 7, 511, 512, 3000, TILE + 1])
@pytest.mark.parametrize("rows", [0, 1, 2, 100])
def test_every_value_meets_its_channels_constant(channels, rows):
    constants = np.arange(channels, dtype=np.float64)
    x = np.arange(rows * channels, dtype=np.float64).reshape(rows, channels)
    y = np.zeros_like(x)
    pattern = repeated(constants)

    def store(x, y):
        assert x.size <= max(TILE, channels)
        np.add(x, pattern[: x.shape[-1]], out=y)

    by_pattern(store, len(pattern), x.reshape(-1), y.reshape(-1))
    np.testing.assert_array_equal(y, x + constants)


def test_no_channels_are_no_calls():
    by_pattern(lambda _: pytest.fail("called"), len(repeated(np.zeros(0))), np.zeros(0))
