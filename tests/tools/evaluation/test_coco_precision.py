from __future__ import annotations

import builtins
import contextlib
import dataclasses
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.average_precision import Tally
from delegraph.tools.evaluation.coco_precision import FIGURES, CocoPrecision, coco_precision
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import GroundTruth, TruePicture
from support.made_up_detections import SIDE, found, made_up, true_picture, truth

UNIT = (0.0, 0.0, 1.0, 1.0)


def official(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> float:
    return Tally(truths, answers).average_precisions().mean


def coco(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> CocoPrecision:
    pytest.importorskip("faster_coco_eval")
    return coco_precision(GroundTruth("made.json", tuple(truths)), answers)


# -- known by hand, and where the two definitions part -----------------------------------------


def test_one_box_counts_up_to_the_threshold_that_it_overlaps_by() -> None:
    result = coco([truth((UNIT, 1))], [found(((0.0, 0.0, 1.0, 0.72), 1, 0.9))])
    assert list(result.by_threshold.values()) == [1.0] * 5 + [0.0] * 5
    assert result.figures["AP"] == 0.5
    assert (result.figures["AP50"], result.figures["AP75"]) == (1.0, 0.0)
    assert result.figures["APlarge"] == 0.5
    assert np.isnan(result.figures["APsmall"])
    assert result.by_class == {1: 0.5}


def test_both_agree_without_crowds_and_stray_classes() -> None:
    truths, answers = made_up(3)
    kinds = {int(k) for t in truths for k in t.classes}
    for answer in answers:
        answer.classes[:] = np.where(np.isin(answer.classes, list(kinds)), answer.classes, 1)
        answer.scores[:] = np.random.default_rng(0).permutation(len(answer.scores)) / 99 + 0.1
    ours = Tally(truths, answers).average_precisions()
    theirs = coco(truths, answers)
    assert theirs.figures["AP"] == pytest.approx(ours.mean, abs=5e-3)
    assert list(theirs.by_threshold.values()) == pytest.approx(ours.by_threshold(), abs=1e-2)


def test_a_class_that_was_only_found_does_not_count_for_coco() -> None:
    truths, answers = [truth((UNIT, 1))], [found((UNIT, 1, 0.9), (UNIT, 7, 0.9))]
    assert official(truths, answers) == 0.5
    assert coco(truths, answers).figures["AP"] == 1.0


def test_a_crowd_is_no_object_for_coco_and_what_lies_in_it_no_miss() -> None:
    crowd = true_picture(
        1,
        np.array([UNIT, (0.0, 0.0, 0.5, 0.5)]),
        np.array([1, 1]),
        np.array([True, False]),
    )
    answer = found(((0.5, 0.5, 0.6, 0.6), 1, 0.95), ((0.0, 0.0, 0.5, 0.5), 1, 0.9))
    assert official([crowd], [answer]) == pytest.approx(51 / 101 / 2)
    assert coco([crowd], [answer]).figures["AP"] == 1.0


def test_coco_takes_the_hundred_best_of_a_picture() -> None:
    misses = [((0.0, 0.0, 0.1, 0.1), 1, 0.5 + i / 1000) for i in range(100)]
    truths, answers = [truth((UNIT, 1))], [found(*misses, (UNIT, 1, 0.1))]
    assert official(truths, answers) == pytest.approx(1 / 101)
    assert coco(truths, answers).figures["AP"] == 0.0


def test_areas_are_those_of_the_file() -> None:
    small = (0.0, 0.0, 31 / SIDE, 31 / SIDE)
    figures = coco([truth((small, 1))], [found((small, 1, 0.9))]).figures
    assert figures["APsmall"] == 1.0
    assert np.isnan(figures["APmedium"])


def test_no_detection_at_all_is_zero() -> None:
    assert coco([truth((UNIT, 1))], [found()]).figures["AP"] == 0.0


# -- as pycocotools has it ---------------------------------------------------------------------


def as_pycocotools(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> list[float]:
    coco_module = pytest.importorskip("pycocotools.coco")
    from pycocotools.cocoeval import COCOeval

    objects, results = [], []
    for picture, answer in zip(truths, answers, strict=True):
        pixels = picture.pixels
        assert pixels is not None
        for i, kind in enumerate(picture.classes):
            objects.append(
                {
                    "id": len(objects) + 1,
                    "image_id": picture.id,
                    "category_id": int(kind),
                    "bbox": pixels.boxes[i].tolist(),
                    "area": float(pixels.areas[i]),
                    "iscrowd": int(pixels.crowds[i]),
                }
            )
        for box, kind, score in zip(answer.boxes, answer.classes, answer.scores, strict=True):
            top, left, bottom, right = (float(side) * SIDE for side in box)
            results.append(
                {
                    "image_id": picture.id,
                    "category_id": int(kind),
                    "bbox": [left, top, max(right - left, 0), max(bottom - top, 0)],
                    "score": float(score),
                }
            )
    kinds = sorted({entry["category_id"] for entry in objects})
    with contextlib.redirect_stdout(io.StringIO()):
        known = coco_module.COCO()
        known.dataset = {
            "images": [{"id": p.id, "width": SIDE, "height": SIDE} for p in truths],
            "categories": [{"id": kind, "name": str(kind)} for kind in kinds],
            "annotations": objects,
        }
        known.createIndex()
        evaluation = COCOeval(known, known.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [np.nan if v == -1 else v for v in evaluation.stats.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_the_figures_are_those_of_pycocotools(seed: int) -> None:
    truths, answers = made_up(seed, pictures=60)
    rng = np.random.default_rng(seed)
    for i, picture in enumerate(truths):
        assert picture.pixels is not None
        n = len(picture.classes)
        pixels = dataclasses.replace(
            picture.pixels,
            crowds=rng.uniform(0, 1, n) < 0.2,
            areas=picture.pixels.areas * rng.uniform(0.3, 1, n),  # of outlines: less than the boxes
        )
        truths[i] = dataclasses.replace(picture, pixels=pixels)
    figures = coco(truths, answers).figures
    assert list(figures) == list(FIGURES)
    expected = as_pycocotools(truths, answers)
    assert list(figures.values()) == pytest.approx(expected, abs=1e-12, nan_ok=True)


# -- what it needs -----------------------------------------------------------------------------


def test_ground_truth_without_pixels_is_refused() -> None:
    picture = dataclasses.replace(truth((UNIT, 1)), pixels=None)
    with pytest.raises(
        ArgumentError, match=r"needs sizes in pixels and crowds, which 'a\.pb' lacks"
    ):
        coco_precision(GroundTruth("a.pb", (picture,)), [found()])


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def import_but(name: str, *rest: Any) -> Any:
        if name == "faster_coco_eval":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", import_but)
    with pytest.raises(ArgumentError, match=r"pip install 'delegraph\[coco\]'"):
        coco_precision(GroundTruth("a.json", (truth((UNIT, 1)),)), [found()])
