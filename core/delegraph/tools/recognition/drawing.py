"""Draws a model's findings on a picture; needs Pillow: ``pip install 'delegraph[images]'``."""

from __future__ import annotations

import colorsys
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.tools.model_outputs import Score
from delegraph.tools.recognition.findings import Box, Findings, PixelClass, Pose, Segmentation

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = (".jpeg", ".jpg", ".png", ".webp")
"""Suffixes of picture files that can be written."""

_LEAST_SIDE = 320
"""Least length in pixels of the longer side: smaller pictures are enlarged, to hold labels."""

_OPACITY = 0.55
_LEGEND_ROWS = 12
_LONGEST_NAME = 40
_BACKGROUND = ("???", "background")

_LEAST_SHARE = 0.001

Colour = tuple[int, int, int]

_LEFT: Colour = (60, 220, 90)
_RIGHT: Colour = (255, 140, 30)
_MIDDLE: Colour = (120, 190, 255)
_NOTHING: Colour = (120, 120, 120)


def draw_findings(findings: Findings, classes: Sequence[Score], picture: Image, path: str) -> int:
    """Draw findings on a picture with a legend, and write it to *path*.

    Args:
        findings: boxes, poses or classes of pixels.
        classes: the best classes of the whole picture, drawn if there are no other findings.
        picture: the picture; one of less than 320 pixels is enlarged.
        path: path of the file to write, with a suffix in :data:`FORMATS`.

    Returns:
        Pixels of the file for one of the picture, each way: 1 if it is not enlarged.

    Raises:
        ArgumentError: there is nothing to draw, or the file cannot be written.
    """
    is_found = any(f is not None for f in (findings.boxes, findings.poses, findings.segmentation))
    if not is_found and not classes:
        raise ArgumentError(
            "--draw: no boxes, key points, classes of pixels or scores of classes are recognized "
            "among the outputs; scores for each pixel need the names of their classes: --labels "
            "FILE"
        )
    scale = max(1, math.ceil(_LEAST_SIDE / max(picture.size)))
    image = _enlarged(picture.convert("RGB"), scale)
    if findings.segmentation is not None:
        image = _with_mask(image, findings.segmentation)
    pen = _Pen(image)
    last_is_on_top = (findings.boxes or ())[::-1]
    for box in last_is_on_top:
        pen.box(box)
    for box in last_is_on_top:
        pen.label(box)
    poses = findings.poses or ()
    for number, pose in enumerate(poses):
        pen.pose(pose, _colour(number) if len(poses) > 1 else None, findings.threshold)
    pen.legend(list(_legend(findings, classes))[:_LEGEND_ROWS], _points(findings))
    try:
        image.save(path)
    except OSError as error:
        raise ArgumentError(f"--draw {path!r}: {error.strerror or error}") from error
    return scale


def _legend(findings: Findings, classes: Sequence[Score]) -> Iterator[tuple[Colour, str]]:
    """Yield colour and text of each row of the legend."""
    least = f"with a score of at least {findings.threshold:g}"
    if findings.boxes is not None:
        names = {box.index: _name(box) for box in findings.boxes}
        for index, count in Counter(box.index for box in findings.boxes).items():
            yield _colour(index), f"{names[index]}: {count} {'box' if count == 1 else 'boxes'}"
        if not findings.boxes:
            yield _NOTHING, f"no box {least}"
    elif findings.poses is not None:
        yield from _legend_of_poses(findings.poses)
        if not findings.poses:
            yield _NOTHING, f"no pose {least}"
    elif findings.segmentation is not None:
        pixels = findings.segmentation.mask.size
        for found in findings.segmentation.classes:
            if not _is_background(found):
                share = found.pixels / pixels
                text = f"{share:.1%}" if share >= _LEAST_SHARE else "below 0.1%"
                yield _colour(found.index), f"{_name(found)}: {text}"
    else:
        for score in classes:
            yield _colour(score.index), f"{_name(score)}: {score.score:.3g}"


def _points(findings: Findings) -> list[tuple[float, float]]:
    """Places that the legend should not hide, as shares of the picture's width and height."""
    corners = [
        (x, y)
        for box in findings.boxes or ()
        for x in (box.left, (box.left + box.right) / 2, box.right)
        for y in (box.top, (box.top + box.bottom) / 2, box.bottom)
    ]
    threshold = findings.threshold
    joints = [
        (point.x, point.y)
        for pose in findings.poses or ()
        for point in pose.points
        if point.score >= threshold
    ]
    return corners + joints


def _legend_of_poses(poses: Sequence[Pose]) -> Iterator[tuple[Colour, str]]:
    if len(poses) == 1:
        yield _LEFT, "left side of the body"
        yield _RIGHT, "right side"
        yield _MIDDLE, f"between; score of the pose: {poses[0].score:.2f}"
        return
    for number, pose in enumerate(poses):
        yield _colour(number), f"pose {number + 1}: {pose.score:.2f}"


def require_drawable(path: str) -> None:
    """Check that the suffix of *path* is a supported picture format.

    Raises:
        ArgumentError: the suffix is not in :data:`FORMATS`.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise ArgumentError(f"--draw {path!r}: expected a file ending in {', '.join(FORMATS)}")


def _enlarged(image: Image, scale: int) -> Image:
    """Return a picture with *scale* times its width and height."""
    from PIL.Image import Resampling

    if scale == 1:
        return image
    return image.resize((image.width * scale, image.height * scale), Resampling.BICUBIC)


def _with_mask(image: Image, found: Segmentation) -> Image:
    """Return the picture overlaid with the classes of its pixels, except the background."""
    from PIL import Image
    from PIL.Image import Resampling

    classes = sorted(found.classes, key=lambda c: c.index)
    opacities = [0 if _is_background(c) else round(255 * _OPACITY) for c in classes]
    colours = [(*_colour(c.index), a) for c, a in zip(classes, opacities, strict=True)]
    of_pixels = np.searchsorted([c.index for c in classes], found.mask)  # [h, w]
    layer = Image.fromarray(np.array(colours, np.uint8)[of_pixels])
    layer = layer.resize(image.size, Resampling.NEAREST)
    return Image.alpha_composite(image.convert("RGBA"), layer).convert("RGB")


def _is_background(pixel_class: PixelClass) -> bool:
    """Whether a class is the background: by its name, or because it is the first class."""
    if pixel_class.label is not None:
        return pixel_class.label.lower() in _BACKGROUND
    return pixel_class.index == 0


def _colour(index: int) -> Colour:
    """Return a bright colour for *index*; neighbouring indices get very different colours."""
    red, green, blue = colorsys.hsv_to_rgb((index * 0.618034 + 0.33) % 1, 0.85, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)


class _Pen:
    """Draws on one picture with lines and letters in proportion to its size."""

    def __init__(self, image: Image) -> None:
        from PIL import ImageDraw, ImageFont

        side = math.sqrt(image.width * image.height)
        self._size = image.size
        self._draw = ImageDraw.Draw(image, "RGBA")
        self._width = max(2, round(side / 200))
        self._letter = max(14, round(side / 35))
        self._font = ImageFont.load_default(self._letter)

    def box(self, box: Box) -> None:
        """Draw the outline of a box."""
        self._draw.rectangle(self._sides(box), outline=_colour(box.index), width=self._width)

    def label(self, box: Box) -> None:
        """Write a box's name and score above the box, or inside if there is no room above."""
        left, top, _, _ = self._sides(box)
        text = f"{_name(box)} {box.score:.2f}"
        high = round(1.3 * self._letter)
        wide = self._draw.textlength(text, self._font) + high / 2
        left = max(0.0, min(left, self._size[0] - wide))
        top = top - high if top >= high else top
        red, green, blue = colour = _colour(box.index)
        self._draw.rectangle((left, top, left + wide, top + high), fill=colour)
        is_bright = red * 0.299 + green * 0.587 + blue * 0.114 > 140
        ink = "black" if is_bright else "white"
        self._draw.text((left + high / 4, top + high / 2), text, ink, self._font, anchor="lm")

    def _sides(self, box: Box) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of a box in pixels, clipped to the picture."""
        w, h = self._size
        left, right = sorted(_within(x * w, w) for x in (box.left, box.right))
        top, bottom = sorted(_within(y * h, h) for y in (box.top, box.bottom))
        return left, top, right, bottom

    def pose(self, pose: Pose, colour: Colour | None, threshold: float) -> None:
        """Draw the points of a pose whose score reaches *threshold*, and the lines between them.

        If *colour* is None, the left side, the right side and the middle of the body have different
        colours.
        """
        w, h = self._size
        places = [(point.x * w, point.y * h) for point in pose.points]
        sure = [point.score >= threshold for point in pose.points]
        sides = [colour or _side(point.name) for point in pose.points]
        for a, b in pose.edges:
            if sure[a] and sure[b]:
                line = sides[a] if sides[a] == sides[b] else _MIDDLE
                self._draw.line((*places[a], *places[b]), fill=line, width=self._width)
        radius = 1.6 * self._width
        for (x, y), is_sure, fill in zip(places, sure, sides, strict=True):
            if is_sure:
                circle = (x - radius, y - radius, x + radius, y + radius)
                self._draw.ellipse(circle, fill=fill, outline="white", width=self._width // 2)

    def legend(
        self, rows: Sequence[tuple[Colour, str]], points: Sequence[tuple[float, float]]
    ) -> None:
        """Draw a colour and a text for each row in the corner that hides the fewest *points*.

        Points are places to keep visible, as shares of width and height.
        """
        if not rows:
            return
        row = round(1.4 * self._letter)
        wide = max(self._draw.textlength(text, self._font) for _, text in rows) + 2 * row
        left, top = self._corner(wide, row * len(rows) + row // 2, points)
        bottom = top + row * len(rows) + row // 2
        self._draw.rectangle((left, top, left + wide, bottom), fill=(0, 0, 0, 170))
        for number, (colour, text) in enumerate(rows):
            y = top + row // 4 + number * row
            square = (left + row // 3, y + row // 6, left + row, y + row // 6 + row * 2 // 3)
            self._draw.rectangle(square, fill=colour)
            place = (left + row * 1.3, y + row / 2)
            self._draw.text(place, text, "white", self._font, anchor="lm")

    def _corner(
        self, wide: float, high: float, points: Sequence[tuple[float, float]]
    ) -> tuple[float, float]:
        """Left and top of a rectangle in the corner where it covers the fewest *points*.

        Among equal corners the lower left comes first.
        """
        w, h = self._size
        corners = [(x, y) for y in (h - high, 0.0) for x in (0.0, max(w - wide, 0.0))]

        def covered(corner: tuple[float, float]) -> int:
            left, top = corner
            inside = [
                left <= x * w <= left + wide and top <= y * h <= top + high for x, y in points
            ]
            return sum(inside)

        return min(corners, key=covered)


def _side(point: str) -> Colour:
    """Return the colour of a key point: that of its side of the body, which its name tells."""
    return {"left": _LEFT, "right": _RIGHT}.get(point.partition(" ")[0], _MIDDLE)


def _name(found: Box | PixelClass | Score) -> str:
    """Return the label of a class, or its number if it has no label."""
    return f"class {found.index}" if found.label is None else found.label[:_LONGEST_NAME]


def _within(value: float, side: int) -> float:
    return min(max(value, 0.0), side - 1.0)
