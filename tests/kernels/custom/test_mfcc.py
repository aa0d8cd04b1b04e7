"""Mfcc, against the official interpreter."""

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

DEFAULTS = {
    "upper_frequency_limit": 4000,
    "lower_frequency_limit": 20,
    "filterbank_channel_count": 40,
    "dct_coefficient_count": 13,
}
SPECTROGRAM = np.random.default_rng(0).uniform(0, 9, (2, 5, 513)).astype(np.float32)


def options(**values):
    return bytes(flexbuffers.Dumps(DEFAULTS | values))


@pytest.mark.parametrize("given", [fed, constant])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"lower_frequency_limit": 0, "dct_coefficient_count": 40},
        {"lower_frequency_limit": 300, "filterbank_channel_count": 7, "dct_coefficient_count": 1},
        {"upper_frequency_limit": 1000, "filterbank_channel_count": 100},
    ],
    ids=str,
)
def test_coefficients_agree_with_the_official_kernel(values, rate, given):
    inputs = [fed(SPECTROGRAM), given(np.array([rate], np.int32))]
    chosen = options(**values)
    assert_agrees("Mfcc", inputs, ["FLOAT32"], custom_options=chosen, tolerance=1e-5)


def test_silence_has_finite_coefficients():
    inputs = [fed(np.zeros((1, 1, 257), np.float32)), constant(np.array([16000], np.int32))]
    (y,) = assert_agrees("Mfcc", inputs, ["FLOAT32"], custom_options=options(), tolerance=1e-5)
    assert np.isfinite(y).all()


def test_frequencies_outside_the_limits_may_be_no_numbers():
    spectrogram = SPECTROGRAM.copy()
    spectrogram[..., -3:] = [-1, np.nan, np.inf]
    inputs = [fed(spectrogram), constant(np.array([16000], np.int32))]
    (y,) = assert_agrees("Mfcc", inputs, ["FLOAT32"], custom_options=options(), tolerance=1e-5)
    assert np.isfinite(y).all()


@pytest.mark.parametrize("shape", [(1, 0, 1), (2, 0, 257)], ids=str)
def test_no_sound_has_no_coefficients(shape):
    inputs = [fed(np.zeros(shape, np.float32)), constant(np.array([16000], np.int32))]
    (y,) = assert_agrees("Mfcc", inputs, ["FLOAT32"], custom_options=options())
    assert y.shape == (*shape[:2], 13)


def test_a_limit_beyond_the_spectrogram_leaves_zeros():
    inputs = [fed(SPECTROGRAM), constant(np.array([8000], np.int32))]
    given = options(upper_frequency_limit=5000)
    (y,) = assert_agrees("Mfcc", inputs, ["FLOAT32"], custom_options=given)
    assert not y.any()


def test_a_filter_bank_without_bands_is_refused():
    inputs = [fed(SPECTROGRAM), constant(np.array([16000], np.int32))]
    given, message = options(filterbank_channel_count=0), "expected a number from 1 up"
    assert_both_refuse("Mfcc", inputs, ["FLOAT32"], custom_options=given, match=message)


def test_more_coefficients_than_bands_are_refused():
    inputs = [fed(SPECTROGRAM), constant(np.array([16000], np.int32))]
    given, message = options(filterbank_channel_count=5), "13 coefficients of 5 bands"
    assert_both_refuse("Mfcc", inputs, ["FLOAT32"], custom_options=given, match=message)
