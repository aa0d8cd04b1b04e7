"""NON_MAX_SUPPRESSION_V4 and _V5 against the official interpreter, ties included."""

import numpy as np
import pytest

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse


def scalar(value):
    return constant(np.float32(value))


def scene(seed, limit=8):
    """Return boxes, some without area and some turned round, scores with ties, and a limit."""
    rng = np.random.default_rng(seed)
    boxes = rng.random((int(rng.integers(1, 40)), 4)).astype(np.float32)
    boxes[::2, 2:] = boxes[::2, :2] + boxes[::2, 2:] * 0.3
    boxes[::5, 2:] = boxes[::5, :2]
    scores = (rng.integers(0, 6, len(boxes)) / 5).astype(np.float32)
    return [fed(boxes), fed(scores), constant(np.array(limit, np.int32))]


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(
    ("overlap", "threshold"), [(0.3, 0.1), (0.0, 0.0), (1.0, -1.0), (0.5, 0.9)]
)
def test_the_same_boxes_stay(overlap, threshold, seed):
    inputs = [*scene(seed), scalar(overlap), scalar(threshold)]
    assert_agrees("NON_MAX_SUPPRESSION_V4", inputs, ["INT32", "INT32"])


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("sigma", [0.0, 0.1, 0.5])
def test_scores_are_lowered_alike(sigma, seed):
    inputs = [*scene(seed), scalar(0.5), scalar(0.1), scalar(sigma)]
    outputs = ["INT32", "FLOAT32", "INT32"]
    assert_agrees("NON_MAX_SUPPRESSION_V5", inputs, outputs, tolerance=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("column", range(4))
def test_boxes_with_a_corner_that_is_no_number_stay_alike(column, seed):
    boxes, scores, limit = scene(seed)
    boxes.array[::3, column] = np.nan
    scores.array[::6] = np.inf
    inputs = [boxes, scores, limit, scalar(0.5), scalar(0.1), scalar(1.0)]
    outputs = ["INT32", "FLOAT32", "INT32"]
    assert_agrees("NON_MAX_SUPPRESSION_V5", inputs, outputs, tolerance=1e-6)


def test_a_limit_that_comes_with_the_invoke_is_taken():
    inputs = [*scene(1)[:2], fed(np.array(5, np.int32)), scalar(0.5), scalar(0.1), scalar(0.2)]
    outputs = ["INT32", "FLOAT32", "INT32"]
    assert_agrees("NON_MAX_SUPPRESSION_V5", inputs, outputs, tolerance=1e-6)


@pytest.mark.parametrize(("limit", "sigma", "match"), [(-1, 0, "the most boxes"), (3, -1, "sigma")])
def test_negative_numbers_are_refused(limit, sigma, match):
    inputs = [*scene(1, limit), scalar(0.5), scalar(0.1), scalar(sigma)]
    outputs = ["INT32", "FLOAT32", "INT32"]
    assert_both_refuse("NON_MAX_SUPPRESSION_V5", inputs, outputs, match=match)
