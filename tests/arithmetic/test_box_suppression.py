"""Non-maximum suppression against a slow definition."""

import numpy as np
import pytest

from delegraph.arithmetic.box_suppression import descending, overlaps, suppressed


def slow_overlap(a, b):
    """Return the intersection over union of two boxes (y0, x0, y1, x1)."""
    height, width = (min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    if min(areas) <= 0:
        return 0.0
    common = max(height, 0.0) * max(width, 0.0)
    return common / (sum(areas) - common)


def boxes_of(seed, count=20):
    rng = np.random.default_rng(seed)
    low = rng.random((count, 2))
    boxes = np.concatenate([low, low + rng.random((count, 2)) * 0.6], axis=1).astype(np.float32)
    boxes[0, 2:] = boxes[0, :2]  # no area
    return boxes


@pytest.mark.parametrize("seed", range(5))
def test_overlap_is_intersection_over_union(seed):
    boxes = boxes_of(seed)
    for one in (0, 3):
        slow = [slow_overlap(boxes[one], box) for box in boxes]
        np.testing.assert_allclose(overlaps(boxes, one, np.arange(20)), slow, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_boxes_that_overlap_a_better_one_go(seed):
    boxes, ranked = boxes_of(seed), np.random.default_rng(seed).permutation(20)
    kept = []
    for box in ranked.tolist():
        if all(slow_overlap(boxes[box], boxes[other]) <= 0.3 for other in kept):
            kept.append(box)
    assert suppressed(boxes, ranked, 0.3, 20) == kept
    assert suppressed(boxes, ranked, 0.3, 2) == kept[:2]


def test_equal_scores_stay_in_order():
    assert descending(np.array([1, 3, 1, 3])).tolist() == [1, 3, 0, 2]
