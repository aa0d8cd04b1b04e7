"""Ground truth of detection: the true objects in each picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError


@dataclass(frozen=True, slots=True, eq=False)
class InPixels:
    """Data that COCO's definition needs and ``ground_truth.pb`` does not have.

    Attributes:
        width: width of the picture in pixels.
        height: height of the picture in pixels.
        boxes: ``[n, 4], float64``: left, top, width, height, in pixels.
        areas: ``[n], float64``: areas of the objects in square pixels; areas of their outlines if
            the file has them.
        crowds: ``[n], bool``: whether a box stands for a crowd of objects without separate boxes.
    """

    width: int
    height: int
    boxes: NDArray[np.float64]
    areas: NDArray[np.float64]
    crowds: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TruePicture:
    """A picture with its objects.

    Attributes:
        id: number of the picture in the file.
        name: path of the picture's file, relative to the folder of pictures.
        boxes: ``[n, 4], float32``: top, left, bottom, right; 0 and 1 are the picture's edges.
        classes: ``[n], int64``: class of each object.
        pixels: the objects in pixels, with further COCO data; None if the file lacks them.
    """

    id: int
    name: str
    boxes: NDArray[np.float32]
    classes: NDArray[np.int64]
    pixels: InPixels | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether the official tool's script drops the picture, because it has no objects.

        A picture without pixel data has already passed through that script.
        """
        return self.pixels is not None and not len(self.classes)

    def as_prepared(self) -> TruePicture:
        """Return the picture without the boxes that the official tool's script drops.

        The dropped boxes reach over the picture's edge.

        Source:
            preprocess_coco_minival.py, tflite/tools/evaluation/tasks/coco_object_detection.
        """
        if self.pixels is None:
            return self
        left, top, width, height = self.pixels.boxes.T
        inside = (left + width <= self.pixels.width) & (top + height <= self.pixels.height)
        inside &= (left <= self.pixels.width) & (top <= self.pixels.height)
        return replace(self, boxes=self.boxes[inside], classes=self.classes[inside])


@dataclass(frozen=True, slots=True, eq=False)
class GroundTruth:
    """All pictures of a data set, with the objects in them.

    Attributes:
        source: path of the file.
        pictures: the pictures, sorted by name.
        class_names: mapping from a class's number to its name; empty if the file has no names.
    """

    source: str
    pictures: tuple[TruePicture, ...]
    class_names: Mapping[int, str] = field(default_factory=dict)

    @property
    def has_pixels(self) -> bool:
        """Whether the data that COCO's definition needs is present."""
        return all(picture.pixels is not None for picture in self.pictures)

    def of(self, ids: Sequence[int]) -> GroundTruth:
        """Return the pictures with the numbers *ids*.

        Raises:
            ArgumentError: a number belongs to no picture.
        """
        known = {picture.id for picture in self.pictures}
        for number in ids:
            if number not in known:
                raise ArgumentError(f"picture {number} is not in {self.source!r}")
        wanted = set(ids)
        return replace(self, pictures=tuple(p for p in self.pictures if p.id in wanted))

    def first(self, count: int) -> GroundTruth:
        """Return the first *count* pictures, or all pictures if *count* is 0."""
        return replace(self, pictures=self.pictures[:count]) if count else self
