"""A sample compiles little, and finds what is wrong in one of many parts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest import SkipTest

from delegraph.testing.conformance import numbers, soundness
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.effort import QUICK
from delegraph.testing.conformance.generated import check_generated_models
from delegraph.testing.conformance.subject import Subject, subject_of
from delegraph.testing.delegate_conformance import CONTRACT
from support import seeded_faults as faulty

ENOUGH = 45
"""Partitions that may be compiled, if a second for each shall be under a minute."""


def quick(kernel: type[faulty.SoundKernel], folder: Path) -> Subject:
    return replace(subject_of(faulty.with_kernel(kernel)), folder=folder, effort=QUICK)


class Counts(faulty.SoundKernel):
    """Sound; counts its partitions."""

    partitions = 0

    def init(self, context, params):
        super().init(context, params)
        Counts.partitions += 1


def test_a_sample_compiles_few_partitions(tmp_path: Path) -> None:
    tested, Counts.partitions = quick(Counts, tmp_path), 0
    for check in CONTRACT:
        with suppress(SkipTest):
            check(tested)
    for op in tested.operators:
        soundness.claims_are_executed(tested, op)
        numbers.results_are_right(tested, op)
    soundness.nothing_unclaimed_is_taken(tested)
    check_generated_models(tested, 3)
    assert 20 < Counts.partitions < ENOUGH


def test_claimed_types_of_all_operators_are_compiled_at_once(tmp_path: Path) -> None:
    tested, Counts.partitions = quick(Counts, tmp_path), 0
    found = [made.trial.types for op in ("ADD", "MUL") for made in attempts(tested, op)]
    assert sorted(map(sorted, found)) == [["FLOAT32"], ["FLOAT32"], ["INT32"]]
    assert Counts.partitions == 1


def test_what_is_wrong_in_a_bundle_is_tried_alone(tmp_path: Path) -> None:
    tested = quick(faulty.WrongIntegers, tmp_path)
    assert numbers.results_by_type(tested, "ADD") == {"FLOAT32": "1/1", "INT32": "0/1"}
    assert numbers.results_by_type(tested, "MUL") == {"FLOAT32": "1/1"}
