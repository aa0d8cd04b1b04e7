"""Trials are made when they are asked for."""

from __future__ import annotations

import pytest

from delegraph.testing.conformance import trials
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
