"""Every detection of every set-up as a row of a table, with the objects that they match."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from delegraph.tools.evaluation.answers import write_csv
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture
from delegraph.tools.evaluation.tflite_matching import TfliteDefinition

COLUMNS = (
    "picture", "set-up", "class", "name", "score", "top", "left", "bottom", "right", "matched",
    "set-up name",
)  # fmt: skip


def write_detections(
    path: str,
    pictures: Sequence[TruePicture],
    setups: Sequence[str],
    found: Sequence[Sequence[Detections]],
    class_name: Callable[[int], str],
) -> None:
    """Write a CSV line per detection to *path*.

    The column *matched* says whether it takes an object that it overlaps by at least one half, as
    the official tool's definition matches them. *found* has, for each set-up, the detections in
    each picture. A name from *class_name* may be empty.

    Raises:
        ArgumentError: the file cannot be written.
    """
    write_csv(path, chain([COLUMNS], _rows(pictures, setups, found, class_name)))


def _rows(
    pictures: Sequence[TruePicture],
    setups: Sequence[str],
    found: Sequence[Sequence[Detections]],
    class_name: Callable[[int], str],
) -> Iterator[list[Any]]:
    for place, truth in enumerate(pictures):
        for setup, (text, answers) in enumerate(zip(setups, found, strict=True), 1):
            its = answers[place]
            right = TfliteDefinition().match(truth, its).right[0].tolist()
            rows = zip(its.classes.tolist(), its.scores, its.boxes, right, strict=True)
            for kind, score, box, is_right in rows:
                name = class_name(kind)
                yield [truth.name, setup, kind, name, score, *box, str(is_right).lower(), text]
