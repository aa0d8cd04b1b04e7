"""A seeded part of the operator cases, through Delegraph and the official interpreter.

`make conformance` runs them all.
"""

from collections import Counter

import pytest

from conformance.judging import Judge
from conformance.run import run_operator
from delegraph.testing.operator_cases import MAKERS, cases
from delegraph.testing.registered_operators import MICRO_OPERATORS, REGISTERED_OPERATORS

PART = {"seed": 11, "count": 5}


@pytest.fixture(scope="module")
def judge():
    with Judge() as judge:
        yield judge


def test_every_registered_operator_has_cases():
    assert set(MAKERS) == {*REGISTERED_OPERATORS, *MICRO_OPERATORS}


def test_cases_are_the_same_each_time():
    for op in ("ADD", "CONV_2D", "LSTM"):
        first, second = ([c.model() for c in cases(op, **PART)] for _ in range(2))
        assert first == second


@pytest.mark.parametrize("op", REGISTERED_OPERATORS)
def test_cases_agree_with_the_official_interpreter(op, judge):
    result = run_operator(op, judge, every=2, **PART)
    assert [f"{case}: {verdict.detail}" for _, case, verdict in result.failures] == []
    assert Counter(result.verdicts)["same"]
