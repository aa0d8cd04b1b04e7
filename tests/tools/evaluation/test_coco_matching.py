from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from delegraph.tools import CocoDefinition, Detections, Tally, TruePicture
from support.coco_reference import as_pycocotools, made_up_with_crowds
from support.made_up_detections import found, truth

UNIT = (0.0, 0.0, 1.0, 1.0)


def mean(
    truths: Sequence[TruePicture], answers: Sequence[Detections], drawn: np.ndarray | None = None
) -> float:
    return Tally(CocoDefinition(), truths, answers).average_precisions(drawn).mean


def test_of_objects_that_it_overlaps_equally_the_last_is_taken() -> None:
    upper, lower = (0.0, 0.0, 0.75, 1.0), (0.25, 0.0, 1.0, 1.0)
    there = [truth((upper, 1), (lower, 1))]
    answer = [found((UNIT, 1, 0.9), (upper, 1, 0.8))]  # which leaves the upper one free
    result = Tally(CocoDefinition(), there, answer).average_precisions()
    assert result.by_threshold().tolist()[:6] == [1.0] * 6
    assert as_pycocotools(there, answer)[2] == 1.0  # at 0.75


@pytest.mark.parametrize("seed", range(6))
def test_the_mean_is_that_of_pycocotools(seed: int) -> None:
    truths, answers = made_up_with_crowds(seed)
    assert mean(truths, answers) == pytest.approx(as_pycocotools(truths, answers)[0], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_draw_is_that_of_pycocotools_with_pictures_repeated(seed: int) -> None:
    truths, answers = made_up_with_crowds(seed, 25)
    for i, answer in enumerate(answers):  # no ties: what is drawn twice would come in another order
        answer.scores[:] += i * 1e-4 + np.arange(len(answer.scores)) * 1e-6
    drawn = np.sort(np.random.default_rng(seed).integers(0, 25, 25))
    again = [dataclasses.replace(truths[i], id=number) for number, i in enumerate(drawn, 1)]
    expected = as_pycocotools(again, [answers[i] for i in drawn])[0]
    assert mean(truths, answers, drawn) == pytest.approx(expected, abs=1e-12)
