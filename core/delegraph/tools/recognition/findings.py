"""Results of recognition in a picture: boxes, poses, pixel classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from delegraph.json_records import JsonRecord

Edges = tuple[tuple[int, int], ...]
"""Points that lines join, by their positions."""


@dataclass(frozen=True, slots=True)
class Box:
    """A detected object: box, class and score.

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
    """A point of a pose; *x* and *y* are relative, as *left* and *top* of a box."""

    name: str
    x: float
    y: float
    score: float


@dataclass(frozen=True, slots=True)
class Pose:
    """A person's pose, as key points.

    Attributes:
        points: in the model's order.
        score: of the whole.
        edges: lines of the skeleton.
    """

    points: tuple[KeyPoint, ...]
    score: float
    edges: Edges = field(metadata={"json_key": None})


@dataclass(frozen=True, slots=True)
class PixelClass:
    """A class of pixels: its label (None without labels), and its number of pixels."""

    index: int
    label: str | None
    pixels: int


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation(JsonRecord):
    """Segmentation of a picture: a class for each pixel.

    Attributes:
        mask: ``[height, width], int64``: class of each pixel, in the model's resolution.
        classes: those that occur, the largest first.
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
        """Pixels of a row of the mask."""
        return int(self.mask.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Findings(JsonRecord):
    """Findings in a model's outputs about a picture; None for parts that are not recognized.

    Attributes:
        tensors: indices of the outputs that say it.
        threshold: boxes and poses with a lower score are left out.
        candidates: boxes or poses before that.
        boxes: best first.
        poses: best first.
        segmentation: the classes of pixels.
    """

    tensors: frozenset[int] = field(default=frozenset(), metadata={"json_key": None})
    threshold: float = field(default=0.0, metadata={"json_key": None})
    candidates: int = field(default=0, metadata={"json_key": None})
    boxes: tuple[Box, ...] | None = field(default=None, metadata={"json_key": "detections"})
    poses: tuple[Pose, ...] | None = None
    segmentation: Segmentation | None = None
