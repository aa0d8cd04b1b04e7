from __future__ import annotations

import numpy as np
import pytest

from delegraph.tools.evaluation.class_offsets import OtherOffset, better_offset
from delegraph.tools.evaluation.detections import Detections
from delegraph.tools.evaluation.ground_truth import TruePicture

BOXES = np.float32([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1], [0, 0.9, 0.1, 1]])
TRUTH = TruePicture(1, "a.png", BOXES[:2], np.array([17, 18]))


def found(*classes: int) -> Detections:
    return Detections(BOXES, np.array(classes), np.ones(3, np.float32))


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ((16, 17, 5), OtherOffset(1, 2, 0, 2)),
        ((18, 19, 5), OtherOffset(-1, 2, 0, 2)),
        ((17, 17, 5), None),  # as many with either
        ((3, 4, 16), None),
    ],
)
def test_an_offset_that_fits_more_objects_is_better(
    classes: tuple[int, ...], expected: OtherOffset | None
) -> None:
    assert better_offset([TRUTH], [found(*classes)], 0) == expected
