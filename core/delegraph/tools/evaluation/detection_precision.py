"""Detection precision of several set-ups by two definitions, and the loss of precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.bootstrap import RESAMPLES, Interval, percentile_interval, resampled
from delegraph.tools.evaluation.average_precision import AveragePrecisions, Tally
from delegraph.tools.evaluation.coco_matching import CocoDefinition
from delegraph.tools.evaluation.coco_precision import CocoPrecision, coco_precision, require_coco
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import GroundTruth
from delegraph.tools.evaluation.tflite_matching import THRESHOLDS, TfliteDefinition
from delegraph.tools.progress import Progress, untold

DEFINITIONS = {
    "tflite": "crowds are objects, a class that was only found counts as 0, all detections count, "
    "what its script drops does not",
    "coco": "a crowd is no object and what lies in it no miss, a class that was only found does "
    "not count, 100 detections of a class and picture count at most",
}
"""Mapping from each definition of mean average precision to its differences, in words."""


@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """Detection precision of one set-up.

    Attributes:
        tflite: average precision by the official tool's definition.
        interval: confidence interval of the mean of *tflite*.
        coco: COCO's figures; None if they cannot be computed.
        coco_interval: confidence interval of COCO's first figure.
        no_numbers: number of detections that were left out because of infinities or NaN.
    """

    tflite: AveragePrecisions
    interval: Interval
    coco: CocoPrecision | None
    coco_interval: Interval | None
    no_numbers: int

    def to_json(self) -> dict[str, Any]:
        """Return the means by threshold and by class, for both definitions."""
        shares = zip(THRESHOLDS.tolist(), self.tflite.by_threshold().tolist(), strict=True)
        coco = None
        if self.coco is not None and self.coco_interval is not None:
            coco = {**self.coco.to_json(), "interval": self.coco_interval.to_json()}
        return {
            "tflite": {
                "mean": self.tflite.mean,
                "interval": self.interval.to_json(),
                "by_threshold": {f"{share:.2f}": value for share, value in shares},
                "by_class": {str(kind): v for kind, v in self.tflite.by_class().items()},
            },
            "coco": coco,
            "no_numbers": self.no_numbers,
        }


@dataclass(frozen=True, slots=True)
class PrecisionDrop(JsonRecord):
    """Mean average precision that a set-up loses against the first set-up, by one metric.

    Attributes:
        drop: the first set-up's precision minus this set-up's.
        interval: confidence interval of the drop, by the bootstrap over pictures.
    """

    drop: float
    interval: Interval


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """Detection precision of every set-up, and the loss against the first set-up.

    Attributes:
        precisions: precision of every set-up.
        drops: drop of every set-up by the official tool's definition; the first set-up's drop is 0.
        coco_drops: drop of every set-up by COCO's definition; None if it cannot be computed.
        without_coco: text that says why there are no COCO figures; None if there are.
        prepared: whether boxes and pictures were dropped for the official tool's definition, as its
            script does.
        resamples, seed: number of draws of the bootstrap, and its seed.
    """

    precisions: tuple[Precision, ...]
    drops: tuple[PrecisionDrop, ...]
    coco_drops: tuple[PrecisionDrop, ...] | None
    without_coco: str | None
    prepared: bool
    resamples: int
    seed: int


Draw = Callable[[Sequence[Tally], int], NDArray[np.float64]]
"""Function that returns the means of tallies on random draws of pictures.

It takes the tallies and their number of pictures, and returns ``[resamples, tallies]``.
"""


def judged(
    truth: GroundTruth,
    found: Sequence[Sequence[Detections]],
    *,
    prepared: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress = untold,
) -> Judgement:
    """Return the precision of several set-ups, from their detections.

    *found* has, for each set-up, the detections in each picture of *truth*. The other arguments are
    those of :func:`delegraph.tools.evaluate_detection`.
    """

    def draw(tallies: Sequence[Tally], pictures: int) -> NDArray[np.float64]:
        return resampled(
            lambda units: [tally.average_precisions(units).mean for tally in tallies],
            pictures,
            resamples=resamples,
            seed=seed,
            progress=progress,
        )

    figures, drawn = _official(truth, found, prepared, draw)
    coco, coco_drawn, without_coco = _coco(truth, found, draw)
    precisions = tuple(
        Precision(
            figures[i],
            percentile_interval(drawn[:, i]),
            None if coco is None else coco[i],
            None if coco_drawn is None else percentile_interval(coco_drawn[:, i]),
            sum(answer.no_numbers for answer in answers),
        )
        for i, answers in enumerate(found)
    )
    drops = _drops([figure.mean for figure in figures], drawn)
    coco_drops = None
    if coco is not None and coco_drawn is not None:
        coco_drops = _drops([each.figures["AP"] for each in coco], coco_drawn)
    return Judgement(precisions, drops, coco_drops, without_coco, prepared, resamples, seed)


def _official(
    truth: GroundTruth, found: Sequence[Sequence[Detections]], prepared: bool, draw: Draw
) -> tuple[list[AveragePrecisions], NDArray[np.float64]]:
    """Return the official figures of every set-up, and their means on resampled pictures.

    *prepared* drops boxes and pictures as the official tool's script does; *draw* resamples.
    """
    pictures = truth.pictures
    used = [i for i, p in enumerate(pictures) if not (prepared and p.is_dropped)]
    truths = [pictures[i].as_prepared() if prepared else pictures[i] for i in used]
    tallies = [Tally(TfliteDefinition(), truths, [its[i] for i in used]) for its in found]
    return [tally.average_precisions() for tally in tallies], draw(tallies, len(used))


def _coco(
    truth: GroundTruth, found: Sequence[Sequence[Detections]], draw: Draw
) -> tuple[list[CocoPrecision] | None, NDArray[np.float64] | None, str | None]:
    """Return COCO's figures of each set-up in *found*, and those of the data that *draw* resamples.

    The third result is None. If *truth* does not suffice for COCO's definition, the first two
    results are None, and the third is the reason.
    """
    try:
        require_coco(truth)
    except ArgumentError as error:
        return None, None, str(error)
    figures = [coco_precision(truth, answers) for answers in found]
    tallies = [Tally(CocoDefinition(), truth.pictures, answers) for answers in found]
    return figures, draw(tallies, len(truth.pictures)), None


def _drops(means: Sequence[float], drawn: NDArray[np.float64]) -> tuple[PrecisionDrop, ...]:
    return tuple(
        PrecisionDrop(means[0] - mean, percentile_interval(drawn[:, 0] - drawn[:, i]))
        for i, mean in enumerate(means)
    )
