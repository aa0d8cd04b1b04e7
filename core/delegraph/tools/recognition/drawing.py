"""Draws a model's findings on a picture. Needs Pillow: ``pip install 'delegraph[images]'``."""

from __future__ import annotations

import colorsys
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.tools.pictures import open_picture
from delegraph.tools.recognition.findings import Box, Findings, PixelClass, Pose, Segmentation

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = (".jpeg", ".jpg", ".png", ".webp")
"""Suffixes of picture files that can be written."""

_LEAST_SIDE = 640
"""Length in pixels to which the longer side of smaller pictures is enlarged, for labels."""

_OPACITY = 0.55
_LEGEND_ROWS = 12
_LONGEST_NAME = 40
_BACKGROUND = ("???", "background")

Colour = tuple[int, int, int]


def draw_findings(findings: Findings, picture: str, path: str) -> None:
    """Draw boxes, poses or classes of pixels on a picture, and write it to *path*.

    Args:
        findings: the findings, with places as shares of the picture's size.
        picture: path of a file that Pillow can read; small pictures are enlarged.
        path: path of the file to write, with a suffix in :data:`FORMATS`.

    Raises:
        ArgumentError: the findings cannot be drawn, the picture cannot be read, or the file cannot
            be written.
    """
    if findings.boxes is None and findings.poses is None and findings.segmentation is None:
        raise ArgumentError(
            "--draw: no boxes, key points or classes of pixels are recognized among the outputs; "
            "scores for each pixel need the names of their classes: --labels FILE"
        )
    image = _enlarged(open_picture(picture).convert("RGB"))
    if findings.segmentation is not None:
        image = _with_mask(image, findings.segmentation)
    pen = _Pen(image)
    last_is_on_top = (findings.boxes or ())[::-1]
    for box in last_is_on_top:
        pen.box(box)
    for box in last_is_on_top:
        pen.label(box)
    for number, pose in enumerate(findings.poses or ()):
        pen.pose(pose, _colour(number), findings.threshold)
    if findings.segmentation is not None:
        pen.legend(findings.segmentation.classes, findings.segmentation.mask.size)
    try:
        image.save(path)
    except OSError as error:
        raise ArgumentError(f"--draw {path!r}: {error.strerror or error}") from error


def require_drawable(path: str) -> None:
    """Check that the suffix of *path* is a supported picture format.

    Raises:
        ArgumentError: the suffix is not in :data:`FORMATS`.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise ArgumentError(f"--draw {path!r}: expected a file ending in {', '.join(FORMATS)}")


def _enlarged(image: Image) -> Image:
    from PIL.Image import Resampling

    factor = _LEAST_SIDE / max(image.size)
    if factor <= 1:
        return image
    width, height = (max(1, round(side * factor)) for side in image.size)
    return image.resize((width, height), Resampling.BICUBIC)


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
    """Return whether a class is the background: by its name, or because it is the first."""
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

    def pose(self, pose: Pose, colour: Colour, threshold: float) -> None:
        """Draw the points whose score reaches *threshold*, and the lines between them."""
        w, h = self._size
        places = [(point.x * w, point.y * h) for point in pose.points]
        sure = [point.score >= threshold for point in pose.points]
        for a, b in pose.edges:
            if sure[a] and sure[b]:
                self._draw.line((*places[a], *places[b]), fill=colour, width=self._width)
        radius = 1.6 * self._width
        for (x, y), is_sure in zip(places, sure, strict=True):
            if is_sure:
                circle = (x - radius, y - radius, x + radius, y + radius)
                self._draw.ellipse(circle, fill=colour, outline="white", width=self._width // 2)

    def legend(self, classes: tuple[PixelClass, ...], pixels: int) -> None:
        """Draw colours with names and shares of the picture in the lower left corner."""
        shown = [c for c in classes if not _is_background(c)][:_LEGEND_ROWS]
        names = [f"{_name(c)} {c.pixels / pixels:.1%}" for c in shown]
        if not names:
            return
        row = round(1.4 * self._letter)
        wide = max(self._draw.textlength(name, self._font) for name in names) + 2 * row
        top = self._size[1] - row * len(names) - row // 2
        self._draw.rectangle((0, top, wide, self._size[1]), fill=(0, 0, 0, 150))
        for number, (pixel_class, name) in enumerate(zip(shown, names, strict=True)):
            y = top + row // 4 + number * row
            square = (row // 3, y + row // 6, row, y + row // 6 + row * 2 // 3)
            self._draw.rectangle(square, fill=_colour(pixel_class.index))
            self._draw.text((row * 1.3, y + row / 2), name, "white", self._font, anchor="lm")


def _name(found: Box | PixelClass) -> str:
    """Return the label of a class, or its number if there is none."""
    return f"class {found.index}" if found.label is None else found.label[:_LONGEST_NAME]


def _within(value: float, side: int) -> float:
    return min(max(value, 0.0), side - 1.0)
