"""Masks of poses: assigns each point of a grid to one of several persons' poses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph_edgetpu.pose_decoding import KEYPOINTS, Grid

Floats = NDArray[np.float32]

_REFINEMENTS = 2


def instance_masks(long_offsets: Floats, keypoints: Floats, stride: int) -> Floats:
    """Return a mask per pose, ``[N, H, W], float32``: 1 for points of the pose, 0 elsewhere.

    The long-range offsets lead from every grid point to each keypoint of the person at this point.
    The point belongs to the pose whose keypoints are nearest to the resulting places.

    Args:
        long_offsets: ``[H, W, 34], float32``: y of all keypoints, then x, in steps of the grid.
        keypoints: ``[N, 17, 2], float32``: y and x in pixels.
        stride: number of pixels from one grid point to the next.

    Source:
        coral/posenet/posenet_decoder.cc of google-coral/libcoral, ``DecodeInstanceMasks``.
    """
    height, width, _ = long_offsets.shape
    masks = np.zeros((len(keypoints), height, width), np.float32)
    if len(keypoints) == 0:
        return masks
    guesses = _guesses(long_offsets) * np.float32(stride)
    distances = np.zeros((len(keypoints), height * width), np.float32)
    # One keypoint after another, because rounding depends on the order.
    for keypoint in range(len(KEYPOINTS)):
        dy = keypoints[:, keypoint, 0, None] - guesses[0, keypoint]
        dx = keypoints[:, keypoint, 1, None] - guesses[1, keypoint]
        distances += dy * dy + dx * dx
    masks.reshape(len(keypoints), -1)[distances.argmin(axis=0), np.arange(height * width)] = 1
    return masks


def _guesses(long_offsets: Floats) -> Floats:
    """Return the places of keypoints that grid points predict, ``[2, 17, H * W], float32``.

    *long_offsets* is that of :func:`instance_masks`.
    """
    height, width, _ = long_offsets.shape
    count = len(KEYPOINTS)
    points = np.indices((height, width)).reshape(2, 1, -1).astype(np.float32)
    places = np.broadcast_to(points, (2, count, height * width)).reshape(2, -1)
    channels = np.arange(2 * count).reshape(2, count).repeat(height * width, axis=1)
    grid = Grid(long_offsets)
    for _ in range(1 + _REFINEMENTS):
        places = grid.moved(places, channels)
    return places.reshape(2, count, -1)
