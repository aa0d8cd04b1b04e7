from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.model_outputs import Score
from delegraph.tools.recognition.drawing import draw_findings, require_drawable
from delegraph.tools.recognition.findings import (
    Box,
    Findings,
    KeyPoint,
    PixelClass,
    Pose,
    Segmentation,
)

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

GREY = 90
WIDTH, HEIGHT = 800, 600


@pytest.fixture
def picture(tmp_path: Path) -> str:
    return grey_picture(tmp_path, WIDTH, HEIGHT)


def grey_picture(folder: Path, width: int, height: int) -> str:
    path = folder / "picture.png"
    Image.new("RGB", (width, height), (GREY, GREY, GREY)).save(path)
    return str(path)


def drawn(picture: str, findings: Findings, *classes: Score) -> NDArray[np.uint8]:
    """The pixels, ``[h, w, 3]``."""
    path = Path(picture).with_name("drawn.png")
    with Image.open(picture) as image:
        draw_findings(findings, classes, image, str(path))
    return np.asarray(Image.open(path))


def is_drawn(pixels: NDArray[Any]) -> NDArray[np.bool_]:
    return np.any(pixels != GREY, axis=-1)


def boxes(*found: Box) -> Findings:
    return Findings(boxes=found)


def test_a_box_is_an_outline_at_its_place(picture: str) -> None:
    pixels = drawn(picture, boxes(Box(0.25, 0.5, 0.75, 0.9, 0.8, 1, "dog")))
    changed = is_drawn(pixels)
    colour = pixels[400, 200]
    for row, column in ((400, 200), (400, 600), (540, 400), (300, 500)):
        np.testing.assert_array_equal(pixels[row, column], colour)
    assert not changed[400, 400]  # inside
    assert not changed[400, 150]  # beside
    assert changed[285, 205]  # the label above


def test_a_label_at_the_top_is_inside(picture: str) -> None:
    changed = is_drawn(drawn(picture, boxes(Box(0.25, 0.0, 0.75, 0.9, 0.8, 1, "dog"))))
    assert changed[8, 210]


def test_a_label_does_not_leave_the_picture(picture: str) -> None:
    changed = is_drawn(drawn(picture, boxes(Box(0.98, 0.5, 1.0, 0.9, 0.8, 1, "a long name"))))
    assert changed[285, 700]


def test_boxes_beyond_the_picture_or_upside_down_are_drawn(picture: str) -> None:
    changed = is_drawn(
        drawn(picture, boxes(Box(-3, -2, 9, 5, 1, 1), Box(0.8, 0.8, 0.4, 0.4, 1, 2)))
    )
    assert changed[300, 0]
    assert changed[300, WIDTH - 1]
    assert changed[400, 320]


def test_classes_have_colours_of_their_own(picture: str) -> None:
    found = [Box(0.1 * i, 0.5, 0.1 * i + 0.05, 0.9, 0.8, i) for i in range(8)]
    pixels = drawn(picture, boxes(*found))
    colours = {tuple(pixels[420, round(80 * i) + 1].tolist()) for i in range(8)}
    assert len(colours) == 8


@pytest.mark.parametrize("size", [(64, 48), (2, 640), (1, 1), (512, 430), (3000, 2000)])
def test_only_small_pictures_are_enlarged_by_a_whole_number(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    box = Box(0.25, 0.25, 0.75, 0.75, 1, 1, "dog")
    height, width, _ = drawn(grey_picture(tmp_path, *size), boxes(box)).shape
    factor = {64: 5, 1: 320}.get(size[0], 1)
    assert (width, height) == tuple(side * factor for side in size)


def test_lines_and_letters_grow_with_the_picture(tmp_path: Path) -> None:
    def line_width(width: int, height: int) -> int:
        box = Box(0.25, 0.5, 0.75, 0.9, 1, 1)
        changed = is_drawn(drawn(grey_picture(tmp_path, width, height), boxes(box)))
        return int(changed[round(height * 0.7), : width // 2].sum())

    assert line_width(800, 600) < line_width(4000, 3000)


def test_a_mask_colours_all_but_the_background(picture: str) -> None:
    mask = np.zeros((2, 4), np.int64)
    mask[0, 3] = 5
    classes = (PixelClass(0, "background", 7), PixelClass(5, "bird", 1))
    changed = is_drawn(drawn(picture, Findings(segmentation=Segmentation(mask, classes))))
    assert changed[:300, 600:].all()
    assert not changed[:300, :600].any()
    assert changed[590, 5]  # the legend


def test_without_a_background_all_classes_are_coloured(picture: str) -> None:
    classes = (PixelClass(0, "sky", 1), PixelClass(1, "sea", 1))
    found = Segmentation(np.int64([[0], [1]]), classes)
    assert is_drawn(drawn(picture, Findings(segmentation=found))).all()
    classes = (PixelClass(0, None, 1), PixelClass(1, None, 1))
    found = Segmentation(np.int64([[0], [1]]), classes)
    assert not is_drawn(drawn(picture, Findings(segmentation=found)))[:300].any()


def test_points_that_are_sure_enough_are_drawn_and_joined(picture: str) -> None:
    points = (
        KeyPoint("a", 0.25, 0.5, 0.9),
        KeyPoint("b", 0.75, 0.5, 0.9),
        KeyPoint("c", 0.75, 0.9, 0.1),
    )
    pose = Pose(points, 0.8, ((0, 1), (1, 2)))
    changed = is_drawn(drawn(picture, Findings(threshold=0.5, poses=(pose,))))
    assert changed[300, 200:600].all()
    assert not changed[310:500].any()
    assert not changed[500:, 400:].any()  # the legend is in the other corner


def test_the_legend_hides_no_point_where_another_corner_is_free(picture: str) -> None:
    pose = Pose((KeyPoint("a", 0.02, 0.97, 0.9),), 0.8, ())
    changed = is_drawn(drawn(picture, Findings(threshold=0.5, poses=(pose,))))
    assert not changed[:, 100:400].any()
    assert changed[590, 790]  # the lower right corner


def test_left_and_right_have_their_colours_and_several_poses_too(picture: str) -> None:
    names = ("left hip", "left knee", "right hip", "right knee")
    points = tuple(KeyPoint(n, 0.2 * i, 0.5, 0.9) for i, n in enumerate(names, 1))
    pose = Pose(points, 0.8, ((0, 1), (1, 2), (2, 3)))
    pixels = drawn(picture, Findings(threshold=0.5, poses=(pose,)))
    assert len({tuple(pixels[300, column].tolist()) for column in (240, 400, 560)}) == 3
    pixels = drawn(picture, Findings(threshold=0.5, poses=(pose, pose)))
    assert len({tuple(pixels[300, column].tolist()) for column in (240, 400, 560)}) == 1


def test_a_legend_has_a_row_for_each_class_and_says_that_nothing_is_found(picture: str) -> None:
    changed = is_drawn(drawn(picture, boxes()))
    assert changed[590, 5]
    assert not changed[:540].any()
    found = [Box(0.5, 0.1, 0.6, 0.2, 0.8, i % 4, f"class {i % 4}") for i in range(8)]
    changed = is_drawn(drawn(picture, boxes(*found)))
    assert changed[500:, 5].all()
    assert not changed[:450, 5].any()


def test_the_best_classes_are_drawn_if_nothing_else_is_found(picture: str) -> None:
    changed = is_drawn(drawn(picture, Findings(), Score(3, 0.9, "bird"), Score(1, 0.1, None)))
    assert changed[590, 5]
    assert not changed[:520].any()


def test_what_cannot_be_drawn_is_refused(picture: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no boxes, key points, classes of pixels or sco"):
        drawn(picture, Findings())
    with pytest.raises(ArgumentError, match=r"--draw '.*out\.png': No such file or directory"):
        draw_findings(boxes(), (), Image.new("RGB", (9, 9)), str(tmp_path / "gone" / "out.png"))
    with pytest.raises(ArgumentError, match=r"'out\.gif': expected a file ending in \.jpeg, "):
        require_drawable("out.gif")
