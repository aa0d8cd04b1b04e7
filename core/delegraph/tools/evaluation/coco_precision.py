"""Average precision by COCO's definition, which needs ``pip install 'delegraph[coco]'``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.evaluation.coco_matching import in_pixels
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import GroundTruth, TruePicture

FIGURES = (
    *("AP", "AP50", "AP75", "APsmall", "APmedium", "APlarge"),
    *("AR1", "AR10", "AR100", "ARsmall", "ARmedium", "ARlarge"),
)
"""COCO's twelve figures in its order: average precisions (AP), then average recalls (AR).

AP is the mean over thresholds 0.5 to 0.95. Small means an area below 32 x 32 pixels; large means at
least 96 x 96 pixels. AR10 is the recall with at most 10 detections per picture.
"""


def _by_share(figures: Mapping[float, float]) -> dict[str, float]:
    return {f"{share:.2f}": figure for share, figure in figures.items()}


@dataclass(frozen=True, slots=True)
class CocoPrecision(JsonRecord):
    """COCO's figures of average precision; NaN for a figure without data.

    Attributes:
        figures: mapping from each name in :data:`FIGURES` to the figure.
        by_threshold: AP at each threshold of overlap.
        by_class: AP of each class of the ground truth.
    """

    figures: Mapping[str, float]
    by_threshold: Mapping[float, float] = field(metadata={"json_value": _by_share})
    by_class: Mapping[int, float]


def coco_precision(truth: GroundTruth, found: Sequence[Detections]) -> CocoPrecision:
    """Return COCO's figures of detections in every picture of the ground truth.

    Args:
        truth: ground truth with pixel sizes.
        found: detections in each picture of *truth*, in its order.

    Raises:
        ArgumentError: the package that computes them is not installed, or the ground truth lacks
            pixel sizes.

    Source:
        https://cocodataset.org/#detection-eval
    """
    require_coco(truth)
    from faster_coco_eval import COCO, COCOeval_faster

    kinds = truth.class_names or {int(k): "" for p in truth.pictures for k in p.classes}
    known: dict[str, Any] = {
        "categories": [{"id": kind, "name": name} for kind, name in sorted(kinds.items())],
        "images": [_size(picture) for picture in truth.pictures],
    }
    objects = [entry for picture in truth.pictures for entry in _objects(picture)]
    answers = [e for pair in zip(truth.pictures, found, strict=True) for e in _answers(*pair)]
    evaluation = COCOeval_faster(
        COCO({**known, "annotations": _numbered(objects)}),
        COCO({**known, "annotations": _numbered(answers)}),
        "bbox",
    )
    evaluation.run()
    # [thresholds, recalls, classes, areas, most detections]: of all areas, at most 100 detections
    precision = evaluation.eval["precision"][:, :, :, 0, -1]
    thresholds, classes = evaluation.params.iouThrs, evaluation.params.catIds
    return CocoPrecision(
        {name: _known(v) for name, v in zip(FIGURES, evaluation.stats, strict=True)},
        {round(float(t), 2): _mean(precision[i]) for i, t in enumerate(thresholds)},
        {int(kind): _mean(precision[:, :, i]) for i, kind in enumerate(classes)},
    )


def require_coco(truth: GroundTruth) -> None:
    """Check that COCO's figures can be computed: annotations in pixels, and the package.

    Raises:
        ArgumentError: something is missing; the message says what.
    """
    if not truth.has_pixels:
        raise ArgumentError(
            f"COCO's definition needs sizes in pixels and crowds, which {truth.source!r} lacks: "
            "give COCO's .json"
        )
    try:
        import faster_coco_eval  # noqa: F401 - to know whether it is there
    except ImportError as error:
        raise ArgumentError(
            "COCO's definition needs faster-coco-eval; install it with: pip install "
            "'delegraph[coco]'"
        ) from error


def _size(picture: TruePicture) -> dict[str, Any]:
    assert picture.pixels is not None  # require_coco has checked it
    return {"id": picture.id, "width": picture.pixels.width, "height": picture.pixels.height}


def _objects(picture: TruePicture) -> Iterator[dict[str, Any]]:
    pixels = picture.pixels
    assert pixels is not None  # require_coco has checked it
    rows = zip(
        picture.classes.tolist(),
        pixels.boxes.tolist(),
        pixels.areas.tolist(),
        pixels.crowds.tolist(),
        strict=True,
    )
    for kind, box, area, is_crowd in rows:
        yield {
            "image_id": picture.id,
            "category_id": kind,
            "bbox": box,
            "area": area,
            "iscrowd": int(is_crowd),
        }


def _answers(picture: TruePicture, found: Detections) -> Iterator[dict[str, Any]]:
    assert picture.pixels is not None  # require_coco has checked it
    boxes = in_pixels(found, picture.pixels).tolist()
    rows = zip(found.classes.tolist(), found.scores.tolist(), boxes, strict=True)
    for kind, score, box in rows:
        yield {
            "image_id": picture.id,
            "category_id": kind,
            "bbox": box,
            "score": score,
            "area": box[2] * box[3],
            "iscrowd": 0,
        }


def _numbered(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries with ids from 1, because COCO's code treats id 0 as a missing entry."""
    return [{"id": number, **entry} for number, entry in enumerate(entries, 1)]


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean of the known values; -1 marks an unknown value."""
    known = values[values > -1]
    return float(known.mean()) if known.size else np.nan


def _known(value: float) -> float:
    return float(value) if value > -1 else np.nan
