from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from delegraph.tools import Detections, GroundTruth, TruePicture
from delegraph.tools.evaluation.detection_precision import judged
from support.made_up_detections import found, made_up, truth

UNIT = (0.0, 0.0, 1.0, 1.0)
OVER = (0.0, 0.0, 1.5, 1.0)
HIT = found((UNIT, 1, 0.9))


def known(*pictures: TruePicture) -> GroundTruth:
    numbered = [dataclasses.replace(p, id=i) for i, p in enumerate(pictures, 1)]
    return GroundTruth("made.json", tuple(numbered))


def made_by_script(*pictures: TruePicture) -> GroundTruth:
    return known(*(dataclasses.replace(picture, pixels=None) for picture in pictures))


def mean(truth: GroundTruth, answers: list[Detections], *, prepared: bool = True) -> float:
    return judged(truth, [answers], prepared=prepared, resamples=1).precisions[0].tflite.mean


# -- what the official tool's script drops -----------------------------------------------------


def test_boxes_over_the_edge_are_dropped_or_kept() -> None:
    there = known(truth((UNIT, 1), (OVER, 2)))
    assert mean(there, [HIT]) == 1.0
    assert mean(there, [HIT], prepared=False) == 0.5


def test_pictures_without_objects_are_dropped_or_kept() -> None:
    there = known(truth((UNIT, 1)), truth())
    answers = [HIT, found((UNIT, 1, 0.95))]
    assert mean(there, answers) == 1.0
    assert mean(there, answers, prepared=False) == 0.5


def test_a_picture_stays_whose_boxes_are_all_dropped() -> None:
    there = known(truth((UNIT, 1)), truth((OVER, 1)))
    assert mean(there, [HIT, found((UNIT, 1, 0.95))]) == 0.5


def test_nothing_more_is_dropped_of_what_the_script_made() -> None:
    there = made_by_script(truth((UNIT, 1)), truth())
    assert mean(there, [HIT, found((UNIT, 1, 0.95))]) == 0.5


def test_coco_has_what_the_script_drops() -> None:
    pytest.importorskip("faster_coco_eval")
    there = known(truth((UNIT, 1), (OVER, 1)), truth())
    judgement = judged(there, [[HIT, found((UNIT, 1, 0.95))]], resamples=1)
    coco = judgement.precisions[0].coco
    assert coco is not None
    assert coco.figures["AP50"] == pytest.approx(51 * 0.5 / 101)  # one of two, after one miss


# -- several set-ups ---------------------------------------------------------------------------


def test_the_drop_is_of_the_same_pictures_in_every_draw() -> None:
    truths, answers = made_up(5)
    worse = [dataclasses.replace(a, scores=a.scores[::-1].copy()) for a in answers]
    first, same, other = judged(known(*truths), [answers, answers, worse], resamples=200).drops
    assert (first.drop, first.interval.low, first.interval.high) == (0.0, 0.0, 0.0)
    assert (same.drop, same.interval.low, same.interval.high) == (0.0, 0.0, 0.0)
    assert other.interval.low <= other.drop <= other.interval.high
    assert other.drop > 0


def test_a_drop_of_coco_is_that_of_its_first_figure() -> None:
    pytest.importorskip("faster_coco_eval")
    there = known(truth((UNIT, 1)))
    half = found(((0.0, 0.0, 1.0, 0.72), 1, 0.9))
    judgement = judged(there, [[HIT], [half]], resamples=1)
    assert judgement.coco_drops is not None
    assert [d.drop for d in judgement.drops] == [0.0, 0.5]
    assert [d.drop for d in judgement.coco_drops] == [0.0, 0.5]
    interval = judgement.coco_drops[1].interval
    assert (interval.low, interval.high) == (0.5, 0.5)


def test_each_definition_has_its_own_interval() -> None:
    pytest.importorskip("faster_coco_eval")
    stray = found((UNIT, 1, 0.9), (UNIT, 7, 0.9))
    shown = judged(known(truth((UNIT, 1))), [[stray]], resamples=3).precisions[0].to_json()
    assert shown["tflite"]["interval"] == {"low": 0.5, "high": 0.5, "confidence": 0.95}
    assert shown["coco"]["interval"] == {"low": 1.0, "high": 1.0, "confidence": 0.95}


def test_the_interval_gets_narrower_with_more_pictures() -> None:
    widths = []
    for pictures in (20, 320):
        truths, answers = made_up(1, pictures)
        interval = judged(known(*truths), [answers], resamples=200).precisions[0].interval
        widths.append(interval.high - interval.low)
    assert 2 < widths[0] / widths[1] < 8  # 4 by the root of the numbers


def test_the_seed_decides_the_interval() -> None:
    truths, answers = made_up(2)
    intervals = [
        judged(known(*truths), [answers], resamples=50, seed=seed).precisions[0].interval
        for seed in (0, 0, 1)
    ]
    assert intervals[0] == intervals[1] != intervals[2]


# -- what is missing ---------------------------------------------------------------------------


def test_the_reason_why_there_is_no_coco_is_told() -> None:
    judgement = judged(made_by_script(truth((UNIT, 1))), [[HIT], [HIT]], resamples=1)
    assert judgement.without_coco is not None
    assert "which 'made.json' lacks" in judgement.without_coco
    assert judgement.precisions[0].coco is None
    assert judgement.precisions[0].coco_interval is None
    assert judgement.coco_drops is None


def test_without_any_object_there_is_no_figure() -> None:
    judgement = judged(known(truth()), [[HIT]], resamples=1)
    assert np.isnan(judgement.precisions[0].tflite.mean)
    assert np.isnan(judgement.precisions[0].interval.low)


def test_detections_that_are_no_numbers_are_counted() -> None:
    broken = dataclasses.replace(HIT, no_numbers=3)
    judgement = judged(known(truth((UNIT, 1)), truth()), [[broken, broken]], resamples=1)
    assert judgement.precisions[0].no_numbers == 6
