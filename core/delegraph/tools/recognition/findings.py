"""Records of findings in a picture: boxes, poses, classes of pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from delegraph.json_records import JsonRecord

Edges = tuple[tuple[int, int], ...]
"""Pairs of positions of key points that a line joins."""


@dataclass(frozen=True, slots=True)
class Box:
    """An object found in a picture, with its bounding box.

    Attributes:
        left: left side of the box; 0 is the picture's left side, 1 its right side; a box may exceed
            the picture.
        top: top of the box; 0 is the top of the picture, 1 its bottom.
        right: right side of the box, in the units of *left*.
        bottom: bottom of the box, in the units of *top*.
        score: confidence of the model, usually up to 1.
        index: index of the class.
        label: name of the class; None if there are no labels.
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
    """A point of a pose; *x* and *y* have the same units as *left* and *top* of a box."""

    name: str
    x: float
    y: float
    score: float


@dataclass(frozen=True, slots=True)
class Pose:
    """A person, described by key points.

    Attributes:
        points: the key points in the model's order.
        score: score of the whole pose.
        edges: lines of the skeleton.
    """

    points: tuple[KeyPoint, ...]
    score: float
    edges: Edges = field(metadata={"json_key": None})


@dataclass(frozen=True, slots=True)
class PixelClass:
    """A class of pixels: its index, its name (None if unknown), and its number of pixels."""

    index: int
    label: str | None
    pixels: int


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation(JsonRecord):
    """A class for each pixel of a mask.

    Attributes:
        mask: ``[height, width], int64``: class of each pixel, in the model's resolution.
        classes: the classes in the mask, the largest first.
    """

    json_properties: ClassVar = {"height": "height", "width": "width"}

    mask: NDArray[np.int64] = field(metadata={"json_key": None})
    classes: tuple[PixelClass, ...]

    @property
    def height(self) -> int:
        """Number of rows of the mask."""
        return len(self.mask)

    @property
    def width(self) -> int:
        """Number of columns of the mask."""
        return int(self.mask.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Findings(JsonRecord):
    """A model's findings in a picture; a field is None if the outputs have no such finding.

    Attributes:
        tensors: indices of the outputs that hold the findings.
        threshold: smallest score; boxes and poses with a lower score are omitted.
        candidates: number of boxes or poses before this selection.
        boxes: the boxes, best first.
        poses: the poses, best first.
        segmentation: the classes of pixels.
    """

    tensors: frozenset[int] = field(default=frozenset(), metadata={"json_key": None})
    threshold: float = field(default=0.0, metadata={"json_key": None})
    candidates: int = field(default=0, metadata={"json_key": None})
    boxes: tuple[Box, ...] | None = field(default=None, metadata={"json_key": "detections"})
    poses: tuple[Pose, ...] | None = None
    segmentation: Segmentation | None = None
