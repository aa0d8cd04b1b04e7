from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from delegraph.tools import Detections, Tally, TfliteDefinition, TruePicture
from delegraph.tools.evaluation.tflite_matching import THRESHOLDS, overlaps
from support.made_up_detections import found, made_up, truth

UNIT = (0.0, 0.0, 1.0, 1.0)


def hits(objects: TruePicture, answer: Detections) -> np.ndarray:
    return TfliteDefinition().match(objects, answer).right


def tally(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> Tally:
    return Tally(TfliteDefinition(), truths, answers)


def wide(share: float, kind: int = 1, score: float = 0.9) -> tuple[Sequence[float], int, float]:
    """Return a detection that overlaps the box UNIT by a share of their union."""
    return ((0.0, 0.0, 1.0, share), kind, score)


# -- known by hand; means are in test_known_precisions.py ---------------------------------------


def test_one_box_counts_up_to_the_threshold_that_it_overlaps_by() -> None:
    result = tally([truth((UNIT, 1))], [found(wide(0.72))]).average_precisions()
    assert result.by_threshold().tolist() == [1.0] * 5 + [0.0] * 5  # 0.5, 0.55, 0.6, 0.65, 0.7
    assert result.mean == 0.5


def test_classes_that_were_only_found_or_never_found_count_as_zero() -> None:
    answer = found(wide(1.0), wide(1.0, kind=7))
    result = tally([truth((UNIT, 1), (UNIT, 2))], [answer]).average_precisions()
    assert result.by_class() == {1: 1.0, 2: 0.0, 7: 0.0}


def test_an_object_is_taken_once() -> None:
    result = tally(
        [truth((UNIT, 1))], [found(wide(1.0, score=0.8), wide(0.9, score=0.9))]
    ).average_precisions()
    # Up to 0.85 the second takes it first; from 0.9 (float32) on, the second is a miss before.
    assert result.by_threshold()[0] == 1.0
    assert result.by_threshold()[-1] == 0.5


def test_the_next_best_object_is_taken_where_the_best_is_gone() -> None:
    objects = truth((UNIT, 1), ((0.0, 0.0, 1.0, 0.6), 1))
    answer = found((UNIT, 1, 0.9), (UNIT, 1, 0.8))
    assert hits(objects, answer)[:, 1].tolist() == [True, True, True] + [False] * 7


def test_of_objects_that_it_overlaps_equally_the_first_is_taken() -> None:
    upper, lower = (0.0, 0.0, 0.75, 1.0), (0.25, 0.0, 1.0, 1.0)
    answer = found((UNIT, 1, 0.9), (upper, 1, 0.8))
    assert hits(truth((lower, 1), (upper, 1)), answer)[:, 1].all()
    assert hits(truth((upper, 1), (lower, 1)), answer)[:6, 1].tolist() == [True] + [False] * 5


def test_nothing_at_all_has_no_precision() -> None:
    result = tally([truth()], [found()]).average_precisions()
    assert np.isnan(result.mean)
    assert np.isnan(result.by_threshold()).all()


def test_boxes_without_area_overlap_nothing() -> None:
    point = np.zeros((1, 4), np.float32)
    turned = np.array([[1, 1, 0, 0]], np.float32)
    assert overlaps(point, point).tolist() == [[0.0]]
    assert overlaps(turned, turned).tolist() == [[0.0]]


# -- the definition, slowly --------------------------------------------------------------------


def slow_overlap(a: np.ndarray, b: np.ndarray) -> np.float32:
    zero = np.float32(0)

    def side(low: np.float32, high: np.float32) -> np.float32:
        return max(zero, np.float32(high - low))

    def area(box: np.ndarray) -> np.float32:
        return side(box[0], box[2]) * side(box[1], box[3])

    both = side(max(a[0], b[0]), min(a[2], b[2])) * side(max(a[1], b[1]), min(a[3], b[3]))
    total = area(a) + area(b) - both
    return both / total if total > 0 else zero


def slow_average_precision(
    truths: Sequence[TruePicture], answers: Sequence[Detections], kind: int, threshold: np.float32
) -> float:
    free = {i: list(t.boxes[t.classes == kind]) for i, t in enumerate(truths)}
    count = sum(map(len, free.values()))
    listed = [
        (-score, i, box)
        for i, answer in enumerate(answers)
        for box, this, score in zip(answer.boxes, answer.classes, answer.scores, strict=True)
        if this == kind
    ]
    listed.sort(key=lambda item: item[0])
    points = []
    right = 0
    for number, (_, i, box) in enumerate(listed, 1):
        shares = [slow_overlap(box, other) for other in free[i]]
        if shares and max(shares) >= threshold:
            del free[i][int(np.argmax(shares))]
            right += 1
        points.append((right / number, np.float32(right) / np.float32(max(count, 1))))
    if not count:
        return 0.0
    best = [
        max((p for p, recall in points if recall * np.float32(100) >= level), default=0.0)
        for level in range(101)
    ]
    return sum(best) / 101


def slow_values(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> np.ndarray:
    kinds = sorted({int(k) for item in [*truths, *answers] for k in item.classes})
    return np.array(
        [[slow_average_precision(truths, answers, k, t) for k in kinds] for t in THRESHOLDS]
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_values_are_those_of_the_definition(seed: int) -> None:
    truths, answers = made_up(seed)
    values = tally(truths, answers).average_precisions().values
    assert np.allclose(values, slow_values(truths, answers), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_a_draw_is_as_if_the_pictures_were_there_repeatedly(seed: int) -> None:
    truths, answers = made_up(seed)
    for i, answer in enumerate(answers):  # no ties: what is drawn twice would come in another order
        answer.scores[:] += i * 1e-4 + np.arange(len(answer.scores)) * 1e-6
    all_of_them = tally(truths, answers)
    drawn = np.sort(np.random.default_rng(seed).integers(0, len(truths), len(truths)))
    result = all_of_them.average_precisions(drawn)
    again = tally([truths[i] for i in drawn], [answers[i] for i in drawn]).average_precisions()
    there = ~np.isnan(result.values).any(axis=0)
    assert result.classes[there].tolist() == again.classes.tolist()
    assert np.allclose(result.values[:, there], again.values, rtol=0, atol=1e-6)
    assert result.mean == pytest.approx(again.mean, abs=1e-6)


def test_a_class_that_was_not_drawn_does_not_count() -> None:
    all_of_them = tally([truth((UNIT, 1)), truth((UNIT, 2))], [found(wide(1.0)), found()])
    assert all_of_them.average_precisions().mean == 0.5
    assert all_of_them.average_precisions(np.array([0, 0])).mean == 1.0
    assert all_of_them.average_precisions(np.array([1, 1])).mean == 0.0
