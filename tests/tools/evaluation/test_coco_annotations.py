from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.coco_annotations import read_coco_annotations


def instances() -> dict[str, Any]:
    """Return a file in the form of instances_val2014.json, with two pictures."""
    return {
        "info": {"description": "COCO 2014 Dataset", "year": 2014},
        "licenses": [{"id": 3, "name": "x", "url": "y"}],
        "images": [
            {
                "license": 3,
                "file_name": "COCO_val2014_000000391895.jpg",
                "coco_url": "z",
                "height": 360,
                "width": 640,
                "date_captured": "2013-11-14 11:18:45",
                "id": 391895,
            },
            {"file_name": "COCO_val2014_000000000042.jpg", "height": 100, "width": 50, "id": 42},
        ],
        "annotations": [
            {
                "segmentation": [[239.97, 260.24, 222.04, 270.49]],
                "area": 2765.1486500000005,
                "iscrowd": 0,
                "image_id": 391895,
                "bbox": [160, 90, 320, 180],
                "category_id": 18,
                "id": 1768,
            },
            {
                "image_id": 391895,
                "bbox": [1.5, 2.5, 3.0, 4.0],
                "category_id": 1,
                "iscrowd": 1,
                "area": 7,
            },
            {"image_id": 42, "bbox": [0, 0, 50, 100], "category_id": 1},
        ],
        "categories": [
            {"supercategory": "person", "id": 1, "name": "person"},
            {"supercategory": "animal", "id": 18, "name": "dog"},
        ],
    }


def written(folder: Path, content: Any) -> str:
    path = folder / "instances.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_pictures_come_by_name_with_their_objects(tmp_path: Path) -> None:
    truth = read_coco_annotations(written(tmp_path, instances()))
    assert [p.id for p in truth.pictures] == [42, 391895]
    second = truth.pictures[1]
    assert second.name == "COCO_val2014_000000391895.jpg"
    assert second.classes.tolist() == [18, 1]
    assert second.boxes.dtype == np.float32
    assert second.boxes[0].tolist() == [0.25, 0.25, 0.75, 0.75]  # top, left, bottom, right
    assert truth.class_names == {1: "person", 18: "dog"}
    assert truth.has_pixels


def test_what_only_coco_knows_is_kept(tmp_path: Path) -> None:
    pixels = read_coco_annotations(written(tmp_path, instances())).pictures[1].pixels
    assert pixels is not None
    assert (pixels.width, pixels.height) == (640, 360)
    assert pixels.boxes[1].tolist() == [1.5, 2.5, 3.0, 4.0]
    assert pixels.areas.tolist() == [2765.1486500000005, 7.0]
    assert pixels.crowds.tolist() == [False, True]


def test_a_box_stands_for_the_area_that_a_file_lacks(tmp_path: Path) -> None:
    pixels = read_coco_annotations(written(tmp_path, instances())).pictures[0].pixels
    assert pixels is not None
    assert pixels.areas.tolist() == [5000.0]
    assert pixels.crowds.tolist() == [False]


def test_a_picture_without_objects_is_there(tmp_path: Path) -> None:
    content = instances()
    content["annotations"] = []
    truth = read_coco_annotations(written(tmp_path, content))
    assert [p.boxes.shape for p in truth.pictures] == [(0, 4), (0, 4)]


def test_categories_may_be_missing(tmp_path: Path) -> None:
    content = instances()
    del content["categories"]
    assert read_coco_annotations(written(tmp_path, content)).class_names == {}


def change(*path: Any, value: Any) -> Any:
    """Return what puts a value somewhere; None takes it away."""

    def changed() -> Any:
        content: Any = instances()
        inner = content
        for step in path[:-1]:
            inner = inner[step]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return content

    return changed


WRONG = {
    "no object": (lambda: [1], "expected an object with 'images' and 'annotations'"),
    "no images": (change("images", value=None), "expected a list 'images'"),
    "no annotations": (change("annotations", value=None), "expected a list 'annotations'"),
    "a number": (change("images", 1, value=3), r"images\[1\]: expected an object, found 3"),
    "no id": (change("images", 0, "id", value=None), r"images\[0\]: expected id, .* found none"),
    "no name": (change("images", 0, "file_name", value=""), r"images\[0\]: expected file_name"),
    "no width": (change("images", 0, "width", value=0), r"width, a whole number from 1, found 0"),
    "a truth value": (change("images", 0, "width", value=True), "whole number from 1, found True"),
    "id twice": (change("images", 1, "id", value=391895), r"images\[1\]: id 391895 occurs before"),
    "name twice": (
        change("images", 1, "file_name", value="COCO_val2014_000000391895.jpg"),
        r"images\[1\]: file_name 'COCO_val2014_000000391895.jpg' occurs before",
    ),
    "another picture": (
        change("annotations", 2, "image_id", value=7),
        r"annotations\[2\]: image_id 7 is not among the images",
    ),
    "another class": (
        change("annotations", 2, "category_id", value=2),
        r"annotations\[2\]: category_id 2 is not among the categories",
    ),
    "three sides": (
        change("annotations", 0, "bbox", value=[1, 2, 3]),
        r"annotations\[0\]: expected bbox \[x, y, width, height\], found \[1, 2, 3\]",
    ),
    "no box": (change("annotations", 0, "bbox", value=None), "expected bbox .* found none"),
    "a negative size": (
        change("annotations", 0, "bbox", value=[1, 2, -3, 4]),
        r"annotations\[0\]: bbox has a negative size",
    ),
    "no number": (change("annotations", 0, "bbox", value=[1, 2, "3", 4]), "expected bbox"),
    "not finite": (
        change("annotations", 0, "bbox", value=[1, 2, float("nan"), 4]),
        "expected bbox",
    ),
    "an area in words": (
        change("annotations", 0, "area", value="big"),
        r"annotations\[0\]: expected a number as area, found 'big'",
    ),
    "half a crowd": (
        change("annotations", 0, "iscrowd", value=0.5),
        r"annotations\[0\]: expected iscrowd 0 or 1, found 0.5",
    ),
    "a category without a name": (
        change("categories", 1, "name", value=None),
        r"categories\[1\]: expected name, a text, found none",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, name: str) -> None:
    made, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        read_coco_annotations(written(tmp_path, made()))


NO_JSON = {
    "cut": (json.dumps(instances())[:200].encode(), r"no JSON: .*line 1 column"),
    "bytes": (b"\xff\xd8\xff\xe0", "no JSON"),
    "deep": (b"[" * 200_000, "(nested too deeply|no JSON)"),
}


@pytest.mark.parametrize("name", NO_JSON)
def test_a_file_that_is_no_json_is_refused(name: str, tmp_path: Path) -> None:
    content, message = NO_JSON[name]
    path = tmp_path / f"{name}.json"
    path.write_bytes(content)
    with pytest.raises(ArgumentError, match=rf"{name}\.json' is {message}"):
        read_coco_annotations(str(path))


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"'none\.json' cannot be read: No such file"):
        read_coco_annotations("none.json")
