from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from delegraph.tools import CocoDefinition, Detections, Tally, TruePicture
from support.coco_reference import as_pycocotools, made_up_with_crowds
from support.made_up_detections import found, true_picture, truth

UNIT = (0.0, 0.0, 1.0, 1.0)


def mean(
    truths: Sequence[TruePicture], answers: Sequence[Detections], drawn: np.ndarray | None = None
) -> float:
    return Tally(CocoDefinition(), truths, answers).average_precisions(drawn).mean


# -- known by hand -----------------------------------------------------------------------------


def test_an_overlap_right_at_the_threshold_counts() -> None:
    answer = [found(((0.0, 0.0, 1.0, 0.5), 1, 0.9))]
    assert mean([truth((UNIT, 1))], answer) == pytest.approx(0.1)


def test_of_objects_that_it_overlaps_equally_the_last_is_taken() -> None:
    upper, lower = (0.0, 0.0, 0.75, 1.0), (0.25, 0.0, 1.0, 1.0)
    there = [truth((upper, 1), (lower, 1))]
    answer = [found((UNIT, 1, 0.9), (upper, 1, 0.8))]  # which leaves the upper one free
    result = Tally(CocoDefinition(), there, answer).average_precisions()
    assert result.by_threshold().tolist()[:6] == [1.0] * 6
    assert as_pycocotools(there, answer)[2] == 1.0  # at 0.75


def test_what_lies_in_a_crowd_is_no_miss() -> None:
    crowd = true_picture(
        1, np.array([UNIT, (0.0, 0.0, 0.5, 0.5)]), np.array([1, 1]), np.array([True, False])
    )
    inside, hit = ((0.5, 0.5, 0.6, 0.6), 1, 0.95), ((0.0, 0.0, 0.5, 0.5), 1, 0.9)
    assert mean([crowd], [found(inside, hit)]) == 1.0
    assert mean([crowd], [found(inside, inside, inside, hit)]) == 1.0


def test_what_reaches_out_of_a_crowd_is_a_miss() -> None:
    crowd = true_picture(
        1,
        np.array([(0.0, 0.0, 0.2, 0.2), (0.5, 0.5, 1.0, 1.0)]),
        np.array([1, 1]),
        np.array([True, False]),
    )
    answer = found(((0.0, 0.0, 0.9, 0.2), 1, 0.95), ((0.5, 0.5, 1.0, 1.0), 1, 0.9))
    assert mean([crowd], [answer]) == 0.5


def test_a_class_that_was_only_found_does_not_count() -> None:
    result = Tally(CocoDefinition(), [truth((UNIT, 1))], [found((UNIT, 1, 0.9), (UNIT, 7, 0.9))])
    assert result.average_precisions().mean == 1.0
    assert result.average_precisions().by_threshold().tolist() == [1.0] * 10


def test_no_more_than_a_hundred_of_a_class_count() -> None:
    misses = [((0.0, 0.0, 0.1, 0.1), 1, 0.5 + i / 1000) for i in range(100)]
    others = [((0.0, 0.0, 0.1, 0.1), 2, 0.5 + i / 1000) for i in range(100)]
    assert mean([truth((UNIT, 1))], [found(*misses, (UNIT, 1, 0.1))]) == 0.0
    last = found(*misses[1:], (UNIT, 1, 0.1), others[0])
    assert mean([truth((UNIT, 1))], [last]) == pytest.approx(0.01)
    assert mean([truth((UNIT, 1))], [found(*others, (UNIT, 1, 0.1))]) == 1.0


# -- as pycocotools has it ---------------------------------------------------------------------


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
