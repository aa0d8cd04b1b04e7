"""AudioSpectrogram, against the official interpreter."""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse


def options(**values):
    return bytes(flexbuffers.Dumps(values))


def sound(samples, channels):
    return fed(np.random.default_rng(0).normal(size=(samples, channels)).astype(np.float32))


@pytest.mark.parametrize("magnitude_squared", [False, True])
@pytest.mark.parametrize(
    ("samples", "window_size", "stride"),
    [(64, 16, 8), (100, 30, 7), (50, 8, 20), (16, 16, 1), (10, 16, 1)],
)
def test_spectrograms_agree_with_the_official_kernel(
    samples, window_size, stride, magnitude_squared
):
    given = options(window_size=window_size, stride=stride, magnitude_squared=magnitude_squared)
    inputs = [sound(samples, 2)]
    assert_agrees("AudioSpectrogram", inputs, ["FLOAT32"], custom_options=given, tolerance=2e-6)


def test_a_pure_tone_has_one_peak():
    tone = np.sin(2 * np.pi * 4 * np.arange(32) / 32).astype(np.float32)[:, None]
    given = options(window_size=32, stride=32, magnitude_squared=True)
    (y,) = assert_agrees(
        "AudioSpectrogram", [fed(tone)], ["FLOAT32"], custom_options=given, tolerance=2e-6
    )
    assert y[0, 0].argmax() == 4


@pytest.mark.parametrize("wrong", [{"window_size": 1, "stride": 1}, {"window_size": 8}])
def test_windows_too_small_are_refused(wrong):
    inputs, given = [sound(64, 1)], options(**wrong)
    message = "expected a number from"
    assert_both_refuse("AudioSpectrogram", inputs, ["FLOAT32"], custom_options=given, match=message)
