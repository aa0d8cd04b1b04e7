"""Refusals that a sweep of the core takes for known are entries of the page of differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delegraph.arithmetic.fixed_point import quantize_multipliers
from delegraph.errors import OperatorError
from delegraph.testing.sweep.documented_refusals import REFUSALS, documented_refusal

PAGE = Path(__file__).parents[3] / "docs" / "differences.md"


@pytest.mark.parametrize("name", REFUSALS)
def test_each_refusal_has_an_entry(name):
    assert f'id="{name}"' in PAGE.read_text()


def test_other_errors_are_not_documented():
    assert documented_refusal(OperatorError("tensor 2 has 3 elements, expected 4")) is None
    assert documented_refusal(None) is None


def test_a_scale_of_zero_is_documented():
    error = OperatorError("tensor 1 has scale 0.0, expected a positive one")
    assert documented_refusal(error) == "bytes-without-a-scale"


def test_a_multiplier_beyond_32_bits_is_documented():
    with pytest.raises(OperatorError) as refused:
        quantize_multipliers(np.array([2.0**31]))
    assert documented_refusal(refused.value) == "scales-too-far-apart"


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("(STRIDED_SLICE) failed: index 4 is outside a dimension of 1", "index-that-a-slice-drops"),
        ("(STRIDED_SLICE): the slice is [1], expected [2]", "lengths-beyond-the-dimension"),
        ("(FAKE_QUANT): num_bits is -1, expected 0 to 31", "fake-quant-of-other-bits"),
        ("cannot have shape [-8], expected dimensions from 0 to 9", "dimensions-beyond-int32"),
        ("(STABLEHLO_SHIFT_LEFT): [1] amounts for [2] elements", "shift-left-with-too-few-amounts"),
        ("(RNN): 't2' has shape [1, 1], expected [1]", "biases-of-another-rank"),
        (
            "'t0' has 1 scales of 32 elements each, expected blocks of the rows of [1, 1]",
            "dequantize-with-a-scale-a-block",
        ),
        ("(NumericVerify): 't1' has shape [2], expected [1]", "numeric-verify-of-another-shape"),
        ("(SVDF): tensor 't2' has type FLOAT16, expected", "weights-of-other-types"),
        ("new_axis_mask has bit 1, expected none beyond 1", "new-axes-beyond-the-indices"),
        ("(LSTM): tensor 't8' has type FLOAT16, expected", "weights-of-other-types"),
        (
            "(BIDIRECTIONAL_SEQUENCE_RNN): have types INT8 and INT2, expected the same",
            "weights-of-other-types",
        ),
        ("(PRELU): tensor 't1' has type FLOAT16, expected", "weights-of-other-types"),
        (
            "(BIDIRECTIONAL_SEQUENCE_RNN): have types FLOAT32 and FLOAT16, expected the same",
            "weights-of-other-types",
        ),
        ("(EMBEDDING_LOOKUP_SPARSE): 't4' has type FLOAT16, expected", "weights-of-other-types"),
    ],
)
def test_a_refusal_is_documented(text, entry):
    assert documented_refusal(OperatorError(text)) == entry
