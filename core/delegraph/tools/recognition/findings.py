"""What a model found in a picture: boxes, poses, classes of pixels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Edges = tuple[tuple[int, int], ...]
"""Points that lines join, by their positions."""


@dataclass(frozen=True, slots=True)
class Box:
    """An object.

    Attributes:
        left: 0 is the left side of the picture, 1 the right one; boxes may reach beyond.
        top: 0 is the top of the picture, 1 the bottom.
        right: as *left*.
        bottom: as *top*.
        score: how sure the model is, usually up to 1.
        index: the class.
        label: its name; None without labels.
    """

    left: float
    top: float
    right: float
    bottom: float
    score: float
    index: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class KeyPoint:
    """A point of a pose; *x* and *y* as *left* and *top* of a box."""

    name: str
    x: float
    y: float
    score: float


@dataclass(frozen=True, slots=True)
class Pose:
    """A person by its points.

    Attributes:
        points: in the model's order.
        score: of the whole.
        edges: lines of the skeleton.
    """

    points: tuple[KeyPoint, ...]
    score: float
    edges: Edges


@dataclass(frozen=True, slots=True)
class PixelClass:
    """A class, its name (None without labels), and how many pixels have it."""

    index: int
    label: str | None
    pixels: int


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """A class for each pixel.

    Attributes:
        mask: ``[height, width], int64``: class of each pixel, in the model's resolution.
        classes: those that occur, the largest first.
    """

    mask: NDArray[np.int64]
    classes: tuple[PixelClass, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What outputs say of a picture; each part is None where they are no such thing.

    Attributes:
        tensors: indices of the outputs that say it.
        threshold: boxes and poses with a lower score are left out.
        candidates: boxes or poses before that.
        boxes: best first.
        poses: best first.
        segmentation: the classes of pixels.
    """

    tensors: frozenset[int] = frozenset()
    threshold: float = 0.0
    candidates: int = 0
    boxes: tuple[Box, ...] | None = None
    poses: tuple[Pose, ...] | None = None
    segmentation: Segmentation | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the parts as dictionaries and lists; masks as the pixels of each class."""
        mask = self.segmentation
        return {
            "detections": None if self.boxes is None else [asdict(box) for box in self.boxes],
            "poses": None if self.poses is None else [_pose(pose) for pose in self.poses],
            "segmentation": None
            if mask is None
            else {
                "height": mask.mask.shape[0],
                "width": mask.mask.shape[1],
                "classes": [asdict(found) for found in mask.classes],
            },
        }


def _pose(pose: Pose) -> dict[str, Any]:
    return {"score": pose.score, "points": [asdict(point) for point in pose.points]}
