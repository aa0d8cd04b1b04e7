from __future__ import annotations

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.ground_truth import GroundTruth, InPixels, TruePicture


def picture(number: int, *boxes: list[float]) -> TruePicture:
    """Return a picture of 100 x 50 pixels with objects of the classes 1, 2, ..."""
    pixels = np.array(boxes, np.float64).reshape(-1, 4)
    left, top, width, height = pixels.T
    sides = np.stack([top / 50, left / 100, (top + height) / 50, (left + width) / 100], axis=1)
    n = len(pixels)
    rest = InPixels(100, 50, pixels, np.ones(n), np.zeros(n, np.bool_))
    classes = np.arange(1, n + 1)
    return TruePicture(number, f"{number}.jpg", sides.astype(np.float32), classes, rest)


def test_boxes_over_the_edge_are_dropped_as_the_script_does() -> None:
    whole, wide, high = [0.0, 0.0, 100.0, 50.0], [1.0, 0.0, 100.0, 1.0], [0.0, 0.5, 1.0, 50.0]
    prepared = picture(1, whole, wide, high, [99.0, 49.0, 1.0, 1.0]).as_prepared()
    assert prepared.classes.tolist() == [1, 4]
    assert prepared.boxes[0].tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_box_before_the_edge_stays_as_the_script_looks_at_the_far_sides_alone() -> None:
    assert picture(1, [-5.0, -5.0, 10.0, 10.0]).as_prepared().classes.tolist() == [1]


def test_what_the_script_wrote_stays() -> None:
    over = TruePicture(1, "a", np.array([[0, 0, 2, 2]], np.float32), np.array([1]))
    assert over.as_prepared() is over


def test_pictures_are_chosen_by_number() -> None:
    truth = GroundTruth("a.json", (picture(1), picture(2), picture(3)))
    assert [p.id for p in truth.of([3, 1, 3]).pictures] == [1, 3]
    with pytest.raises(ArgumentError, match=r"picture 9 is not in 'a\.json'"):
        truth.of([1, 9])
