"""Trials are made when they are asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delegraph import Capabilities, Claim
from delegraph.testing.conformance import trials
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import subject_of
from delegraph.testing.conformance.trials import gallery_for
from delegraph.testing.operator_case import OperatorCase
from support.seeded_faults import SoundDelegate


def test_a_gallery_runs_models_of_no_operator_before_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    trial_of = trials.trial_of

    def noted(case: OperatorCase) -> trials.Trial | None:
        ran.append(case.op)
        return trial_of(case)

    monkeypatch.setattr(trials, "trial_of", noted)
    trials.gallery_of.cache_clear()
    delegate = subject_of(SoundDelegate).make()
    first = next(gallery_for(delegate, 1))
    assert set(ran) == {first.case.op}
    assert next(gallery_for(delegate, 1)) is first


def test_subjects_share_what_is_right_for_a_case() -> None:
    claims = Capabilities([Claim("ADD", "FLOAT32", versions=(1, 2))])
    effort = replace(FULL, random_cases=2, enough=2, seeds=1)
    one, other = (
        replace(subject_of(SoundDelegate), capabilities=claims, effort=effort) for _ in range(2)
    )
    found = [[made.trial for made in attempts(each, "ADD")] for each in (one, other)]
    assert len(found[0]) > 2
    assert all(mine is theirs for mine, theirs in zip(*found, strict=True))
