"""Delegraph's conformance kit at every level of instructions that this processor has.

Of the operators, one of each kind, and a sample of all of them; everything takes minutes. The
installed delegate is tried in full by ``pytest --pyargs delegraph.testing --delegate numba_cpu``,
or ``numba_cpu:cpu=generic``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from delegraph import Capabilities
from delegraph.testing import DelegateConformance, Subject, Trial, subject_of
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.placements import placings
from delegraph.testing.conformance.soundness import VALUES_ONLY
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.options import NumbaCpuOptions

OF_EVERY_LEVEL = ("ADD", "AVERAGE_POOL_2D", "CONV_2D", "LOGISTIC", "MEAN", "SOFTMAX")
OF_THE_BEST = ("CONCATENATION", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "RESIZE_BILINEAR")


class TestEveryLevel(DelegateConformance):
    """One of each kind of operator, with two threads; other operators for the best level.

    A sample tries the best level with those others alone.
    """

    examples = 5

    def subjects(self, config: pytest.Config) -> list[Subject]:
        best, *levels = [level.name for level in supported_levels()]
        if not config.getoption("delegate_quick") or not levels:
            levels.insert(0, best)
        found = [_subject(f"cpu={level}", level, OF_EVERY_LEVEL) for level in levels]
        return [*found, _subject("more", best, OF_THE_BEST)]

    def test_nothing_unclaimed_is_taken(
        self, subject: Subject, request: pytest.FixtureRequest
    ) -> None:
        """Of any operator: ``subject`` has the claims of some alone."""
        claimed = subject.make().capabilities()
        for trial in _taken(subject):
            needed = trial.features - VALUES_ONLY
            assert all(claimed.covers(form, needed) for form in trial.forms), trial.case


def _subject(name: str, level: str, operators: Sequence[str]) -> Subject:
    make = partial(NumbaCpuDelegate, NumbaCpuOptions(cpu=level, num_threads=2))
    subject = subject_of(make, _claims_of(operators, make().capabilities()))
    return replace(subject, name=f"numba_cpu:{name}")


def _claims_of(operators: Sequence[str], claimed: Capabilities) -> Capabilities:
    found = [claim for claim in claimed.claims if set(operators).intersection(claim.operators)]
    return Capabilities(found, tolerance=claimed.tolerance)


def _taken(subject: Subject) -> Iterator[Trial]:
    """Yield the models whose operator the delegate takes: many of some, a few of every other."""
    for op in subject.operators:
        yield from (made.trial for made in attempts(subject, op) if made.is_taken)
    for placing in placings(subject):
        op = placing.trial.case.op
        if any(node.delegate is not None and node.op == op for node in placing.nodes):
            yield placing.trial


@pytest.mark.repetition(0)  # it takes minutes
def test_a_sample_of_all_operators_passes() -> None:
    kit = ("--pyargs", "delegraph.testing", "--delegate", "numba_cpu", "--delegate-quick")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *kit)
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
