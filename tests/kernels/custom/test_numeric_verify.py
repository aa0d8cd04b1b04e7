"""NumericVerify, against the official interpreter."""

import logging

import numpy as np
import pytest
from flatbuffers import flexbuffers

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse

INTEGERS = {"UINT8": np.uint8, "INT8": np.int8, "INT16": np.int16}


def options(tolerance, log_if_failed):
    return bytes(flexbuffers.Dumps({"tolerance": float(tolerance), "log_if_failed": log_if_failed}))


def inputs(kind, error=0.0, zero_point=None):
    point = (0 if kind == "INT16" else 3) if zero_point is None else zero_point
    q = np.arange(20, 40, dtype=INTEGERS[kind]).reshape(4, 5)
    reference = ((q.astype(np.float32) - point) * np.float32(0.3)).astype(np.float32)
    reference[2, 3] += np.float32(error)
    return [fed(q, kind, scale=0.3, zero_point=point), fed(reference)]


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("is_strict", [True, False])
def test_differences_are_the_official_ones(kind, is_strict):
    given = inputs(kind, error=0.2)
    assert_agrees("NumericVerify", given, ["FLOAT32"], custom_options=options(5, is_strict))


def test_float16_is_only_widened():
    x = np.float16([[1.5, -2, 1000.5]])
    given = [fed(x), fed(np.float32([[1.5, -2.5, 1000]]))]
    assert_agrees("NumericVerify", given, ["FLOAT32"], custom_options=options(1, False))


@pytest.mark.parametrize("kind", INTEGERS)
def test_a_difference_beyond_the_tolerance_is_an_error(kind):
    given, message = inputs(kind, error=2), "element 13 of"
    chosen = options(5, True)
    assert_both_refuse("NumericVerify", given, ["FLOAT32"], custom_options=chosen, match=message)


def test_a_small_tolerance_checks_nothing():
    given = inputs("INT8", error=2)
    assert_agrees("NumericVerify", given, ["FLOAT32"], custom_options=options(0.05, True))


def test_statistics_are_logged(caplog):
    with caplog.at_level(logging.INFO, "delegraph"):
        given = inputs("INT8", error=2)
        assert_agrees("NumericVerify", given, ["FLOAT32"], custom_options=options(5, False))
    assert "largest 2" in caplog.text


def test_a_float_input_is_refused():
    x = np.zeros((2, 2), np.float32)
    given, message = [fed(x), fed(x + 1)], "type FLOAT32, expected one of"
    chosen = options(5, True)
    assert_both_refuse("NumericVerify", given, ["FLOAT32"], custom_options=chosen, match=message)
