"""Decodes the poses of several people from the output maps of a PoseNet.

A PoseNet returns three maps, with values for each point of a coarse grid. Heatmaps have the
likelihood of each of 17 keypoints (nose, eyes, shoulders, ...) at the point. Short-range offsets
lead from the point to the exact place of the keypoint. Mid-range offsets lead along each bone to
the keypoint at the bone's other end. A pose is built from its likeliest keypoint, the root, along
the bones.

Source:
    coral/posenet/posenet_decoder.cc of google-coral/libcoral, ``DecodeAllPoses``. There a pose is
    built bone by bone, the likeliest first. The skeleton is a tree, so the order of bones cannot
    change a pose. Here all keypoints at the same distance from their roots are computed at once,
    for many poses together.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import descending, pop, push

Floats = NDArray[np.float32]
Integers = NDArray[np.intp]

KEYPOINTS = (
    *("nose", "left eye", "right eye", "left ear", "right ear", "left shoulder"),
    *("right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left hip"),
    *("right hip", "left knee", "right knee", "left ankle", "right ankle"),
)
"""Names of the keypoints in the order of the heatmaps' channels."""

BONES = (
    *((0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15)),
    *((0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16)),
)
"""Keypoints at both ends of each bone; the keypoint nearer to the nose is first."""

MID_CHANNELS = 4 * len(BONES)
"""Number of channels of the mid-range offsets: y and x along each bone, then against it."""

_REFINEMENTS = 5
_TOGETHER = 128
"""Number of poses that are built at once.

With a larger number, arrays would be slow, and more poses would be built that are not needed.
"""


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """Parameters for decoding poses.

    Attributes:
        max_detections: largest number of poses, from 0.
        score_threshold: probability below which roots and poses are ignored.
        stride: number of pixels from one grid point to the next, from 1.
        nms_radius: distance in pixels within which two keypoints of the same name are the same.
    """

    max_detections: int
    score_threshold: float
    stride: int
    nms_radius: float

    @property
    def squared_radius(self) -> np.float32:
        """Square of ``nms_radius``, in grid steps."""
        radius = np.float32(self.nms_radius) / np.float32(self.stride)
        return np.float32(radius * radius)

    @property
    def least_logit(self) -> np.float32:
        """Logit of the probability ``score_threshold``."""
        threshold = np.float64(np.float32(self.score_threshold))
        with np.errstate(all="ignore"):
            return np.float32(-np.log(1 / (threshold + 1e-6) - 1))


@dataclass(frozen=True, slots=True)
class Poses:
    """Decoded poses, best first.

    Attributes:
        keypoints: ``[N, 17, 2], float32``: y and x in pixels.
        keypoint_scores: ``[N, 17], float32``: probability of each keypoint.
        scores: ``[N], float32``: mean of each pose's keypoint scores; keypoints that a better pose
            also has count as 0.
    """

    keypoints: Floats
    keypoint_scores: Floats
    scores: Floats


class Grid:
    """Values on a grid of points, with interpolation between the points.

    Args:
        values: ``[H, W, C], float32``.
    """

    def __init__(self, values: Floats) -> None:
        self._height, self._width, self._channels = values.shape
        self._values = values.reshape(-1)
        self._last = np.array([[self._height - 1], [self._width - 1]], np.float32)

    def at(self, places: Floats, channels: Integers) -> Floats:
        """Return values, interpolated between the four points around each place, ``[K, N]``.

        Args:
            places: ``[2, N], float32``: y and x on the grid.
            channels: ``[K, N]``: the channels to read at each place.

        >>> Grid(np.float32([[[0], [1]], [[2], [3]]])).at(np.float32([[0.5], [1]]), np.array([[0]]))
        array([[2.]], dtype=float32)
        """
        floor = np.floor(places)
        low, high = floor.astype(np.intp), np.ceil(places).astype(np.intp)
        rows = np.stack([low[0], low[0], high[0], high[0]]) * self._width
        corners = rows + np.stack([low[1], high[1], low[1], high[1]])
        index = corners[:, None] * self._channels + channels
        # NaN is no place; "clip" prevents reads out of range.
        top_left, top_right, bottom_left, bottom_right = self._values.take(index, mode="clip")
        y, x = places - floor
        top = (1 - x) * top_left + x * top_right
        bottom = (1 - x) * bottom_left + x * bottom_right
        value: Floats = (1 - y) * top + y * bottom
        return value

    def moved(self, places: Floats, channels: Integers) -> Floats:
        """Return *places* moved by the offsets at them, clamped to the grid: ``[2, N], float32``.

        Args:
            places: ``[2, N], float32``: y and x on the grid.
            channels: ``[2, N]``: channels of the offsets in y and in x.
        """
        return self.clamped(places + self.at(places, channels))

    def clamped(self, places: Floats) -> Floats:
        """Return *places* clamped to the area of the grid."""
        nearest: Floats = np.minimum(np.maximum(places, np.float32(0)), self._last)
        return nearest


def decode_poses(
    heatmaps: Floats, short_offsets: Floats, mid_offsets: Floats, options: DecodingOptions
) -> Poses:
    """Return at most ``options.max_detections`` poses, decoded from the maps.

    Args:
        heatmaps: ``[H, W, 17], float32``: logit of each keypoint.
        short_offsets: ``[H, W, 34], float32``: y of all keypoints, then x, in grid steps.
        mid_offsets: ``[H, W, 64], float32``: offsets in grid steps, see :data:`MID_CHANNELS`.
        options: parameters of the decoding.

    Roots of equal score have the order of libstdc++'s priority queue. If there are more than 16
    poses and two have exactly the same score, the order may differ from the official operator's.
    """
    roots = _roots(heatmaps, short_offsets, options.least_logit)
    maps = Grid(heatmaps), Grid(short_offsets), Grid(mid_offsets)
    found = [*islice(_grown(roots, maps, options), options.max_detections)]
    places = np.array([pose[0] for pose in found], np.float32).reshape(-1, len(KEYPOINTS), 2)
    shares = np.array([pose[1] for pose in found], np.float32).reshape(-1, len(KEYPOINTS))
    scores = _without_duplicates(places, shares, options.squared_radius)
    order = descending(scores)
    order = order[scores[order] >= np.float32(options.score_threshold)]
    return Poses(places[order] * np.float32(options.stride), shares[order], scores[order])


# -- roots -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Roots:
    """Keypoints from which poses may be built (roots), in the order of the heatmaps' elements.

    ``kinds [N]`` are the keypoint numbers of the roots, ``logits [N]`` their logits, and ``places
    [N, 2]`` their places, y and x in grid steps.
    """

    kinds: Integers
    places: Floats
    logits: Floats

    def near(self, pose: Floats, squared_radius: np.float32) -> NDArray[np.bool_]:
        """Whether each root, ``[N]``, is near the same keypoint of *pose*, ``[17, 2]``.

        Near means a squared distance of at most *squared_radius*, in grid steps.
        """
        return _squared_distances(self.places, pose[self.kinds]) <= squared_radius


def _roots(heatmaps: Floats, short_offsets: Floats, least: np.float32) -> _Roots:
    """Return keypoints with a logit of at least *least* that is not below any grid neighbour's.

    *heatmaps* are logits, ``[H, W, 17]``. *short_offsets*, ``[H, W, 34]``, are the offsets in y of
    all keypoints and then those in x, in grid steps.
    """
    y, x, kinds = np.nonzero(heatmaps >= least)
    logits = heatmaps[y, x, kinds]
    padded = np.pad(heatmaps, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    around = np.stack([padded[y + i, x + j, kinds] for i in range(3) for j in range(3)])
    highest = ~(around > logits).any(axis=0)
    y, x, kinds, logits = y[highest], x[highest], kinds[highest], logits[highest]
    offsets = [short_offsets[y, x, kinds], short_offsets[y, x, kinds + len(KEYPOINTS)]]
    places = Grid(heatmaps).clamped(np.stack([y, x]).astype(np.float32) + np.stack(offsets))
    return _Roots(kinds, places.T, logits)


def best_first(logits: Sequence[float]) -> Iterator[int]:
    """Yield positions from highest to lowest logit; equal logits in libstdc++'s order."""
    heap: list[int] = []

    def below(a: int, b: int) -> bool:
        return logits[a] < logits[b]

    for position in range(len(logits)):
        push(heap, position, below)
    while heap:
        yield pop(heap, below)


# -- poses -------------------------------------------------------------------------------------

Maps = tuple[Grid, Grid, Grid]
"""The three maps: heatmaps, short-range offsets, mid-range offsets."""


def _grown(roots: _Roots, maps: Maps, options: DecodingOptions) -> Iterator[tuple[Floats, Floats]]:
    """Yield places and probabilities of the keypoints of each pose, the likeliest pose first.

    A root that belongs to an earlier pose is skipped. Since many poses are built together, some
    poses are built and then dropped.
    """
    taken = np.zeros(len(roots.kinds), bool)
    queue = best_first(roots.logits.tolist())
    while together := [*islice((i for i in queue if not taken[i]), _TOGETHER)]:
        places = _places(roots.kinds[together], roots.places[together], maps)
        shares = _probabilities(places, maps[0])
        plausible = _means(_descending_values(shares)) >= np.float32(options.score_threshold)
        for root, pose, share, good in zip(together, places, shares, plausible, strict=True):
            if good and not taken[root]:
                yield pose, share
                taken |= roots.near(pose, options.squared_radius)


def _places(kinds: Integers, places: Floats, maps: Maps) -> Floats:
    """Return all keypoints, ``[N, 17, 2]``, of the poses with roots of *kinds* at *places*.

    *kinds* are the roots' keypoint numbers, ``[N]``, *places* their places (y, x), ``[N, 2]``, and
    *maps* the model's outputs: heat maps, and short and middle offsets.
    """
    _, short, mid = maps
    count = len(KEYPOINTS)
    poses = np.empty((2, len(kinds) * count), np.float32)
    poses[:, np.arange(len(kinds)) * count + kinds] = places.T
    for bones in _bones_by_distance():
        of_roots = bones[kinds]
        rows, columns = np.nonzero(of_roots[:, :, 0] >= 0)
        start, end, channel = of_roots[rows, columns].T
        moved = mid.moved(poses[:, rows * count + start], np.stack([channel, channel + len(BONES)]))
        offsets = np.stack([end, end + count])
        for _ in range(_REFINEMENTS):
            moved = short.moved(moved, offsets)
        poses[:, rows * count + end] = moved
    return poses.T.reshape(len(kinds), count, 2)


@functools.cache
def _bones_by_distance() -> tuple[Integers, ...]:
    """Return the bones at each distance from a root, ``[17, bones, 3]``; unused rows are -1.

    The first index is the root. The last axis has three numbers of a bone: its near keypoint, its
    far keypoint, and the channel of the y offset from the near to the far keypoint.
    """
    skeleton: dict[int, list[tuple[int, int]]] = {}
    for bone, (near, far) in enumerate(BONES):
        skeleton.setdefault(near, []).append((far, bone))
        skeleton.setdefault(far, []).append((near, _channel_against(bone)))
    distances: list[list[list[tuple[int, int, int]]]] = []
    for root in range(len(KEYPOINTS)):
        reached, front, distance = {root}, [root], 0
        while steps := [(a, b, c) for a in front for b, c in skeleton[a] if b not in reached]:
            if distance == len(distances):
                distances.append([[] for _ in KEYPOINTS])
            distances[distance][root] = steps
            front = [end for _, end, _ in steps]
            reached.update(front)
            distance += 1
    return tuple(_filled_up(bones) for bones in distances)


def _channel_against(bone: int) -> int:
    """Return the channel of the y offset from the far end of a bone to its near end.

    For the first bone, from eye to nose, the official operator reads the channel of the other
    direction: it has ``>`` in place of ``>=``. This function does the same, to give equal results.
    """
    return 2 * len(BONES) + bone if bone else len(BONES)


def _filled_up(bones: list[list[tuple[int, int, int]]]) -> Integers:
    table = np.full((len(bones), max(map(len, bones)), 3), -1, np.intp)
    for root, steps in enumerate(bones):
        if steps:
            table[root, : len(steps)] = steps
    return table


# -- scores ------------------------------------------------------------------------------------


def _probabilities(poses: Floats, heatmaps: Grid) -> Floats:
    """Return the probability in *heatmaps* of each keypoint of *poses*, ``[N, 17], float32``."""
    places = poses.reshape(-1, 2).T
    channels = np.tile(np.arange(len(KEYPOINTS)), len(poses))
    logits = heatmaps.at(places, channels[None]).reshape(poses.shape[:2])
    with np.errstate(all="ignore"):
        # Float64 is used because its exponential rounds correctly to float32.
        growth = np.exp(-logits.astype(np.float64)).astype(np.float32)
    one = np.float32(1)
    shares: Floats = one / (one + growth)
    return shares


def _without_duplicates(poses: Floats, shares: Floats, squared_radius: np.float32) -> Floats:
    """Return the score of each pose, ``[N]``; keypoints that a better pose also has count as 0.

    *poses* has the keypoints' places, and *shares* their probabilities.
    """
    scores = _means(_descending_values(shares))
    order = descending(scores)
    for position, pose in enumerate(order):
        better = poses[order[:position]]
        hidden = (_squared_distances(better, poses[pose]) <= squared_radius).any(axis=0)
        ranked = descending(shares[pose])
        scores[pose] = _means(np.where(hidden, np.float32(0), shares[pose])[ranked])
    return scores


def _means(shares: Floats) -> Floats:
    """Return the means of *shares* over the last axis, summed in order for equal rounding."""
    sums = np.cumsum(shares, axis=-1, dtype=np.float32)[..., -1]
    means: Floats = sums / np.float32(shares.shape[-1])
    return means


def _descending_values(shares: Floats) -> Floats:
    return np.sort(shares, axis=-1)[..., ::-1]


def _squared_distances(a: Floats, b: Floats) -> Floats:
    """Return the squared distances between *a* and *b*, places whose last axis is y and x."""
    dy, dx = np.moveaxis(b - a, -1, 0)
    squared: Floats = dy * dy + dx * dx
    return squared
