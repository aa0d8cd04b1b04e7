"""COCO's figures by pycocotools, and made-up detections with all that COCO knows."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Sequence

import numpy as np
import pytest

from delegraph.tools import Detections, TruePicture
from support.made_up_detections import SIDE, made_up


def as_pycocotools(truths: Sequence[TruePicture], answers: Sequence[Detections]) -> list[float]:
    """Return the twelve COCO metrics in pycocotools's order; NaN if there is nothing to measure."""
    coco_module = pytest.importorskip("pycocotools.coco")
    from pycocotools.cocoeval import COCOeval

    objects, results = [], []
    for picture, answer in zip(truths, answers, strict=True):
        pixels = picture.pixels
        assert pixels is not None
        for i, kind in enumerate(picture.classes):
            objects.append(
                {
                    "id": len(objects) + 1,
                    "image_id": picture.id,
                    "category_id": int(kind),
                    "bbox": pixels.boxes[i].tolist(),
                    "area": float(pixels.areas[i]),
                    "iscrowd": int(pixels.crowds[i]),
                }
            )
        for box, kind, score in zip(answer.boxes, answer.classes, answer.scores, strict=True):
            top, left, bottom, right = (float(side) * SIDE for side in box)
            results.append(
                {
                    "image_id": picture.id,
                    "category_id": int(kind),
                    "bbox": [left, top, max(right - left, 0), max(bottom - top, 0)],
                    "score": float(score),
                }
            )
    kinds = sorted({entry["category_id"] for entry in objects})
    with contextlib.redirect_stdout(io.StringIO()):
        known = coco_module.COCO()
        known.dataset = {
            "images": [{"id": p.id, "width": SIDE, "height": SIDE} for p in truths],
            "categories": [{"id": kind, "name": str(kind)} for kind in kinds],
            "annotations": objects,
        }
        known.createIndex()
        evaluation = COCOeval(known, known.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return [np.nan if v == -1 else v for v in evaluation.stats.tolist()]


def made_up_with_crowds(
    seed: int, pictures: int = 60
) -> tuple[list[TruePicture], list[Detections]]:
    """Return random objects; some are crowds and cover less area than their boxes."""
    truths, answers = made_up(seed, pictures)
    rng = np.random.default_rng(seed)
    for i, picture in enumerate(truths):
        assert picture.pixels is not None
        n = len(picture.classes)
        pixels = dataclasses.replace(
            picture.pixels,
            crowds=rng.uniform(0, 1, n) < 0.2,
            areas=picture.pixels.areas * rng.uniform(0.3, 1, n),  # of outlines: less than the boxes
        )
        truths[i] = dataclasses.replace(picture, pixels=pixels)
    return truths, answers
