"""Reads COCO's annotations of objects, such as ``instances_val2014.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.ground_truth import GroundTruth, InPixels, TruePicture
from delegraph.tools.whole_file import read_whole

Entry = Mapping[str, Any]

_MOST = 2**53
"""Largest whole number that every reader of JSON represents exactly."""


@dataclass(slots=True)
class _Picture:
    """A picture whose annotations are still being collected."""

    name: str
    width: int
    height: int
    boxes: list[list[float]] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    areas: list[float] = field(default_factory=list)
    crowds: list[bool] = field(default_factory=list)


def read_coco_annotations(path: str) -> GroundTruth:
    """Return the objects that the file *path* describes.

    An annotation without ``area`` gets the area of its box; one without ``iscrowd`` is not a crowd.
    Outlines (``segmentation``) are ignored.

    Raises:
        ArgumentError: the file cannot be read, or does not hold annotations; the message names the
            entry.

    Source:
        https://cocodataset.org/#format-data
    """
    content = _json(path)
    if not isinstance(content, dict):
        raise ArgumentError(f"{path!r}: expected an object with 'images' and 'annotations'")
    names = {
        _whole(entry, "id", place): _text(entry, "name", place)
        for place, entry in _entries(content, "categories", path, optional=True)
    }
    pictures: dict[int, _Picture] = {}
    taken: set[str] = set()
    for place, entry in _entries(content, "images", path):
        number, name = _whole(entry, "id", place), _text(entry, "file_name", place)
        if number in pictures:
            raise ArgumentError(f"{place}: id {number} occurs before")
        if name in taken:
            raise ArgumentError(f"{place}: file_name {name!r} occurs before")
        taken.add(name)
        size = (_whole(entry, "width", place, 1), _whole(entry, "height", place, 1))
        pictures[number] = _Picture(name, *size)
    for place, entry in _entries(content, "annotations", path):
        _take_annotation(entry, place, pictures, names)
    found = sorted(pictures.items(), key=lambda item: item[1].name)
    return GroundTruth(path, tuple(_true_picture(*item) for item in found), names)


def _json(path: str) -> Any:
    content = read_whole(path)
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ArgumentError(f"{path!r} is nested too deeply") from error
    except ValueError as error:  # no JSON, or no text
        raise ArgumentError(f"{path!r} is no JSON: {error}") from error


def _entries(
    content: Entry, key: str, path: str, *, optional: bool = False
) -> list[tuple[str, Entry]]:
    """Return the entries of the list *key* in *content*, each with its position as text."""
    entries = content.get(key, [] if optional else None)
    if not isinstance(entries, list):
        raise ArgumentError(f"{path!r}: expected a list {key!r}, as COCO's annotations have it")
    places = [(f"{path!r}: {key}[{i}]", entry) for i, entry in enumerate(entries)]
    for place, entry in places:
        if not isinstance(entry, dict):
            raise ArgumentError(f"{place}: expected an object, found {_shown(entry)}")
    return places


def _take_annotation(
    entry: Entry, place: str, pictures: Mapping[int, _Picture], names: Mapping[int, str]
) -> None:
    number, kind = _whole(entry, "image_id", place), _whole(entry, "category_id", place)
    if number not in pictures:
        raise ArgumentError(f"{place}: image_id {number} is not among the images")
    if names and kind not in names:
        raise ArgumentError(f"{place}: category_id {kind} is not among the categories")
    box = entry.get("bbox")
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_number, box)):
        raise ArgumentError(f"{place}: expected bbox [x, y, width, height], {_found(box)}")
    if box[2] < 0 or box[3] < 0:
        raise ArgumentError(f"{place}: bbox has a negative size: {box}")
    area, crowd = entry.get("area", box[2] * box[3]), entry.get("iscrowd", 0)
    if not _is_number(area):
        raise ArgumentError(f"{place}: expected a number as area, found {_shown(area)}")
    if crowd not in (0, 1):
        raise ArgumentError(f"{place}: expected iscrowd 0 or 1, found {_shown(crowd)}")
    picture = pictures[number]
    picture.boxes.append(box)
    picture.classes.append(kind)
    picture.areas.append(area)
    picture.crowds.append(bool(crowd))


def _true_picture(number: int, picture: _Picture) -> TruePicture:
    boxes = np.array(picture.boxes, np.float64).reshape(-1, 4)
    left, top, width, height = boxes.T
    sides = np.stack(
        [
            top / picture.height,
            left / picture.width,
            (top + height) / picture.height,
            (left + width) / picture.width,
        ],
        axis=1,
    )
    pixels = InPixels(
        picture.width,
        picture.height,
        boxes,
        np.array(picture.areas, np.float64),
        np.array(picture.crowds, np.bool_),
    )
    classes = np.array(picture.classes, np.int64)
    return TruePicture(number, picture.name, sides.astype(np.float32), classes, pixels)


def _whole(entry: Entry, key: str, place: str, least: int = 0) -> int:
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < _MOST:
        return value
    raise ArgumentError(f"{place}: expected {key}, a whole number from {least}, {_found(value)}")


def _text(entry: Entry, key: str, place: str) -> str:
    value = entry.get(key)
    if isinstance(value, str) and value:
        return value
    raise ArgumentError(f"{place}: expected {key}, a text, {_found(value)}")


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) < _MOST  # also excludes NaN and infinities, which Python's JSON accepts


def _found(value: object) -> str:
    return "found none" if value is None else f"found {_shown(value)}"


def _shown(value: object) -> str:
    """Return the text of a value for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
