"""Recognizes the key points of persons among a model's outputs: PoseNet and MoveNet.

Both have the 17 points of the COCO data set.

Source:
    ``decodeSinglePose``, tfjs-models/posenet/src/single_pose; the model cards of MoveNet.SinglePose
    and MoveNet.MultiPose.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.recognition.findings import Edges, Findings, KeyPoint, Pose
from delegraph.tools.recognition.picture_answer import Seen, stated_count

DECODER = "PosenetDecoderOp"
"""Operator that ends Coral's PoseNet; outputs key points, their scores, poses' scores, count."""

POINTS = (
    "nose",
    "left eye",
    "right eye",
    "left ear",
    "right ear",
    "left shoulder",
    "right shoulder",
    "left elbow",
    "right elbow",
    "left wrist",
    "right wrist",
    "left hip",
    "right hip",
    "left knee",
    "right knee",
    "left ankle",
    "right ankle",
)

EDGES: Edges = (
    *((0, 1), (0, 2), (1, 3), (2, 4)),  # head
    *((5, 6), (5, 11), (6, 12), (11, 12)),  # trunk
    *((5, 7), (7, 9), (6, 8), (8, 10)),  # arms
    *((11, 13), (13, 15), (12, 14), (14, 16)),  # legs
)

_COUNT = len(POINTS)


def find_poses(seen: Seen) -> Findings | None:
    """Return the poses in the outputs *seen*; None if there are none."""
    if seen.size is None:
        return None
    for find in (_decoded, _movenet, _heatmaps):
        found = find(seen, seen.size)
        if found is not None:
            tensors, points, scores = found
            threshold = seen.least_score(*tensors)
            poses = [
                Pose(_points(rows), score, EDGES)
                for rows, score in zip(points, scores.tolist(), strict=True)
                if score >= threshold and np.isfinite(rows).all()
            ]
            poses.sort(key=lambda pose: -pose.score)
            return Findings(frozenset(tensors), threshold, len(points), poses=tuple(poses))
    return None


_Poses = tuple[list[int], NDArray[np.float64], NDArray[np.float64]]
"""Tensor indices, points and scores of poses.

Points are ``[n, 17, 3]`` (y, x, score; y and x as shares of the picture), scores are ``[n]``.
"""


def _points(rows: NDArray[np.float64]) -> tuple[KeyPoint, ...]:
    return tuple(
        KeyPoint(name, x, y, score)
        for name, (y, x, score) in zip(POINTS, rows.tolist(), strict=True)
    )


def _decoded(seen: Seen, size: tuple[int, int]) -> _Poses | None:
    """Return the poses from the decoder of Coral's PoseNet, whose coordinates are in pixels.

    *size* is the input's width and height. The result is None if the outputs are not those of this
    decoder.
    """
    made = seen.made_by(DECODER)
    if len(made) != 4:
        return None
    points, point_scores, scores, counts = (values for _, values in made)
    if points.shape[2:] != (_COUNT, 2) or point_scores.shape != points.shape[:3]:
        return None
    if scores.shape != points.shape[:2]:
        return None
    count = stated_count(counts)
    places = points.reshape(-1, _COUNT, 2) / (size[1], size[0])
    rows = np.concatenate([places, point_scores.reshape(-1, _COUNT, 1)], axis=2)
    return [index for index, _ in made], rows[:count], scores.reshape(-1)[:count]


def _movenet(seen: Seen, size: tuple[int, int]) -> _Poses | None:
    """Return the poses of MoveNet, whose output holds (y, x, score) for each point.

    SinglePose has one person; MultiPose has six, each followed by its box and score. The result is
    None if the output has another shape. *size* is not needed.
    """
    outputs = seen.real()
    if len(outputs) != 1:
        return None
    index, values = outputs[0]
    if values.shape == (1, 1, _COUNT, 3):
        return [index], values[0], values[0, :, :, 2].mean(axis=1)
    if values.shape == (1, 6, 3 * _COUNT + 5):
        return [index], values[0, :, : 3 * _COUNT].reshape(-1, _COUNT, 3), values[0, :, -1]
    return None


def _heatmaps(seen: Seen, size: tuple[int, int]) -> _Poses | None:
    """Return the pose in PoseNet's heatmaps and offsets, from the best position of each point.

    Heatmaps are ``[1, h, w, 17]``, offsets ``[1, h, w, 34]``: y of all points in pixels of the
    input, then x. *size* is the input's width and height. The result is None for outputs of other
    shapes.
    """
    by_depth = {values.shape[-1]: (i, values) for i, values in seen.real() if values.ndim == 4}
    if not {_COUNT, 2 * _COUNT} <= set(by_depth):
        return None
    (heat_index, heat), (offset_index, offsets) = by_depth[_COUNT], by_depth[2 * _COUNT]
    _, h, w, _ = heat.shape
    if heat.shape[:3] != offsets.shape[:3] or heat.shape[0] != 1 or min(h, w) < 2:
        return None
    best = heat.reshape(-1, _COUNT).argmax(axis=0)  # [17]
    moved = offsets.reshape(-1, 2, _COUNT)[best, :, np.arange(_COUNT)]  # [17, 2]
    cells = np.stack(np.divmod(best, w), axis=1)
    pixels = np.array([size[1], size[0]], np.float64)
    places = (cells * ((pixels - 1) / [h - 1, w - 1]) + moved) / pixels
    scores = 1 / (1 + np.exp(-np.clip(heat.reshape(-1, _COUNT).max(axis=0), -50, 50)))
    rows = np.concatenate([places, scores[:, None]], axis=1)[None]
    return [heat_index, offset_index], rows, scores.mean(keepdims=True)
