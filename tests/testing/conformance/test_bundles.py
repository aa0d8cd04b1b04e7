"""A sample compiles little, and finds what is wrong in one of many parts."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from unittest import SkipTest

import pytest

from delegraph.testing.conformance import numbers, soundness
from delegraph.testing.conformance.bundles import attempts, right_in_bundles
from delegraph.testing.conformance.generated import check_generated_models
from delegraph.testing.conformance.run_reports import WITNESS, Working
from delegraph.testing.conformance.sampling import QUICK
from delegraph.testing.conformance.subject import Subject, subject_of
from delegraph.testing.conformance.trials import trials_of
from delegraph.testing.delegate_conformance import CONTRACT
from delegraph.testing.operator_cases import cases
from support import many_claims as engines
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


class RefusesShapes(Counts):
    """Its compiler fails on one of all shapes that there are."""

    def init(self, context, params):
        super().init(context, params)
        shapes = [context.tensors[i].shape for i in params.output_tensors]
        if shapes[0] != shapes[-1] and RefusesShapes.bad is None:
            RefusesShapes.bad = shapes[len(shapes) // 2]
        if RefusesShapes.bad in shapes:
            raise RuntimeError("internal compiler error")

    bad: tuple[int, ...] | None = None


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


def test_many_claims_cost_no_more_than_a_dozen_bundles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = replace(subject_of(engines.EngineDelegate), folder=tmp_path, effort=QUICK)
    told: Counter[type] = Counter()
    monkeypatch.setattr(WITNESS, "tell", lambda sign: told.update([type(sign)]))
    engines.EngineKernel.compiled = 0
    made = [each for op in tested.operators for each in attempts(tested, op)]
    assert sum(each.is_taken for each in made) > 60
    assert engines.EngineKernel.compiled < 12
    assert told[Working] < 60 * len(tested.operators)  # to see what they show


def test_a_bundle_that_cannot_be_compiled_is_cut_in_halves(tmp_path: Path) -> None:
    tested, Counts.partitions = quick(RefusesShapes, tmp_path), 0
    parts = [trial for op in ("ADD", "MUL") for trial in trials_of(islice(cases(op), 40))]
    parts = [part for part in parts if tested.claims(part.forms, part.features)][:20]
    made = list(right_in_bundles(tested, parts, len(parts)))
    assert len(parts) - 4 <= len(made) < len(parts)
    assert Counts.partitions <= 9
