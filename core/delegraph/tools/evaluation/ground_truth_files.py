"""Reads ground truth files by suffix, and lists of pictures to use."""

from __future__ import annotations

from pathlib import Path

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.coco_annotations import read_coco_annotations
from delegraph.tools.evaluation.ground_truth import GroundTruth
from delegraph.tools.evaluation.ground_truth_proto import read_ground_truth_proto
from delegraph.tools.evaluation.labelled_pictures import read_words

_READERS = {".json": read_coco_annotations, ".pb": read_ground_truth_proto}


def read_ground_truth(path: str) -> GroundTruth:
    """Return the objects of the file *path*: COCO's ``.json``, or the official tool's ``.pb``.

    Raises:
        ArgumentError: the file cannot be read, or does not hold ground truth; the message names the
            place.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise ArgumentError(
            f"{path!r}: expected ground truth in a .json file as COCO has it, or in the official "
            "tool's ground_truth.pb"
        )
    return reader(path)


def read_picture_ids(path: str) -> list[int]:
    """Return the numbers in the file *path*, one per line, like ``mscoco_minival_ids.txt``.

    Raises:
        ArgumentError: the file cannot be read, is empty, or a line is no number.
    """
    ids = []
    for number, word in enumerate(read_words(path), 1):
        if word and not word.isdecimal():
            raise ArgumentError(
                f"{path!r}, line {number}: expected the number of a picture, found {word[:40]!r}"
            )
        if word:
            ids.append(int(word))
    return ids
