"""Poses are those of the definition, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph_edgetpu.instance_masks import instance_masks
from delegraph_edgetpu.pose_decoding import (
    BONES,
    KEYPOINTS,
    DecodingOptions,
    Poses,
    best_first,
    decode_poses,
)
from slow_poses import decoded, masks

Maps = tuple[np.ndarray, np.ndarray, np.ndarray]


def noise(seed: int, height: int, width: int, logit: float = -1.0) -> Maps:
    """Return random maps: poses overlap, leave the picture, and share keypoints."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(logit, 2, (height, width, 17)).astype(np.float32),
        rng.normal(0, 1, (height, width, 34)).astype(np.float32),
        rng.normal(0, 3, (height, width, 64)).astype(np.float32),
    )


def drawn(people: np.ndarray, height: int, width: int) -> Maps:
    """Return the maps of a perfect model for *people*, ``[N, 17, 2]``, places on the grid."""
    points = np.stack(np.indices((height, width)), axis=-1)[..., None, None, :]
    away = people - points  # [H, W, N, 17, 2]
    distance = (away**2).sum(-1)
    whose = distance.argmin(axis=2)
    heatmaps = 5 - distance.min(axis=2)
    near = np.take_along_axis(away, whose[:, :, None, :, None], axis=2)[:, :, 0]
    short = np.concatenate([near[..., 0], near[..., 1]], axis=-1)
    mid = np.zeros((height, width, 64))
    for bone, ends in enumerate(BONES):
        for against, (start, end) in enumerate([ends, ends[::-1]]):
            target = people[whose[:, :, start], end] - points[..., 0, 0, :]
            mid[..., 32 * against + bone] = target[..., 0]
            mid[..., 32 * against + 16 + bone] = target[..., 1]
    return heatmaps.astype(np.float32), short.astype(np.float32), mid.astype(np.float32)


def assert_same(poses: Poses, expected: list) -> None:
    assert len(poses.scores) == len(expected)
    for i, (score, places, shares) in enumerate(expected):
        assert poses.scores[i] == score
        np.testing.assert_array_equal(poses.keypoints[i], np.array(places, np.float32))
        np.testing.assert_array_equal(poses.keypoint_scores[i], np.array(shares, np.float32))


@pytest.mark.parametrize(
    ("seed", "height", "width", "options"),
    [
        (0, 9, 12, DecodingOptions(20, 0.2, 16, 10.0)),
        (1, 9, 12, DecodingOptions(20, 0.2, 16, 40.0)),
        (2, 5, 4, DecodingOptions(3, 0.3, 8, 6.0)),
        (3, 1, 1, DecodingOptions(20, 0.1, 16, 20.0)),
        (4, 1, 7, DecodingOptions(5, 0.25, 32, 0.0)),
        (5, 7, 9, DecodingOptions(40, 0.35, 16, 20.0)),
        (6, 8, 8, DecodingOptions(10, 0.0, 4, 8.0)),
        (7, 8, 8, DecodingOptions(0, 0.2, 16, 8.0)),
        (8, 8, 8, DecodingOptions(10, 0.9, 16, 8.0)),
    ],
)
def test_poses_in_noise_are_those_of_the_definition(
    seed: int, height: int, width: int, options: DecodingOptions
) -> None:
    maps = noise(seed, height, width)
    assert_same(decode_poses(*maps, options), decoded(*maps, options))


def test_more_roots_than_are_grown_together_change_nothing() -> None:
    maps = noise(9, 14, 18, logit=0)
    options = DecodingOptions(6, 0.5, 16, 30.0)
    assert_same(decode_poses(*maps, options), decoded(*maps, options))


def test_drawn_people_are_found_where_they_were_drawn() -> None:
    rng = np.random.default_rng(10)
    people = np.array([[10, 8], [12, 24]])[:, None] + rng.uniform(-6, 6, (2, 17, 2))
    poses = decode_poses(*drawn(people, 23, 31), DecodingOptions(20, 0.2, 16, 10.0))
    assert len(poses.scores) == 2
    order = np.argsort(poses.keypoints[:, :, 1].mean(axis=1))
    np.testing.assert_allclose(poses.keypoints[order], people * 16, atol=0.05)
    assert poses.keypoint_scores.min() > 0.98


def test_keypoint_that_a_better_pose_has_does_not_count() -> None:
    people = np.random.default_rng(11).uniform(1, 14, (2, 17, 2))
    people[1, :5] = people[0, :5]
    poses = decode_poses(*drawn(people, 16, 16), DecodingOptions(20, 0.2, 16, 10.0))
    assert len(poses.scores) == 2
    np.testing.assert_allclose(poses.scores[0], poses.keypoint_scores[0].mean(), atol=1e-6)
    assert poses.scores[1] < poses.keypoint_scores[1].mean() - 0.25


def test_roots_of_equal_score_come_as_in_libstdcpp() -> None:
    """The expected order was printed by a ``std::priority_queue`` that got the same scores."""
    assert [*best_first([0.0] * 5)] == [0, 2, 4, 1, 3]
    scores = [1.0, 2, 0, 2, 1, 1, 2, 2, 2, 0, 2, 0]
    assert [*best_first(scores)] == [1, 6, 3, 10, 7, 8, 5, 4, 0, 2, 11, 9]


def test_numbers_that_are_none_make_no_pose_and_no_crash() -> None:
    heatmaps, short, mid = noise(12, 6, 6)
    heatmaps[2], short[3], mid[4] = np.nan, np.inf, np.nan
    with np.errstate(all="ignore"):
        poses = decode_poses(heatmaps, short, mid, DecodingOptions(20, 0.2, 16, 10.0))
    assert len(poses.scores) <= 20


@pytest.mark.parametrize(("height", "width", "count"), [(5, 5, 3), (4, 7, 1), (6, 6, 0)])
def test_masks_are_those_of_the_definition(height: int, width: int, count: int) -> None:
    rng = np.random.default_rng(13)
    long = rng.normal(0, 2, (height, width, 34)).astype(np.float32)
    poses = rng.uniform(0, 16 * width, (count, 17, 2)).astype(np.float32)
    expected = masks(long, poses, 16) if count else np.zeros((0, height, width), np.float32)
    np.testing.assert_array_equal(instance_masks(long, poses, 16), expected)


def test_skeleton_reaches_every_keypoint_by_one_way() -> None:
    reached = {0}
    for near, far in BONES:
        assert near in reached
        assert far not in reached
        reached.add(far)
    assert reached == set(range(len(KEYPOINTS)))
