"""Poses by the letter of their definition: one keypoint, one bone, one point at a time.

Scalars are ``np.float32``, so that every operation rounds as in the definition.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_edgetpu.pose_decoding import BONES, DecodingOptions

Floats = NDArray[np.float32]
Point = tuple[np.float32, np.float32]

COUNT = 17
ONE = np.float32(1)


def sampled(grid: Floats, place: Point, channel: int) -> np.float32:
    """Return a value between the points of a grid ``[H, W, C]``."""
    (y, x), (y0, x0) = place, (math.floor(place[0]), math.floor(place[1]))
    y1, x1 = math.ceil(y), math.ceil(x)
    dy, dx = y - np.float32(y0), x - np.float32(x0)
    top = (ONE - dx) * grid[y0, x0, channel] + dx * grid[y0, x1, channel]
    bottom = (ONE - dx) * grid[y1, x0, channel] + dx * grid[y1, x1, channel]
    return (ONE - dy) * top + dy * bottom


def within(value: np.float32, length: int) -> np.float32:
    return min(max(value, np.float32(0)), np.float32(length - 1))


def moved(grid: Floats, place: Point, y_channel: int, x_channel: int) -> Point:
    y = place[0] + sampled(grid, place, y_channel)
    x = place[1] + sampled(grid, place, x_channel)
    return within(y, grid.shape[0]), within(x, grid.shape[1])


def bones_from(keypoint: int) -> list[tuple[int, int]]:
    """Return the other end of each bone at a keypoint, and the channel of the offset in y."""
    found = []
    for edge, (start, end) in enumerate([*BONES, *((b, a) for a, b in BONES)]):
        if start == keypoint:
            found.append((end, edge + 16 if edge > 16 else edge))
    return found


def grown(
    root: int, place: Point, heatmaps: Floats, short: Floats, mid: Floats
) -> tuple[dict[int, Point], dict[int, np.float32]]:
    """Return places and probabilities of a pose's keypoints, grown from the likeliest bone on."""
    places: dict[int, Point] = {}
    logits: dict[int, np.float32] = {}
    waiting = [(sampled(heatmaps, place, root), root, place)]
    while waiting:
        waiting.sort(key=lambda item: item[0])
        logit, keypoint, place = waiting.pop()
        if keypoint in places:
            continue
        places[keypoint], logits[keypoint] = place, logit
        for other, channel in bones_from(keypoint):
            if other not in places:
                target = moved(mid, place, channel, channel + 16)
                for _ in range(5):
                    target = moved(short, target, other, other + COUNT)
                waiting.append((sampled(heatmaps, target, other), other, target))
    return places, {k: ONE / (ONE + np.float32(math.exp(-v))) for k, v in logits.items()}


def is_highest(heatmaps: Floats, y: int, x: int, keypoint: int) -> bool:
    around = heatmaps[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2, keypoint]
    return not any(value > heatmaps[y, x, keypoint] for value in around.flat)


def is_near(a: Point, b: Point, squared_radius: np.float32) -> bool:
    dy, dx = b[0] - a[0], b[1] - a[1]
    return bool(dy * dy + dx * dx <= squared_radius)


def mean(values: list[np.float32]) -> np.float32:
    total = np.float32(0)
    for value in values:
        total = total + value
    return total / np.float32(COUNT)


def decoded(
    heatmaps: Floats, short: Floats, mid: Floats, options: DecodingOptions
) -> list[tuple[np.float32, list[Point], list[np.float32]]]:
    """Return score, places in pixels, and probabilities of each pose; scores must be distinct."""
    height, width, _ = heatmaps.shape
    least = -math.log(1 / (float(np.float32(options.score_threshold)) + 1e-6) - 1)
    radius = np.float32(options.nms_radius) / np.float32(options.stride)
    squared = radius * radius
    roots = [
        (heatmaps[y, x, k], y, x, k)
        for y in range(height)
        for x in range(width)
        for k in range(COUNT)
        if heatmaps[y, x, k] >= np.float32(least) and is_highest(heatmaps, y, x, k)
    ]
    found: list[Any] = []
    for _, y, x, k in sorted(roots, reverse=True):
        place = (
            within(np.float32(y) + short[y, x, k], height),
            within(np.float32(x) + short[y, x, k + COUNT], width),
        )
        if any(is_near(place, pose[1][k], squared) for pose in found):
            continue
        places, shares = grown(k, place, heatmaps, short, mid)
        score = mean(sorted(shares.values(), reverse=True))
        if score >= np.float32(options.score_threshold) and len(found) < options.max_detections:
            found.append((score, places, shares))
    found.sort(key=lambda pose: pose[0], reverse=True)
    rescored = []
    for i, (_, places, shares) in enumerate(found):
        ranked = sorted(range(COUNT), key=lambda k: shares[k], reverse=True)
        own = [
            k for k in ranked if not any(is_near(places[k], p[1][k], squared) for p in found[:i])
        ]
        rescored.append((mean([shares[k] for k in own]), places, shares))
    rescored.sort(key=lambda pose: pose[0], reverse=True)
    stride = np.float32(options.stride)
    return [
        (
            score,
            [(places[k][0] * stride, places[k][1] * stride) for k in range(COUNT)],
            [shares[k] for k in range(COUNT)],
        )
        for score, places, shares in rescored
        if score >= np.float32(options.score_threshold)
    ]


def masks(long: Floats, poses: Floats, stride: int) -> Floats:
    """Return a mask for each pose; *poses* is ``[N, 17, 2]`` in pixels."""
    height, width, _ = long.shape
    found = np.zeros((len(poses), height, width), np.float32)
    for y in range(height):
        for x in range(width):
            totals = [np.float32(0)] * len(poses)
            for k in range(COUNT):
                place = (np.float32(y), np.float32(x))
                for _ in range(3):
                    place = moved(long, place, k, k + COUNT)
                for n, pose in enumerate(poses):
                    dy = pose[k, 0] - place[0] * np.float32(stride)
                    dx = pose[k, 1] - place[1] * np.float32(stride)
                    totals[n] = totals[n] + (dy * dy + dx * dx)
            found[totals.index(min(totals)), y, x] = 1
    return found
