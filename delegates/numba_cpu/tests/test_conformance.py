"""Delegraph's conformance kit at every level of instructions that this processor has.

Of the operators, one of each kind, since all of them take minutes. The installed delegate is tried
in full by ``pytest --pyargs delegraph.testing --delegate numba_cpu``, or ``numba_cpu:cpu=generic``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from delegraph import Capabilities
from delegraph.testing import DelegateConformance
from delegraph.testing.conformance.subject import Subject, subject_of
from delegraph_numba_cpu.cpu import supported_levels
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.plugin import NumbaCpuOptions

ONE_OF_EACH_KIND = [
    "ADD",
    "AVERAGE_POOL_2D",
    "CONCATENATION",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "LOGISTIC",
    "MEAN",
    "RESIZE_BILINEAR",
    "SOFTMAX",
]


class TestEveryLevel(DelegateConformance):
    """One of each kind of operator, with two threads."""

    examples = 5
    test_nothing_unclaimed_is_taken = None  # type: ignore[assignment]  # most claims are left out

    def subjects(self, config: pytest.Config) -> list[Subject]:
        found = []
        for level in supported_levels():
            make = partial(NumbaCpuDelegate, NumbaCpuOptions(cpu=level.name, num_threads=2))
            subject = subject_of(make, _of_each_kind(make().capabilities()))
            found.append(replace(subject, name=f"numba_cpu:cpu={level.name}"))
        return found


def _of_each_kind(claimed: Capabilities) -> Capabilities:
    kinds = [c for c in claimed.claims if set(ONE_OF_EACH_KIND).intersection(c.operators)]
    return Capabilities(kinds, tolerance=claimed.tolerance)
