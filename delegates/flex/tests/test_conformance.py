"""Delegraph's conformance kit for both executors, with operators that are builtin ones, too.

A case is one of the kit's own with its operator rewritten by ``flexify``; what the builtin kernels
compute is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from delegraph.schema import read_model
from delegraph.testing import DelegateConformance, OperatorCase, Subject, cases, trial_of
from delegraph.testing.conformance.features import is_extreme
from delegraph.testing.conformance.operator_models import palette_cases
from delegraph.testing.conformance.subject import installed_subject
from delegraph.testing.delegate_conformance import failures_folder
from delegraph.testing.operator_case import KeptCases
from delegraph_flex import CannotFlexify, flexify
from delegraph_flex.capabilities import capabilities
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.rewrite_rules import RULES

EXECUTORS = ("numpy", *(["tensorflow"] if has_tensorflow() else []))
RANDOM_CASES = 6


class TestExecutors(DelegateConformance):
    examples = 30

    def subjects(self, config: pytest.Config) -> list[Subject]:
        found = []
        made = partial(rewritten_cases, config.getoption("delegate_quick"))
        for executor in EXECUTORS:
            subject = installed_subject(f"flex:executor={executor}")
            name, folder = f"flex:executor={executor}", failures_folder(config)
            found.append(replace(subject, name=name, cases=KeptCases(made), folder=folder))
        return found

    def test_every_operator_that_flexify_writes_is_claimed(self, subject: Subject) -> None:
        claimed = {op for claim in capabilities().claims for op in claim.operators}
        assert {case.op for case in subject.cases} == claimed


@cache
def rewritten_cases(is_sample: bool) -> tuple[OperatorCase, ...]:
    """Return cases of each Flex operator: of each type some, with shapes of their own and equal.

    A sample has one of each type.
    """
    found = []
    for op in sorted(RULES):
        own = cases(op, count=RANDOM_CASES)
        sources = [(own, 1)] if is_sample else [(palette_cases(op), 1), (own, 2)]
        for source, limit in sources:
            of_type: Counter[tuple[str, ...]] = Counter()
            for case in source:
                if of_type[case.types()] < limit and not is_quantised(case):
                    made = list(rewritten(op, case))
                    of_type[case.types()] += bool(made)
                    found += made
    return tuple(found)


def is_quantised(case: OperatorCase) -> bool:
    """Whether a tensor has a scale, which TensorFlow's operators do not know."""
    tensors = (case.records.subgraphs or ())[0].tensors or ()
    return any(t.quantization is not None and t.quantization.scale is not None for t in tensors)


def rewritten(op: str, case: OperatorCase) -> Iterator[OperatorCase]:
    """Yield a case of each Flex operator that *op* becomes; none if it cannot be rewritten.

    Nor of infinities and the like: builtin kernels clamp them, TensorFlow's let them pass.
    """
    if any(is_extreme(array) for step in case.steps for array in step):
        return  # known before the case runs
    right = trial_of(case)
    if right is None or "extreme-values" in right.features:
        return
    try:
        content = flexify(right.case.model(), [op])
    except CannotFlexify:
        return
    records = read_model(np.frombuffer(content, np.uint8))
    whole = replace(right.case, records=records, reference=right.case.records)
    names = [code.custom_code for code in records.operator_codes or ()]
    yield from (replace(whole, op=name) for name in names if name)
