"""A real detector on real pictures; what is true in them is what the official interpreter finds."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.detection import Detection, evaluate_detection
from delegraph.tools.evaluation.detection_task import DetectionTask
from delegraph.tools.evaluation.ground_truth import GroundTruth, TruePicture
from delegraph.tools.evaluation.ground_truth_files import read_ground_truth
from delegraph.tools.setup import Setup
from support.corpus import CORPUS, corpus_file, needs_corpus
from support.faulty_delegate import Faulty, first_output

pytestmark = needs_corpus

MODEL = str(corpus_file("support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29"))
PICTURES = CORPUS / "images"
OFFICIAL = Setup(MODEL, runtime="litert", use_default_delegates=False)
OWN = Setup(MODEL, delegates=(), use_default_delegates=False)
NO_BOXES, NO_CLASSES = np.empty((0, 4), np.float32), np.empty(0, np.int64)
SURE = 0.35
"""Detections of the official interpreter with at least this score are taken for the truth."""


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> GroundTruth:
    """Return what the official interpreter finds, through a file in COCO's form."""
    from PIL import Image

    path = tmp_path_factory.mktemp("truth") / "instances.json"
    names = sorted(p.name for p in PICTURES.iterdir() if p.suffix != ".wav")
    content: dict[str, list[Any]] = {"images": [], "annotations": [], "categories": []}
    for number, name in enumerate(names, 1):
        with Image.open(PICTURES / name) as image:
            width, height = image.size
        content["images"].append(
            {"id": number, "file_name": name, "width": width, "height": height}
        )
    path.write_text(json.dumps(content))
    found = evaluate_detection(OFFICIAL, str(PICTURES), read_ground_truth(str(path)), resamples=1)
    for picture, row in zip(found.truth.pictures, found.answers.rows[0], strict=True):
        assert picture.pixels is not None
        height, width = picture.pixels.height, picture.pixels.width
        for (top, left, bottom, right), kind, score in zip(
            row["boxes"], row["classes"], row["scores"], strict=True
        ):
            if score >= SURE:
                box = [left * width, top * height, (right - left) * width, (bottom - top) * height]
                content["annotations"].append(
                    {"image_id": picture.id, "category_id": kind, "bbox": box, "iscrowd": 0}
                )
    path.write_text(json.dumps(content))
    return read_ground_truth(str(path))


def moved(tensor: Any) -> None:
    """Move boxes down by a tenth of the picture."""
    tensor.data[..., 0::2] += np.float32(0.1)


WRONG = Setup(
    MODEL,
    delegates=(Faulty("TFLite_Detection_PostProcess", fault=first_output(moved)),),
    use_default_delegates=False,
)


@pytest.fixture(scope="module")
def three(truth: GroundTruth) -> Detection:
    return evaluate_detection([OFFICIAL, OWN, WRONG], str(PICTURES), truth)


def test_own_kernels_have_the_precision_of_the_official_interpreter(three: Detection) -> None:
    official, own, _ = three.judgement.precisions
    assert 0.4 < official.tflite.mean < 0.5  # many classes were found only by lower scores
    assert np.array_equal(official.tflite.values, own.tflite.values)
    drop = three.judgement.drops[1]
    assert (drop.drop, drop.interval.low, drop.interval.high) == (0.0, 0.0, 0.0)


def test_both_definitions_of_both_runtimes_agree(three: Detection) -> None:
    pytest.importorskip("faster_coco_eval")
    official, own, wrong = (p.coco for p in three.judgement.precisions)
    assert official is not None
    assert official == own
    assert official.figures["AP"] == 1.0
    assert wrong is not None
    assert three.judgement.coco_drops is not None
    drop = three.judgement.coco_drops[2]
    assert drop.drop == official.figures["AP"] - wrong.figures["AP"] > 0.05
    assert drop.interval.low > 0


def test_a_wrong_delegate_shows_a_drop_whose_interval_excludes_zero(three: Detection) -> None:
    drop = three.judgement.drops[2]
    assert (
        drop.drop
        == three.judgement.precisions[0].tflite.mean - three.judgement.precisions[2].tflite.mean
    )
    assert drop.drop > 0.05
    assert drop.interval.low > 0
    assert drop.interval.excludes(0)


def test_intervals_hold_their_figures(three: Detection) -> None:
    for precision in three.judgement.precisions:
        assert precision.interval.low <= precision.tflite.mean <= precision.interval.high


def test_a_notebook_shows_each_set_up(three: Detection) -> None:
    shown = three._repr_html_()
    assert shown.count("<tr>") == 1 + 3
    assert f">{three.judgement.precisions[2].interval}</td>" in shown


def test_json_has_both_definitions_by_name(three: Detection) -> None:
    shown = json.loads(json.dumps(three.to_json(), allow_nan=True))
    assert sorted(shown["definitions"]) == ["coco", "tflite"]
    first, _, wrong = shown["setups"]
    assert list(first["precision"]["tflite"]["by_threshold"])[:2] == ["0.50", "0.55"]
    assert set(first["precision"]["tflite"]["by_class"]) >= {"1", "17", "18"}
    assert "drop" not in first
    assert wrong["drop"]["tflite"]["interval"]["confidence"] == 0.95


# -- pictures ----------------------------------------------------------------------------------


def test_bad_pictures_are_listed_and_left_out(tmp_path: Path, truth: GroundTruth) -> None:
    few = dataclasses.replace(truth, pictures=truth.pictures[:4])
    folder = tmp_path / "pictures"
    folder.mkdir()
    for picture in few.pictures[:2]:
        shutil.copy(PICTURES / picture.name, folder / picture.name)
    (folder / few.pictures[2].name).write_bytes(b"no picture")
    result = evaluate_detection(OFFICIAL, str(folder), few, resamples=10)
    assert [bad.key for bad in result.answers.bad] == [p.name for p in few.pictures[2:]]
    assert "is of no kind that Pillow knows" in result.answers.bad[0].reason
    assert "No such file" in result.answers.bad[1].reason
    assert [p.name for p in result.truth.pictures] == [p.name for p in few.pictures[:2]]
    true = {int(kind) for picture in result.truth.pictures for kind in picture.classes}
    precisions = result.judgement.precisions[0].tflite.by_class()
    assert {precisions[kind] for kind in true} == {1.0}  # nothing is missed that was not read


def test_names_that_no_file_can_have_are_listed(truth: GroundTruth) -> None:
    first = truth.pictures[0]
    names = ["a\0b.jpg", "\ud800.jpg", first.name]
    pictures = tuple(dataclasses.replace(first, name=name) for name in names)
    there = dataclasses.replace(truth, pictures=pictures)
    result = evaluate_detection(OFFICIAL, str(PICTURES), there, resamples=1)
    assert [bad.key for bad in result.answers.bad] == names[:2]


def test_an_interrupted_evaluation_goes_on(tmp_path: Path, truth: GroundTruth) -> None:
    few = dataclasses.replace(truth, pictures=truth.pictures[:5])
    journal = str(tmp_path / "result.json.journal")

    def interrupt(what: str, done: float, total: float | None) -> None:
        if done == 3:
            raise KeyboardInterrupt

    arguments: dict[str, Any] = {"resamples": 20, "journal": journal}
    with pytest.raises(KeyboardInterrupt):
        evaluate_detection([OFFICIAL, OWN], str(PICTURES), few, progress=interrupt, **arguments)
    resumed = evaluate_detection([OFFICIAL, OWN], str(PICTURES), few, **arguments)
    assert resumed.answers.resumed == 3
    whole = evaluate_detection([OFFICIAL, OWN], str(PICTURES), few, resamples=20)
    assert resumed.answers.rows == whole.answers.rows
    mine, its = (r.judgement.precisions for r in (resumed, whole))
    assert str([p.to_json() for p in mine]) == str([p.to_json() for p in its])


def test_a_journal_of_other_options_is_refused(tmp_path: Path, truth: GroundTruth) -> None:
    few = dataclasses.replace(truth, pictures=truth.pictures[:1])
    journal = str(tmp_path / "journal")
    evaluate_detection(OFFICIAL, str(PICTURES), few, resamples=1, journal=journal)
    with pytest.raises(ArgumentError, match=r"is of another evaluation: not the same task \(.+\)"):
        evaluate_detection(
            OFFICIAL, str(PICTURES), few, class_offset=0, resamples=1, journal=journal
        )


def test_a_journal_goes_on_with_other_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as for a model that does not tell its number of classes
    monkeypatch.setattr(DetectionTask, "require_labels", lambda task, model: None)
    few = GroundTruth("none.json", (TruePicture(1, "bird.bmp", NO_BOXES, NO_CLASSES),))
    arguments: dict[str, Any] = {"resamples": 1, "journal": str(tmp_path / "journal")}
    evaluate_detection(OFFICIAL, str(PICTURES), few, **arguments)
    labels = ["???", *map(str, range(1, 91))]
    resumed = evaluate_detection(OFFICIAL, str(PICTURES), few, labels=labels, **arguments)
    assert resumed.answers.resumed == 1
    with pytest.raises(ArgumentError, match=r"bird\.bmp: the model found class \d+ .*'\?\?\?'"):
        evaluate_detection(OFFICIAL, str(PICTURES), few, labels=["???", "one"], **arguments)


# -- classes -----------------------------------------------------------------------------------


def test_a_true_class_without_a_label_is_refused_before_anything_runs(truth: GroundTruth) -> None:
    message = r"has an object of class 16 in 'bird.bmp'; the labels are of classes 0 to 1"
    with pytest.raises(ArgumentError, match=message):
        evaluate_detection(OFFICIAL, "nowhere", truth, labels=["background", "person"])


def test_a_negative_true_class_is_refused(truth: GroundTruth) -> None:
    wrong = dataclasses.replace(truth.pictures[0], classes=np.array([-1]))
    with pytest.raises(ArgumentError, match=r"of class -1 in 'bird\.bmp'; classes begin at 0"):
        evaluate_detection(OFFICIAL, "nowhere", dataclasses.replace(truth, pictures=(wrong,)))


def test_nothing_is_cut_out_of_a_picture_whatever_the_preset_says() -> None:
    seen: list[str] = []
    for name in ("tflite", "torchvision"):
        truth = GroundTruth("none.json", (TruePicture(1, "cat.bmp", NO_BOXES, NO_CLASSES),))
        found = evaluate_detection(OFFICIAL, str(PICTURES), truth, name, resamples=1)
        seen.append(found.task.preprocessing.crop)
        assert found.task.preprocessing.name == name
        assert found.task.preprocessing.reason.endswith("but here nothing is cut out")
    assert seen == ["none", "none"]
