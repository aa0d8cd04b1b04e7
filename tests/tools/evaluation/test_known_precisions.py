"""Mean average precisions known by hand, and where the two definitions part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from delegraph.tools import (
    CocoDefinition,
    Detections,
    GroundTruth,
    Tally,
    TfliteDefinition,
    TruePicture,
)
from delegraph.tools.evaluation.coco_precision import coco_precision
from support.made_up_detections import found, true_picture, truth

Known = tuple[list[TruePicture], list[Detections], float, float]
"""Objects, detections, and the precision by TFLite's definition and by COCO's."""

UNIT, MOST = (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 0.8)
FAR, AWAY = (2.0, 2.0, 3.0, 3.0), (5.0, 5.0, 6.0, 6.0)
CORNER, QUARTER = (0.0, 0.0, 0.2, 0.2), (0.0, 0.0, 0.5, 0.5)
LAST = (0.5, 0.5, 1.0, 1.0)
ONE, NOTHING, HIT = truth((UNIT, 1)), truth(), (UNIT, 1, 0.9)
STRAYS = [((0.0, 0.0, 0.1, 0.1), 1, 0.5 + i / 1000) for i in range(100)]
OTHERS = [(box, 2, score) for box, _, score in STRAYS]


def wide(share: float) -> Detections:
    """Return a detection that overlaps the box UNIT by a share of their union."""
    return found(((0.0, 0.0, 1.0, share), 1, 0.9))


def with_crowd(crowd: Sequence[float], single: Sequence[float]) -> TruePicture:
    classes, crowds = np.array([1, 1]), np.array([True, False])
    return true_picture(1, np.array([crowd, single]), classes, crowds)


def same(truths: list[TruePicture], answers: list[Detections], mean: float) -> Known:
    """Return a case in which the definitions agree."""
    return truths, answers, mean, mean


KNOWN: dict[str, Known] = {
    "one box counts up to the threshold that it overlaps by": same([ONE], [wide(0.72)], 0.5),
    "an overlap right at the lowest threshold counts": same([ONE], [wide(0.5)], 0.1),
    "an overlap right at the threshold counts": same([ONE], [wide(0.75)], 0.6),
    "a miss with a better score halves": same([ONE], [found(HIT, (CORNER, 1, 0.95))], 0.5),
    "a miss with a worse score costs nothing": same([ONE], [found(HIT, (CORNER, 1, 0.1))], 1.0),
    "one of two objects gives the 51 levels up to a half": same(
        [truth((UNIT, 1), (FAR, 1))], [found(HIT)], 51 / 101
    ),
    # hit, miss, hit: precision 1 up to recall 1/2, then 2/3
    "precision at a recall is the best at that recall or more": same(
        [truth((UNIT, 1), (FAR, 1))],
        [found(HIT, (AWAY, 1, 0.8), (FAR, 1, 0.7))],
        (51 + 50 * 2 / 3) / 101,
    ),
    "a class that was only found counts as zero for TFLite": (
        [ONE],
        [found(HIT, (UNIT, 7, 0.9))],
        0.5,
        1.0,
    ),
    "a class that was never found counts as zero": same(
        [truth((UNIT, 1), (UNIT, 2))], [found(HIT)], 0.5
    ),
    "a detection takes the object that it overlaps most": same(
        [truth((MOST, 1), (UNIT, 1))], [found(HIT, (MOST, 1, 0.8))], 1.0
    ),
    "objects of another class are no hit": same([truth((UNIT, 2))], [wide(1.0)], 0.0),
    "objects of another picture are no hit": same([ONE, NOTHING], [found(), wide(1.0)], 0.0),
    "scores order the detections of all pictures": same(
        [ONE, NOTHING], [wide(1.0), found((AWAY, 1, 0.95))], 0.5
    ),
    "nothing found is zero": same([ONE], [found()], 0.0),
    "a crowd is no object for COCO, and what lies in it no miss": (
        [with_crowd(UNIT, QUARTER)],
        [found(((0.5, 0.5, 0.6, 0.6), 1, 0.95), (QUARTER, 1, 0.9))],
        51 / 101 / 2,
        1.0,
    ),
    "several may lie in a crowd": (
        [with_crowd(UNIT, QUARTER)],
        [found(*[((0.5, 0.5, 0.6, 0.6), 1, 0.95)] * 3, (QUARTER, 1, 0.9))],
        51 / 101 / 4,
        1.0,
    ),
    "what reaches out of a crowd is a miss": (
        [with_crowd(CORNER, LAST)],
        [found(((0.0, 0.0, 0.9, 0.2), 1, 0.95), (LAST, 1, 0.9))],
        51 / 101 / 2,
        0.5,
    ),
    "COCO takes the hundred best of a class": (
        [ONE],
        [found(*STRAYS, (UNIT, 1, 0.1))],
        1 / 101,
        0.0,
    ),
    "the hundredth of a class counts, whatever else is found": (
        [ONE],
        [found(*STRAYS[1:], (UNIT, 1, 0.1), OTHERS[0])],
        0.01 / 2,
        0.01,
    ),
    "a hundred of another class leave out nothing": (
        [ONE],
        [found(*OTHERS, (UNIT, 1, 0.1))],
        0.5,
        1.0,
    ),
}


@pytest.mark.parametrize("claim", KNOWN)
def test_a_mean_is_that_known_by_hand(claim: str) -> None:
    truths, answers, tflite, coco = KNOWN[claim]
    truths = [replace(each, id=number) for number, each in enumerate(truths)]
    for definition, mean in ((TfliteDefinition(), tflite), (CocoDefinition(), coco)):
        tally = Tally(definition, truths, answers)
        assert tally.average_precisions().mean == pytest.approx(mean), definition
    pytest.importorskip("faster_coco_eval")
    result = coco_precision(GroundTruth("made.json", tuple(truths)), answers)
    assert result.figures["AP"] == pytest.approx(coco)
