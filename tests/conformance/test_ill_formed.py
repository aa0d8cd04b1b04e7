"""What the kernels cannot compute they refuse while preparing: every operator, some of the ways.

``python tests/conformance/run_ill_formed.py`` tries them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from conformance.ill_formed import complaint, is_valid, miscounted, wrongly_typed
from conformance.judging import Judge
from delegraph.testing.operator_cases import cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS

EVERY = 8


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
