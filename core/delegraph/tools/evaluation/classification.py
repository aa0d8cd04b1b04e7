"""Classification of pictures: top-1 to top-10 accuracy of every set-up, and the drop between them.

Source:
    ImagenetImageClassification and TopkAccuracyEvalStage, tflite/tools/evaluation. There, the
    type of a model's input is taken for that of its output, so a model with bytes in and floats
    out is misread; here the output has its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.bootstrap import Interval
from delegraph.tools.evaluation.answers import Answers
from delegraph.tools.evaluation.mcnemar import drop_interval, mcnemar_p_value
from delegraph.tools.evaluation.picture_files import PictureFile
from delegraph.tools.evaluation.preprocessing import Preprocessing, picture_size
from delegraph.tools.evaluation.presets import preset
from delegraph.tools.evaluation.runner import run_task
from delegraph.tools.evaluation.task import Outputs, Row
from delegraph.tools.model_call import Details, declared_shape
from delegraph.tools.progress import Progress, untold
from delegraph.tools.setup import Setup

RANKS = 10
"""How far down the order of scores an answer is looked for."""


@dataclass(frozen=True, slots=True)
class ClassificationTask:
    """Asks which class a picture is of.

    Attributes:
        labels: words of the model's classes, in the order of its output; they may repeat.
        preprocessing: how pictures become inputs.
    """

    labels: tuple[str, ...]
    preprocessing: Preprocessing

    def identity(self) -> Mapping[str, Any]:
        """Return the labels and the preprocessing."""
        return {
            "name": "classification",
            "labels": list(self.labels),
            "preprocessing": self.preprocessing.to_json(),
        }

    def require_model(self, inputs: Sequence[Details], outputs: Sequence[Details]) -> None:
        """Check that one picture goes in, and one score for each label comes out.

        Raises:
            ArgumentError: the model has other inputs or outputs, or another number of classes.
        """
        if len(inputs) != 1 or len(outputs) != 1:
            raise ArgumentError(
                f"the model has {len(inputs)} inputs and {len(outputs)} outputs; a classifier has "
                "one of each"
            )
        picture_size(inputs[0])
        shape = declared_shape(outputs[0])
        if not shape or any(side not in (1, -1) for side in shape[:-1]):
            raise ArgumentError(
                f"output {outputs[0]['name']!r} has shape {shape}; a classifier's is [1, classes]"
            )
        if shape[-1] != len(self.labels):
            raise ArgumentError(
                f"the model has {shape[-1]} classes, and there are {len(self.labels)} labels: give "
                "a file with one word for each class, in the order of the model's output"
            )

    def inputs(self, sample: PictureFile, details: Sequence[Details]) -> list[NDArray[Any]]:
        """Return the picture as the model takes it.

        Raises:
            ArgumentError: it cannot be read.
        """
        return [self.preprocessing.input(sample, details[0])]

    def judge(self, sample: PictureFile, outputs: Outputs) -> Row:
        """Return the best classes with their scores, and at which place the truth is."""
        scores = outputs[0][1].reshape(-1)
        best = best_classes(scores, RANKS)
        words = [self.labels[index] for index in best]
        return {
            "best": best,
            "scores": [scores[index].item() for index in best],
            "rank": words.index(sample.truth) + 1 if sample.truth in words else None,
        }


def best_classes(scores: NDArray[Any], count: int) -> list[int]:
    """Return the positions of the highest scores, highest first.

    Of equal scores the first comes first. A score that is no number is never among them.

    >>> best_classes(np.array([1, 3, 3, 2], np.uint8), 3)
    [1, 2, 3]
    """
    real = scores.astype(np.float64)
    order = np.argsort(-real, kind="stable")[:count]
    return [int(index) for index in order if not np.isnan(real[index])]


@dataclass(frozen=True, slots=True)
class Drop:
    """What a set-up loses against the first one, on the same pictures.

    Attributes:
        top: how far down the order of scores the truth may be: 1 to 10.
        lost: pictures that only the first set-up has right.
        gained: pictures that only this set-up has right.
        drop: ``lost - gained``, as a share of the pictures.
        interval: where the drop lies.
        p_value: of the exact McNemar test.
    """

    top: int
    lost: int
    gained: int
    drop: float
    interval: Interval
    p_value: float

    def to_json(self) -> dict[str, Any]:
        """Return all attributes."""
        return {
            "top": self.top,
            "lost": self.lost,
            "gained": self.gained,
            "drop": self.drop,
            "interval": self.interval.to_json(),
            "p_value": self.p_value,
        }


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """A picture for which a set-up answers another class than the first set-up.

    Attributes:
        key: name of the picture.
        setup: position of the set-up.
        truth: the right word.
        first: what the first set-up answers; None where it answers nothing.
        other: what this set-up answers.
    """

    key: str
    setup: int
    truth: str
    first: str | None
    other: str | None

    def to_json(self) -> dict[str, Any]:
        """Return all attributes."""
        return {
            "key": self.key,
            "setup": self.setup,
            "truth": self.truth,
            "first": self.first,
            "other": self.other,
        }


@dataclass(frozen=True, slots=True)
class Classification:
    """How well set-ups classify pictures.

    Attributes:
        task: labels and preprocessing.
        answers: of every set-up, with times.
        truths: the right word of each picture, by its name.
    """

    task: ClassificationTask
    answers: Answers
    truths: Mapping[str, str]

    def accuracy(self, setup: int, top: int = 1) -> float:
        """Return the share of pictures whose truth is among the *top* best classes.

        Args:
            setup: its position.
            top: 1 to 10.
        """
        return float(self._hits(setup, top).mean())

    def drop(self, setup: int, top: int = 1) -> Drop:
        """Return what a set-up loses against the first one."""
        first, other = self._hits(0, top), self._hits(setup, top)
        lost, gained = int((first & ~other).sum()), int((other & ~first).sum())
        count = len(first)
        interval = drop_interval(lost, gained, count)
        drop = (lost - gained) / count
        return Drop(top, lost, gained, drop, interval, mcnemar_p_value(lost, gained))

    def _hits(self, setup: int, top: int) -> NDArray[np.bool_]:
        rows = self.answers.rows[setup]
        return np.array([row["rank"] is not None and row["rank"] <= top for row in rows])

    def changed(self, setup: int) -> list[ChangedAnswer]:
        """Return the pictures for which a set-up answers another class than the first one."""
        rows = zip(self.answers.keys, self.answers.rows[0], self.answers.rows[setup], strict=True)
        return [
            ChangedAnswer(key, setup, self.truths[key], self._word(first), self._word(other))
            for key, first, other in rows
            if first["best"][:1] != other["best"][:1]
        ]

    def _word(self, row: Row) -> str | None:
        return self.task.labels[row["best"][0]] if row["best"] else None

    def to_json(self) -> dict[str, Any]:
        """Return accuracies, drops, changed answers and times of every set-up."""
        shown = self.answers.to_json()
        for position, entry in enumerate(shown["setups"]):
            entry["accuracy"] = [self.accuracy(position, top) for top in range(1, RANKS + 1)]
            if position:
                entry["drop"] = [self.drop(position, top).to_json() for top in (1, 5)]
                entry["changed"] = [answer.to_json() for answer in self.changed(position)]
        return {
            "task": "classification",
            "preprocessing": self.task.preprocessing.to_json(),
            **shown,
        }


def evaluate_classification(
    setups: Sequence[Setup] | Setup,
    pictures: Sequence[PictureFile],
    labels: Sequence[str],
    preprocessing: Preprocessing | str = "tflite",
    *,
    journal: str | None = None,
    warmup_runs: int = 1,
    progress: Progress = untold,
) -> Classification:
    """Return how well set-ups classify the same pictures.

    Args:
        setups: one or several; the others are compared with the first.
        pictures: with the right word of each.
        labels: words of the classes, in the order of the model's output.
        preprocessing: how pictures become inputs, or the name of a preset.
        journal: a file that says what is done, so that an interrupted evaluation goes on.
        warmup_runs: runs before any time counts.
        progress: is told how far it is.

    Raises:
        ArgumentError: a model is no classifier of pictures with these labels, a truth is no label,
            no picture can be read, or the journal is of another evaluation.
        DelegraphError: a set-up failed.
    """
    known = [setups] if isinstance(setups, Setup) else list(setups)
    how = preset(preprocessing) if isinstance(preprocessing, str) else preprocessing
    task = ClassificationTask(tuple(labels), how)
    _require_known_truths(pictures, task.labels)
    answers = run_task(
        known, pictures, task, journal=journal, warmup_runs=warmup_runs, progress=progress
    )
    return Classification(task, answers, {picture.key: picture.truth for picture in pictures})


def _require_known_truths(pictures: Sequence[PictureFile], labels: Sequence[str]) -> None:
    known = set(labels)
    unknown = sorted({picture.truth for picture in pictures} - known)
    if unknown:
        shown = ", ".join(map(repr, unknown[:3]))
        raise ArgumentError(
            f"{len(unknown)} words of the truth are no labels of the model: {shown}"
            f"{', ...' if len(unknown) > 3 else ''}; is it the right file of labels?"
        )
