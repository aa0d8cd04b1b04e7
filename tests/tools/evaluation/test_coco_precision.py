from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import Detections, GroundTruth, Tally, TfliteDefinition, TruePicture
from delegraph.tools.evaluation.coco_precision import FIGURES, CocoPrecision, coco_precision
from support.coco_reference import as_pycocotools, made_up_with_crowds
from support.made_up_detections import SIDE, found, made_up, truth

UNIT = (0.0, 0.0, 1.0, 1.0)


def coco(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> CocoPrecision:
    pytest.importorskip("faster_coco_eval")
    return coco_precision(GroundTruth("made.json", tuple(truths)), answers)


# -- known by hand -----------------------------------------------------------------------------


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
    ours = Tally(TfliteDefinition(), truths, answers).average_precisions()
    theirs = coco(truths, answers)
    assert theirs.figures["AP"] == pytest.approx(ours.mean, abs=5e-3)
    assert list(theirs.by_threshold.values()) == pytest.approx(ours.by_threshold(), abs=1e-2)


def test_a_class_of_the_file_without_an_object_has_no_figure() -> None:
    pytest.importorskip("faster_coco_eval")
    there = GroundTruth("made.json", (truth((UNIT, 1)),), {1: "cat", 2: "dog"})
    result = coco_precision(there, [found((UNIT, 1, 0.9), (UNIT, 2, 0.9))])
    assert result.by_class[1] == result.figures["AP"] == 1.0
    assert np.isnan(result.by_class[2])


def test_areas_are_those_of_the_file() -> None:
    small = (0.0, 0.0, 31 / SIDE, 31 / SIDE)
    figures = coco([truth((small, 1))], [found((small, 1, 0.9))]).figures
    assert figures["APsmall"] == 1.0
    assert np.isnan(figures["APmedium"])


# -- as pycocotools has it ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_figures_are_those_of_pycocotools(seed: int) -> None:
    truths, answers = made_up_with_crowds(seed)
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
