"""Precision of detections of several set-ups by both definitions, and the drop between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.bootstrap import RESAMPLES, Interval, percentile_interval, resampled
from delegraph.tools.evaluation.average_precision import THRESHOLDS, AveragePrecisions, Tally
from delegraph.tools.evaluation.coco_precision import CocoPrecision, coco_precision, require_coco
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import GroundTruth
from delegraph.tools.progress import Progress, untold

DEFINITIONS = {
    "tflite": "crowds are objects, a class that was only found counts as 0, all detections count, "
    "what its script drops does not",
    "coco": "a crowd is no object and what lies in it no miss, a class that was only found does "
    "not count, 100 detections of a class and picture count at most",
}
"""The official tool's definition of mean average precision and COCO's: how they differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """How well one set-up detects.

    Attributes:
        tflite: average precision by the official tool's definition.
        interval: where its mean lies.
        coco: by COCO's definition; None where it cannot be computed.
        no_numbers: detections with infinities or NaN in them, which were left out.
    """

    tflite: AveragePrecisions
    interval: Interval
    coco: CocoPrecision | None
    no_numbers: int

    def to_json(self) -> dict[str, Any]:
        """Return the means, by threshold and by class, of both definitions."""
        shares = zip(THRESHOLDS.tolist(), self.tflite.by_threshold().tolist(), strict=True)
        return {
            "tflite": {
                "mean": self.tflite.mean,
                "interval": self.interval.to_json(),
                "by_threshold": {f"{share:.2f}": value for share, value in shares},
                "by_class": {str(kind): v for kind, v in self.tflite.by_class().items()},
            },
            "coco": None if self.coco is None else self.coco.to_json(),
            "no_numbers": self.no_numbers,
        }


@dataclass(frozen=True, slots=True)
class PrecisionDrop:
    """What a set-up loses of the mean average precision of the first one.

    Attributes:
        tflite: by the official tool's definition.
        interval: where it lies, by the bootstrap over pictures.
        coco: by COCO's definition; None where it cannot be computed.
    """

    tflite: float
    interval: Interval
    coco: float | None

    def to_json(self) -> dict[str, Any]:
        """Return all attributes."""
        return {"tflite": self.tflite, "interval": self.interval.to_json(), "coco": self.coco}


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """How well set-ups detect, each and against the first one.

    Attributes:
        precisions: of every set-up.
        drops: of every set-up; the first entry is None.
        without_coco: why there are no figures of COCO; None where they are there.
        prepared: whether for the official tool's definition its script dropped boxes and pictures.
        resamples, seed: of the bootstrap.
    """

    precisions: tuple[Precision, ...]
    drops: tuple[PrecisionDrop | None, ...]
    without_coco: str | None
    prepared: bool
    resamples: int
    seed: int


def judged(
    truth: GroundTruth,
    found: Sequence[Sequence[Detections]],
    *,
    prepared: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress = untold,
) -> Judgement:
    """Return how well several set-ups detect, from their detections.

    Args:
        truth: the pictures.
        found: for each set-up, the detections in each picture of *truth*.
        prepared: whether for the official tool's definition pictures without objects, and boxes
            over the edge, are dropped, as its script does.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.
        progress: is told how far it is.
    """
    figures, drawn = _official(truth, found, prepared, resamples, seed, progress)
    without_coco, coco = _coco(truth, found)
    precisions = tuple(
        Precision(figures[i], percentile_interval(drawn[:, i]), coco[i], _no_numbers(found[i]))
        for i in range(len(found))
    )
    drops = tuple(_drop(precisions, drawn, position) for position in range(len(found)))
    return Judgement(precisions, drops, without_coco, prepared, resamples, seed)


def _official(
    truth: GroundTruth,
    found: Sequence[Sequence[Detections]],
    prepared: bool,
    resamples: int,
    seed: int,
    progress: Progress,
) -> tuple[list[AveragePrecisions], NDArray[np.float64]]:
    """Return the official figures of every set-up, and their means on draws of pictures.

    Returns:
        for each set-up; ``[resamples, set-ups], float64``: each row is of the same pictures.
    """
    pictures = truth.pictures
    used = [i for i, p in enumerate(pictures) if not (prepared and p.is_dropped)]
    truths = [pictures[i].as_prepared() if prepared else pictures[i] for i in used]
    tallies = []
    for position, answers in enumerate(found):
        progress("matching", position, len(found))
        tallies.append(Tally(truths, [answers[i] for i in used]))
    figures = [tally.average_precisions() for tally in tallies]
    if not used:
        return figures, np.full((1, len(found)), np.nan)
    drawn = resampled(
        lambda units: [tally.average_precisions(units).mean for tally in tallies],
        len(used),
        resamples=resamples,
        seed=seed,
        progress=progress,
    )
    return figures, drawn


def _coco(
    truth: GroundTruth, found: Sequence[Sequence[Detections]]
) -> tuple[str | None, list[CocoPrecision | None]]:
    """Return COCO's figures of every set-up, or why there are none."""
    try:
        require_coco(truth)
    except ArgumentError as error:
        return str(error), [None for _ in found]
    return None, [coco_precision(truth, answers) for answers in found]


def _no_numbers(answers: Sequence[Detections]) -> int:
    return sum(answer.no_numbers for answer in answers)


def _drop(
    precisions: Sequence[Precision], drawn: NDArray[np.float64], position: int
) -> PrecisionDrop | None:
    if position == 0:
        return None
    first, this = precisions[0], precisions[position]
    return PrecisionDrop(
        first.tflite.mean - this.tflite.mean,
        percentile_interval(drawn[:, 0] - drawn[:, position]),
        None
        if first.coco is None or this.coco is None
        else first.coco.figures["AP"] - this.coco.figures["AP"],
    )
