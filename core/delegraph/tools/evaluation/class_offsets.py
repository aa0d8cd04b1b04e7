"""Class offsets that explain a ground truth better than the given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delegraph.json_records import JsonRecord
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture
from delegraph.tools.evaluation.tflite_matching import THRESHOLDS, overlaps


@dataclass(frozen=True, slots=True)
class OtherOffset(JsonRecord):
    """A class offset with which more detections have the class of an object that they overlap.

    Attributes:
        class_offset: this offset.
        detections: number of detections that overlap an object by at least one half.
        right: number of them that have the object's class with the given offset.
        right_then: number of them that would have it with this offset.
    """

    class_offset: int
    detections: int
    right: int
    right_then: int


def better_offset(
    pictures: Sequence[TruePicture], found: Sequence[Detections], class_offset: int
) -> OtherOffset | None:
    """Return the offset, one more or one less, that explains the truth better; None if none does.

    *class_offset* is the one that the classes in *found* include.
    """
    right = dict.fromkeys((0, -1, 1), 0)
    near = 0
    for truth, its in zip(pictures, found, strict=True):
        overlap = overlaps(its.boxes, truth.boxes) >= THRESHOLDS[0]
        near += int(overlap.any(axis=1).sum())
        for shift in right:
            same = (its.classes + shift)[:, None] == truth.classes[None]
            right[shift] += int((overlap & same).any(axis=1).sum())
    shift = max((-1, 1), key=right.__getitem__)
    if right[shift] <= right[0]:
        return None
    return OtherOffset(class_offset + shift, near, right[0], right[shift])
