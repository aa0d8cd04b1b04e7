"""What the kernels cannot compute they refuse while preparing: every operator, some of the ways.

``python tests/conformance/run_ill_formed.py`` tries them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from conformance.ill_formed import (
    complaint,
    foreign_error,
    is_valid,
    miscounted,
    oddly_quantized,
    wrongly_typed,
)
from conformance.judging import Judge
from delegraph.testing.operator_cases import cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS

EVERY = 8
ODD_EVERY = 3  # of 13 oddities for each tensor, so that all of them occur


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as judge:
        yield judge


@pytest.mark.parametrize("op", REGISTERED_OPERATORS)
def test_another_type_or_count_is_refused_in_time_or_computed_alike(op: str, judge: Judge) -> None:
    valid = next((case for case in cases(op, seed=3, count=12) if is_valid(case)), None)
    assert valid is not None
    first = int(np.random.default_rng(sum(map(ord, op))).integers(EVERY))
    some = islice(wrongly_typed(valid), first, None, EVERY)
    found = {name: complaint(name, case, judge) for name, case in (*some, *miscounted(valid))}
    assert {name: text for name, text in found.items() if text} == {}


@pytest.mark.parametrize("op", REGISTERED_OPERATORS)
def test_odd_scales_and_zero_points_lead_to_no_error_of_python(op: str) -> None:
    quantized = (case for case in cases(op, seed=3, count=12) if any(oddly_quantized(case)))
    case = next(filter(is_valid, quantized), None)
    some = () if case is None else islice(oddly_quantized(case), 0, None, ODD_EVERY)
    found = {name: foreign_error(changed) for name, changed in some}
    assert {name: text for name, text in found.items() if text} == {}
