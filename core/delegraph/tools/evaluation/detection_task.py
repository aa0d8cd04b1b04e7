"""Task that runs a detector on pictures, by the rules of the official tool.

Source:
    ObjectDetectionStage, tflite/tools/evaluation/stages/object_detection_stage.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.model import Model
from delegraph.tools.evaluation.detections import (
    Detections,
    class_count,
    detections,
    made_by_postprocess,
    order_of,
)
from delegraph.tools.evaluation.picture_files import PictureFile
from delegraph.tools.evaluation.preprocessing import Preprocessing, picture_size
from delegraph.tools.evaluation.task import Outputs, Row
from delegraph.tools.model_call import Details

FIRST_LABEL = (
    "if the first label is that of class 1, put a line '???' before it, for class 0, the background"
)
"""Advice on labels that do not fit the classes."""


@dataclass(frozen=True, slots=True)
class DetectionTask:
    """Task whose answer is the objects in a picture and their boxes.

    Attributes:
        preprocessing: conversion of pictures to inputs, without cropping.
        class_offset: number that is added to the model's classes. It is 1 if class 0 is the
            background, or unused, in the ground truth, but not in the model.
        labels: labels of the ground truth's classes, from class 0; a class without a label is an
            error. Empty means that every class is allowed.
        outputs: meaning of each output: boxes, classes, scores, count; empty means to detect the
            meanings.
        made: result of :func:`made_by_models`.
    """

    preprocessing: Preprocessing
    class_offset: int = 1
    labels: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    made: Mapping[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)

    def identity(self) -> Mapping[str, Any]:
        """Return all settings that influence the detections; labels do not."""
        return {
            "name": "detection",
            "preprocessing": self.preprocessing.to_json(),
            "class_offset": self.class_offset,
            "outputs": list(self.outputs),
        }

    def require_model(self, inputs: Sequence[Details], outputs: Sequence[Details]) -> None:
        """Check that the model takes one picture and returns boxes, classes, scores and a count.

        Raises:
            ArgumentError: the model has other outputs, or their meanings are not clear.
        """
        if len(inputs) != 1:
            raise ArgumentError(
                f"the model has {len(inputs)} inputs; a detector has one, a picture"
            )
        picture_size(inputs[0])
        self._order(outputs)

    def inputs(self, sample: PictureFile, details: Sequence[Details]) -> list[NDArray[Any]]:
        """Return the picture *sample* converted to the model's only input.

        Raises:
            ArgumentError: the picture cannot be read.
        """
        return [self.preprocessing.input(sample, details[0])]

    def judge(self, sample: PictureFile, outputs: Outputs) -> Row:
        """Return the detections in *outputs*, the model's answer for *sample*.

        Raises:
            ArgumentError: the class of a detection has no label.
        """
        order = self._order([entry for entry, _ in outputs])
        found = detections(outputs, order, self.class_offset)
        self.require_labels_of(found, sample.key)
        return found.to_json()

    def require_labels_of(self, found: Detections, key: str) -> None:
        """Check that the classes of all detections in picture *key* have labels.

        Raises:
            ArgumentError: the class of a detection has no label.
        """
        for kind in found.classes.tolist():
            self._require_label(kind, f"{key}: the model found")

    def require_labels(self, model: Model) -> None:
        """Check that the last class of *model* has a label, if the model tells how many it has.

        Raises:
            ArgumentError: the class has no label.
        """
        count = class_count(model.subgraphs[0])
        if count and self.labels:
            self._require_label(count - 1 + self.class_offset, f"{model.file!r} may find")

    def _require_label(self, kind: int, found: str) -> None:
        if kind < 0 or (self.labels and kind >= len(self.labels)):
            its = kind - self.class_offset
            raise ArgumentError(
                f"{found} class {kind} (its own, {its}, and the class offset "
                f"{self.class_offset}), {self._allowed()}"
            )

    def _allowed(self) -> str:
        if not self.labels:
            return "and classes begin at 0"
        last = len(self.labels) - 1
        return f"and the {last + 1} labels are of classes 0 to {last}; {FIRST_LABEL}"

    def _order(self, outputs: Sequence[Details]) -> tuple[int, ...]:
        made = self.made.get(tuple(int(entry["index"]) for entry in outputs), ())
        return order_of(outputs, made, self.outputs)


def made_by_models(models: Sequence[Model]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return which outputs of each model come from its postprocessing node.

    Raises:
        ArgumentError: two models have the same outputs in different order.
    """
    made: dict[tuple[int, ...], tuple[int, ...]] = {}
    for model in models:
        graph = model.subgraphs[0]
        its = made_by_postprocess(graph)
        if made.setdefault(graph.outputs, its) != its:
            raise ArgumentError(
                f"{model.file!r} has its outputs in another order than the model before it, under "
                "the same numbers: evaluate them one at a time"
            )
    return made
