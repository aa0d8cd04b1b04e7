"""Object detection: mean average precision of every set-up, and the loss of precision.

Open first: ``ground_truth.py`` for the true objects in pictures, ``detections.py`` for a model's
detections, ``average_precision.py`` for average precision by any definition, ``coco_precision.py``
for COCO's definition.

Source:
    CocoObjectDetection and ObjectDetectionStage, tflite/tools/evaluation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from delegraph.delegation.html_tables import html_table
from delegraph.errors import ArgumentError
from delegraph.log import Logger
from delegraph.tools.bootstrap import RESAMPLES
from delegraph.tools.evaluation.answers import Answers
from delegraph.tools.evaluation.class_offsets import OtherOffset, better_offset
from delegraph.tools.evaluation.detection_precision import DEFINITIONS, Judgement, judged
from delegraph.tools.evaluation.detection_table import write_detections
from delegraph.tools.evaluation.detection_task import FIRST_LABEL, DetectionTask, made_by_models
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import GroundTruth, TruePicture
from delegraph.tools.evaluation.picture_files import PictureFile
from delegraph.tools.evaluation.preprocessing import Preprocessing
from delegraph.tools.evaluation.presets import preset
from delegraph.tools.evaluation.runner import run_task
from delegraph.tools.progress import Progress, untold
from delegraph.tools.setup import Setup

_log = Logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """Detection precision of set-ups on the same pictures.

    Attributes:
        task: the task with all its settings.
        truth: ground truth of the used pictures.
        answers: detections of every set-up, with times.
        judgement: detection precision of every set-up.
        better_offset: a class offset that explains the truth better; None if none does.
    """

    task: DetectionTask
    truth: GroundTruth
    answers: Answers
    judgement: Judgement
    better_offset: OtherOffset | None = None

    def class_name(self, kind: int) -> str:
        """Name of class *kind*, from the ground truth or else the labels; may be empty."""
        labels = dict(enumerate(self.task.labels))
        return self.truth.class_names.get(kind) or labels.get(kind, "")

    def save_csv(self, path: str) -> None:
        """Write a CSV line to *path* for each detection of every set-up: class, score, box, match.

        Raises:
            ArgumentError: the file cannot be written.
        """
        pictures = self.truth.pictures
        if self.judgement.prepared:
            pictures = tuple(picture.as_prepared() for picture in pictures)
        setups = list(map(str, self.answers.setups))
        write_detections(path, pictures, setups, _found(self.answers), self.class_name)

    def _repr_html_(self) -> str:
        """Return a table of the mean average precisions, which notebooks display."""
        rows = [
            (setup, p.tflite.mean, str(p.interval))
            + ((None,) if p.coco is None else (p.coco.figures["AP"],))
            + (1e3 * latency.median,)
            for setup, p, latency in zip(
                self.answers.setups, self.judgement.precisions, self.answers.invoke, strict=True
            )
        ]
        columns = ("set-up", "mAP, TFLite's", "interval", "mAP, COCO's", "median ms")
        return html_table(f"{len(self.answers.keys)} pictures", columns, rows)

    def to_json(self) -> dict[str, Any]:
        """Return precisions, drops and times of every set-up."""
        shown, judgement = self.answers.to_json(), self.judgement
        for position, entry in enumerate(shown["setups"]):
            entry["precision"] = judgement.precisions[position].to_json()
            if position:
                coco = judgement.coco_drops and judgement.coco_drops[position].to_json()
                entry["drop"] = {"tflite": judgement.drops[position].to_json(), "coco": coco}
        kinds = {int(kind) for p in judgement.precisions for kind in p.tflite.classes}
        return {
            **self.task.identity(),
            "task": "detection",
            "ground_truth": self.truth.source,
            "prepared_as_by_script": judgement.prepared,
            "resamples": judgement.resamples,
            "seed": judgement.seed,
            "definitions": DEFINITIONS,
            "without_coco": judgement.without_coco,
            "better_offset": self.better_offset and self.better_offset.to_json(),
            "class_names": {str(kind): self.class_name(kind) for kind in sorted(kinds)},
            **shown,
        }


def evaluate_detection(
    setups: Sequence[Setup] | Setup,
    folder: str,
    truth: GroundTruth,
    preprocessing: Preprocessing | str = "tflite",
    *,
    class_offset: int = 1,
    labels: Sequence[str] = (),
    outputs: Sequence[str] = (),
    prepared: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
    journal: str | None = None,
    warmup_runs: int = 1,
    progress: Progress = untold,
) -> Detection:
    """Measure how precisely set-ups detect objects in the same pictures.

    Args:
        setups: one or several; the others are compared with the first.
        folder: folder of the pictures.
        truth: the objects in the pictures; all its pictures are used.
        preprocessing: conversion of pictures to inputs, or the name of a preset; pictures are never
            cropped, because boxes refer to the whole picture.
        class_offset: number that is added to the model's classes.
        labels: labels of the ground truth's classes, from class 0; a class without a label is an
            error.
        outputs: meaning of each model output: boxes, classes, scores, count; empty means to detect
            the meanings.
        prepared: whether pictures without objects, and boxes over the edge, are dropped for the
            official tool's definition, as the official script drops them. COCO's definition always
            includes them.
        resamples: number of draws of the bootstrap.
        seed: seed of the bootstrap's random draws.
        journal: path of a file with the finished samples, from which an interrupted evaluation
            continues.
        warmup_runs: number of runs of each set-up before times are measured.
        progress: function that is called with the state of the work.

    Raises:
        ArgumentError: a model is no detector, a class of the truth or of a detection has no label,
            no picture can be read, or the journal belongs to another evaluation.
        DelegraphError: a set-up failed.
    """
    known = [setups] if isinstance(setups, Setup) else list(setups)
    how = preset(preprocessing) if isinstance(preprocessing, str) else preprocessing
    models = [setup.loaded_model() for setup in known]
    task = DetectionTask(
        _uncut(how), class_offset, tuple(labels), tuple(outputs), made_by_models(models)
    )
    _require_labels(truth, task.labels)
    for model in models:
        task.require_labels(model)
    samples = [PictureFile(os.path.join(folder, picture.name)) for picture in truth.pictures]
    answers = run_task(
        known, samples, task, journal=journal, warmup_runs=warmup_runs, progress=progress
    )
    seen = replace(truth, pictures=_with(answers.keys, samples, truth.pictures))
    found = _found(answers)
    for each in found:  # a journal may be of other labels
        for key, objects in zip(answers.keys, each, strict=True):
            task.require_labels_of(objects, key)
    judgement = judged(
        seen,
        found,
        prepared=prepared,
        resamples=resamples,
        seed=seed,
        progress=progress,
    )
    better = better_offset(seen.pictures, found[0], class_offset)
    return Detection(task, seen, answers, judgement, better)


def _found(answers: Answers) -> list[list[Detections]]:
    """Return for each set-up the detections in each picture."""
    return [[Detections.from_json(row) for row in rows] for rows in answers.rows]


def _uncut(how: Preprocessing) -> Preprocessing:
    """Return the preprocessing *how* without cropping, because boxes refer to the whole picture."""
    if how.crop == "none":
        return how
    return replace(how, crop="none", reason=f"{how.reason}; but here nothing is cut out")


def _require_labels(truth: GroundTruth, labels: Sequence[str]) -> None:
    """Check that every class of the ground truth has a label, if labels are given.

    Raises:
        ArgumentError: a class has no label, or is negative; no label is the ground truth's name of
            its class; or the names fit the labels better if these begin at class 1.
    """
    _require_names(truth, labels)
    for picture in truth.pictures:
        for kind in picture.classes.tolist():
            if kind < 0 or (labels and kind >= len(labels)):
                known = (
                    f"the labels are of classes 0 to {len(labels) - 1}; {FIRST_LABEL}"
                    if labels
                    else "classes begin at 0"
                )
                raise ArgumentError(
                    f"{truth.source!r} has an object of class {kind} in {picture.name!r}; {known}"
                )


def _require_names(truth: GroundTruth, labels: Sequence[str]) -> None:
    named = {kind: name.casefold() for kind, name in truth.class_names.items()}
    words = dict(enumerate(label.casefold() for label in labels))
    fitting = sum(words.get(kind) == name for kind, name in named.items())
    shifted = [kind for kind, name in named.items() if words.get(kind - 1) == name]
    if len(shifted) > fitting:
        kind = min(shifted)
        found = f"class {kind} the label {labels[kind]!r}" if kind in words else f"no class {kind}"
        raise ArgumentError(
            f"the labels give {found}, which {truth.source!r} calls {truth.class_names[kind]!r}: "
            f"{FIRST_LABEL}"
        )
    differing = [kind for kind, word in words.items() if named.get(kind, word) != word]
    if not differing:
        return
    kind = differing[0]
    example = f"class {kind} is {truth.class_names[kind]!r}, and its label {labels[kind]!r}"
    if not fitting:
        raise ArgumentError(
            f"no label is the name of its class in {truth.source!r}: {example}. Is it the right "
            "file of labels?"
        )
    differ = "1 label differs" if len(differing) == 1 else f"{len(differing)} labels differ"
    text = "%s from the ground truth's names, which are shown: %s"
    _log.warning(text, differ, example)


def _with(
    keys: Sequence[str], samples: Sequence[PictureFile], pictures: Sequence[TruePicture]
) -> tuple[TruePicture, ...]:
    """Return the pictures with the given *keys*, in the order of the keys.

    *samples* and *pictures* are in one order; a sample has the key of its picture.
    """
    by_key = {sample.key: picture for sample, picture in zip(samples, pictures, strict=True)}
    return tuple(by_key[key] for key in keys)
