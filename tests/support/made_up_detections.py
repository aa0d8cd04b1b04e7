"""Objects in pictures and detections of them, without pictures or models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delegraph.tools import Detections, InPixels, TruePicture

SIDE = 200
"""Pixels of a picture's side."""


def truth(*objects: tuple[Sequence[float], int]) -> TruePicture:
    boxes = np.array([box for box, _ in objects], np.float32).reshape(-1, 4)
    return true_picture(1, boxes, np.array([kind for _, kind in objects], np.int64))


def found(*objects: tuple[Sequence[float], int, float]) -> Detections:
    return Detections(
        np.array([box for box, _, _ in objects], np.float32).reshape(-1, 4),
        np.array([kind for _, kind, _ in objects], np.int64),
        np.array([score for _, _, score in objects], np.float32),
    )


def made_up(seed: int, pictures: int = 30) -> tuple[list[TruePicture], list[Detections]]:
    """Return random objects, and detections with shifts, misses, duplicates and false positives."""
    rng = np.random.default_rng(seed)
    truths, answers = [], []
    for number in range(1, pictures + 1):
        n = rng.integers(0, 6)
        low = rng.uniform(0, 0.7, (n, 2))
        boxes = np.concatenate([low, low + rng.uniform(0.1, 0.3, (n, 2))], axis=1)
        kinds = rng.integers(1, 5, n)
        truths.append(true_picture(number, boxes, kinds.astype(np.int64)))
        took = rng.integers(0, max(n, 1), rng.integers(0, 8)) if n else np.zeros(0, np.int64)
        moved = boxes[took] + rng.normal(0, 0.02, (len(took), 4))
        wrong = rng.uniform(0, 1, (rng.integers(0, 3), 4))
        answers.append(
            Detections(
                np.concatenate([moved, wrong]).astype(np.float32),
                np.concatenate([kinds[took], rng.integers(1, 7, len(wrong))]).astype(np.int64),
                # Few values, so that many scores are equal.
                (rng.integers(1, 20, len(took) + len(wrong)) / 20).astype(np.float32),
            )
        )
    return truths, answers


def true_picture(
    number: int, boxes: np.ndarray, classes: np.ndarray, crowds: np.ndarray | None = None
) -> TruePicture:
    """Return a picture's objects; *boxes* are top, left, bottom, right from 0 to 1."""
    top, left, bottom, right = boxes.astype(np.float64).T * SIDE
    in_pixels = np.stack([left, top, right - left, bottom - top], axis=1)
    areas = in_pixels[:, 2] * in_pixels[:, 3]
    crowds = np.zeros(len(boxes), np.bool_) if crowds is None else crowds
    pixels = InPixels(SIDE, SIDE, in_pixels, areas, crowds)
    return TruePicture(number, f"{number}.jpg", boxes.astype(np.float32), classes, pixels)
