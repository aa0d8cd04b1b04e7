"""Picture classification: top-1 to top-10 accuracy of each set-up, and losses of accuracy.

Source:
    ImagenetImageClassification and TopkAccuracyEvalStage, tflite/tools/evaluation. The official
    tool assumes that the output has the input's type. So it misreads a model with byte inputs and
    float outputs. Here the output's own type is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.graph.loader import load_model
from delegraph.graph.metadata import read_metadata
from delegraph.tools.decoded_pictures import require_pillow
from delegraph.tools.evaluation.classification_result import RANKS, Classification
from delegraph.tools.evaluation.picture_files import PictureFile
from delegraph.tools.evaluation.preprocessing import Preprocessing, picture_size
from delegraph.tools.evaluation.presets import preset
from delegraph.tools.evaluation.runner import run_task
from delegraph.tools.evaluation.task import Outputs, Row
from delegraph.tools.model_call import Details, declared_shape
from delegraph.tools.progress import Progress, untold
from delegraph.tools.quantizing import real_values
from delegraph.tools.setup import Setup


@dataclass(frozen=True, slots=True)
class ClassificationTask:
    """Task whose answer is the class of a picture.

    Attributes:
        labels: words of the model's classes, in the order of its output; they may repeat.
        preprocessing: conversion of pictures to inputs.
    """

    labels: tuple[str, ...]
    preprocessing: Preprocessing

    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the results: labels and preprocessing, as JSON."""
        return {
            "name": "classification",
            "labels": list(self.labels),
            "preprocessing": self.preprocessing.to_json(),
        }

    def require_model(self, inputs: Sequence[Details], outputs: Sequence[Details]) -> None:
        """Check that the model takes one picture and returns one score per label.

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
                f"the model has {shape[-1]} classes, and there are {len(self.labels)} labels: "
                "labels=[...] names each class, in the order of the model's output"
            )

    def inputs(self, sample: PictureFile, details: Sequence[Details]) -> list[NDArray[Any]]:
        """Return the picture *sample*, converted to the model's only input.

        Raises:
            ArgumentError: the picture cannot be read.
        """
        return [self.preprocessing.input(sample, details[0])]

    def judge(self, sample: PictureFile, outputs: Outputs) -> Row:
        """Return the best classes in *outputs*, and the rank of the true class of *sample*."""
        details, values = outputs[0]
        scores = values.reshape(-1)
        best = best_classes(scores, RANKS)
        words = [self.labels[index] for index in best]
        return {
            "best": best,
            "scores": _shortest(real_values(scores[best], details)),
            "rank": words.index(sample.truth) + 1 if sample.truth in words else None,
        }


def _shortest(scores: NDArray[Any]) -> list[float]:
    """Return scores as numbers with the shortest digits of a float32, as ``predict`` writes them.

    >>> _shortest(np.array([0.1], np.float32)), _shortest(np.array([0.1]) * 3)
    ([0.1], [0.3])
    """
    found: list[float] = scores.astype(np.float32).astype(str).astype(np.float64).tolist()
    return found


def best_classes(scores: NDArray[Any], count: int) -> list[int]:
    """Return the positions of the *count* highest scores, highest first.

    Equal scores keep their order. A NaN score is never among the best.

    >>> best_classes(np.array([1, 3, 3, 2], np.uint8), 3)
    [1, 2, 3]
    """
    real = scores.astype(np.float64)
    order = np.argsort(-real, kind="stable")[:count]
    return [int(index) for index in order if not np.isnan(real[index])]


def evaluate_classification(
    setups: Sequence[Setup] | Setup,
    pictures: Sequence[PictureFile],
    labels: Sequence[str] | None = None,
    preprocessing: Preprocessing | str = "tflite",
    *,
    journal: str | None = None,
    warmup_runs: int = 1,
    progress: Progress = untold,
) -> Classification:
    """Measure how accurately set-ups classify the same pictures.

    Args:
        setups: one or several; the others are compared with the first.
        pictures: picture files, each with the label of its true class.
        labels: labels of the classes, in the order of the model's output; None means the labels in
            the first model's metadata.
        preprocessing: conversion of pictures to inputs, or the name of a preset.
        journal: path of a file with the finished samples, from which an interrupted evaluation
            continues.
        warmup_runs: number of runs of each set-up before times are measured.
        progress: function that is called with the state of the work.

    Raises:
        ArgumentError: a model does not classify pictures with these labels, a true class is no
            label, no picture can be read, or the journal belongs to another evaluation.
        DelegraphError: a set-up failed.
    """
    known = [setups] if isinstance(setups, Setup) else list(setups)
    how = preset(preprocessing) if isinstance(preprocessing, str) else preprocessing
    words = metadata_labels(known[0].model) if labels is None else tuple(labels)
    _require_known_truths(pictures, words)
    if any(not picture.is_raw for picture in pictures):
        require_pillow("reading pictures")  # otherwise each picture would be bad
    task = ClassificationTask(words, how)
    answers = run_task(
        known, pictures, task, journal=journal, warmup_runs=warmup_runs, progress=progress
    )
    return Classification(words, how, answers, {p.key: p.truth for p in pictures})


def metadata_labels(model: str) -> tuple[str, ...]:
    """Return the class labels from the model's metadata.

    Raises:
        ArgumentError: the metadata have no labels.
    """
    loaded = load_model(model)
    metadata = read_metadata(loaded)
    outputs = loaded.subgraphs[0].outputs
    found = metadata.tensor(outputs[0]).axis_labels if metadata and outputs else ()
    if not found:
        raise ArgumentError(
            f"{model!r} has no labels in its metadata: labels=[...] names the classes, in the "
            "order of the model's output"
        )
    return tuple(found)


def _require_known_truths(pictures: Sequence[PictureFile], labels: Sequence[str]) -> None:
    unknown = sorted({picture.truth for picture in pictures} - set(labels))
    if unknown and all(picture.truth.isdecimal() for picture in pictures):
        raise ArgumentError(
            f"the truth has numbers, such as {unknown[0]!r}; expected the label of each picture's "
            f"class, such as {next(filter(None, labels), '')!r}: a line for each picture, as in "
            "the labels"
        )
    if unknown:
        shown = [f"{word!r}{_similar_label(word, labels)}" for word in unknown[:3]]
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        raise ArgumentError(
            f"the truth has words that are none of the {len(labels)} labels: "
            f"{', '.join(shown)}{more}. Is it the right file of labels?"
        )


def _similar_label(word: str, labels: Sequence[str]) -> str:
    """Return a suggestion of a label that has *word* among its synonyms, or is similar."""
    for label in labels:
        if word.casefold() in (each.strip().casefold() for each in label.split(",")):
            return f" (did you mean {label!r}?)"
    return did_you_mean(word, labels)
